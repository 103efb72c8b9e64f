"""Show a violation again from its witness alone: bob builds the crash state, mounts it, and judges the tree. A
*witness* is a file about one crash state that breaks a *claim* (what each crash state should satisfy)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from bob.agent.client import Agent
from bob.claim.checking import CheckerClaim
from bob.crash.image import ByteRun
from bob.image import Image
from bob.observe.observation import Observation
from bob.observe.observations import Complaint
from bob.observe.session import Session
from bob.program.answer import CheckerAnswer, CheckerRun
from bob.program.program import Program
from bob.progress import Progress
from bob.record.base import drop_base
from bob.record.recorder import put_program
from bob.run.pool import clock_to_check
from bob.run.witness_image import WitnessFile, by_image, each_witness
from bob.schema import Document
from bob.text import printable
from bob.trace.model import SECTOR_BYTES
from bob.witness.document import Witness, files_in, read
from bob.workload.pattern import describe


class ReplayDocument(Document, frozen=True, tag_field="schema", tag="bob.run.replay/1"):
    """The result of a replay: bob tried to show a violation again on ``kernel``. bob mounted the witness's crash state
    ``times`` times, and ``confirmed`` of these mounts showed the violation. ``observation_lines`` describe the tree
    after the first mount."""

    witness: str
    kernel: str
    found_on: str
    confirmed: int
    times: int
    observation_lines: tuple[str, ...]
    evidence: str


class WitnessReplay(ReplayDocument, frozen=True):
    """The result of a replay, for Python. It has the fields of the document, and also ``found``: the observation of the
    first mount."""

    found: Observation


def replay(
    paths: Sequence[Path],
    *,
    image: str | None,
    any_kernel: bool = False,
    connect: str | None,
    times: int,
    progress: Progress,
) -> Iterator[WitnessReplay]:
    """Build, mount and judge the crash state of each witness in ``paths``, ``times`` times. A run directory stands for
    all its witnesses. Before a guest starts, raise MalformedError for a file that is not a witness, and StoreError for
    a directory without witnesses. Raise UsageError if the image's kernel is of another series than the witness's,
    unless ``any_kernel`` is set."""
    witnesses = [(path, read(path)) for path in files_in(paths)]
    images = by_image(witnesses, image, progress, connect=connect, any_kernel=any_kernel)

    def again(agent: Agent, used: Image, found: WitnessFile) -> WitnessReplay:
        return _replay(agent, used.kernel_release, *found, times)

    claims = [witness.claim for _path, witness in witnesses]
    clock = clock_to_check(claim.program for claim in claims if isinstance(claim, CheckerClaim))
    return each_witness(images, clock, again, progress, connect)


def _replay(agent: Agent, kernel: str, path: Path, witness: Witness, times: int) -> WitnessReplay:
    payload = b"".join(data for _sector, data in witness.runs)
    delta, position = [], 0
    for sector, data in witness.runs:
        count = len(data) // SECTOR_BYTES
        delta.append((sector, position, count))
        position += count
    drop_base(agent, witness.base)  # another run's base of the same configuration has the same name
    session = Session(agent, witness.configuration, witness.base, [], payload)
    # Each mount is a request of its own, so that a mount leaves nothing to the next one.
    views = [_WitnessView(agent, session, delta, payload) for _ in range(times)]
    shown = [witness.claim.broken(view, witness.context) for view in views]
    confirmed = sum(evidence is not None for evidence in shown)
    evidence = next((found for found in shown if found is not None), "the violation does not show")
    found = views[0].observation
    return WitnessReplay(str(path), kernel, witness.kernel, confirmed, times, lines(found), evidence, found)


class _WitnessView:
    """The crash state of a witness, mounted in a guest. A claim asks this object about the state
    (:class:`bob.claim.claim.View`)."""

    def __init__(self, agent: Agent, session: Session, delta: Sequence[ByteRun], payload: bytes) -> None:
        self._agent, self._session, self._delta, self._payload = agent, session, delta, payload
        [self._mounted] = session.mount([delta], payload)
        self.observation = session.findings.observation(self._mounted.outcome)

    def complaints(self) -> Sequence[Complaint]:
        of_the_mount = [] if self._mounted.complaint is None else [self._mounted.complaint]
        return [*of_the_mount, *self._session.examine([self._delta], self._payload)[0]]

    def undisturbed(self) -> Observation:
        return self._session.findings.observation(self._session.observe([[]], self._payload)[0])

    def checked(self, program: Program, output: bytes) -> CheckerAnswer:
        put_program(self._agent, program)
        return self._session.check_program([CheckerRun(self._delta, output)], self._payload, program.seconds)[0]


def lines(observation: Observation) -> tuple[str, ...]:
    """Return an observation as lines for people: first the summary, then a line for each name in the tree."""
    found = [observation.summary]
    for name, node in sorted((observation.tree or {}).items()):
        if node.fault:
            found.append(f"{name}: {node.kind}, {node.fault}")
        elif node.kind == "file":
            found.append(f"{name}: file, {node.size:,} B: {describe(node.content)}")
        else:
            found.append(f"{name}: {node.kind}" + (f" -> {node.target}" if node.target else ""))
    return tuple(map(printable, found))
