"""Shows a violation again from its witness alone: builds the crash state, mounts it, and judges what is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from bob.crash.image import Run
from bob.expect.evaluate import evidence, holds
from bob.expect.language import parse
from bob.guest.agent_client import Agent
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock
from bob.guest.with_agent import agent_in
from bob.image import Image
from bob.judge.idempotence import OF_RECOVERY, during_recovery
from bob.judge.presence import Oracle
from bob.judge.rules import violation
from bob.judge.verdicts import inodes_of_things
from bob.observe.observation import Observation
from bob.observe.session import Session
from bob.progress import Progress
from bob.record.base import drop_base
from bob.trace.model import SECTOR_BYTES
from bob.witness import Witness, files_in, read, violated
from bob.witness_image import by_image
from bob.workload.history import simulate
from bob.workload.pattern import describe


@dataclass(frozen=True, slots=True)
class Replayed:
    """How often a witness showed its violation on ``kernel``: ``confirmed`` of ``times``; and what was found, a line
    each."""

    witness: str
    kernel: str
    confirmed: int
    times: int
    observation_lines: tuple[str, ...]
    evidence: str


def replay(
    paths: Sequence[Path],
    *,
    image: str | None,
    any_kernel: bool = False,
    connect: str | None,
    times: int,
    progress: Progress,
) -> Iterator[Replayed]:
    """Build the crash state of each witness in ``paths`` ``times`` times, mount it each time and judge what is there.

    A path may be a run directory: all witnesses in it. One guest serves for all of one image. Raises, before anything
    is started, MalformedError for what is no witness, UsageError where the image's kernel is not the witness's, unless
    ``any_kernel`` will do, and StoreError for a directory without witnesses.
    """
    witnesses = [(path, read(path)) for path in files_in(paths)]
    groups = by_image(witnesses, image, progress, any_kernel=any_kernel)
    return chain.from_iterable(_replayed(group, built, connect, times, progress) for built, group in groups)


def _replayed(
    witnesses: Sequence[tuple[Path, Witness]], image: Image, connect: str | None, times: int, progress: Progress
) -> Iterator[Replayed]:
    with Hypervisor.open(connect, progress.step) as hypervisor, agent_in(hypervisor, image, Clock.REAL) as agent:
        for path, witness in witnesses:
            yield _replay(agent, image.kernel_release, path, witness, times)


def _replay(agent: Agent, kernel: str, path: Path, witness: Witness, times: int) -> Replayed:
    payload = b"".join(data for _sector, data in witness.runs)
    delta, position = [], 0
    for sector, data in witness.runs:
        count = len(data) // SECTOR_BYTES
        delta.append((sector, position, count))
        position += count
    drop_base(agent, witness.base)  # another run's base of the same configuration has the same name
    session = Session(agent, witness.configuration, witness.base, [], payload)
    if witness.trouble is not None:
        return _troubled(session, kernel, path, witness, delta, payload, times)
    # Each state of a request is built, mounted and taken back on its own; one request each, to leave nothing over.
    outcomes = [session.observe([delta], payload)[0] for _ in range(times)]
    observations = [session.findings.observation(outcome) for outcome in outcomes]
    undisturbed = None
    if witness.question == OF_RECOVERY:
        undisturbed = session.findings.observation(session.observe([[]], payload)[0])
    shown = [broken(witness, observation, undisturbed) for observation in observations]
    confirmed = sum(evidence is not None for evidence in shown)
    evidence = next((found for found in shown if found is not None), "the violation does not show")
    return Replayed(str(path), kernel, confirmed, times, lines(observations[0]), evidence)


def _troubled(
    session: Session, kernel: str, path: Path, witness: Witness, delta: Sequence[Run], payload: bytes, times: int
) -> Replayed:
    """Mount, or examine, a state that has trouble though it mounts, ``times`` times."""
    observations, shown = [], []
    for _ in range(times):
        [mounted] = session.mount([delta], payload)
        observations.append(session.findings.observation(mounted.outcome))
        found = [mounted.complaint] if mounted.complaint is not None else []
        found += session.examine([delta], payload)[0]
        shown.append(next((one.words for one in found if one.kind == witness.trouble), None))
    confirmed = sum(words is not None for words in shown)
    words = next((found for found in shown if found is not None), "the trouble does not show")
    return Replayed(str(path), kernel, confirmed, times, lines(observations[0]), words)


def broken(witness: Witness, observation: Observation, undisturbed: Observation | None = None) -> str | None:
    """What ``observation`` shows of the witness's violation; None if it does not show it. ``undisturbed`` is what is
    there when recovery is not crashed, where that is the question."""
    if witness.expectation is not None:
        history, test = simulate(witness.workload)[0], parse(witness.expectation).test
        return evidence(test, observation, history) if holds(test, observation, history) is False else None
    prop = violated(witness)
    if prop is None or witness.question is None:
        return None if observation.mounted else observation.summary
    if not observation.mounted:
        return None
    if undisturbed is not None:
        return during_recovery(undisturbed, observation)
    history, _setup, _operations = simulate(witness.workload)
    oracle = Oracle(history, inodes_of_things(history, *witness.inodes), witness.statuses)
    found = violation(prop, witness.question, history, oracle, oracle.read(observation), observation)
    return None if found is None else found.evidence


def lines(observation: Observation) -> tuple[str, ...]:
    """An observation as people read it: the summary, then a line for each name."""
    found = [observation.summary]
    for name, node in sorted((observation.tree or {}).items()):
        if node.fault:
            found.append(f"{name}: {node.kind}, {node.fault}")
        elif node.kind == "file":
            found.append(f"{name}: file, {node.size:,} B: {describe(node.content)}")
        else:
            found.append(f"{name}: {node.kind}" + (f" -> {node.target}" if node.target else ""))
    return tuple(found)
