"""Witnesses in files are shrunk, and the results that tell of them are told anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from bob import documents
from bob.agent.client import Agent
from bob.claim.claim import Judgeable
from bob.errors import UsageError
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock
from bob.image import Image
from bob.progress import Progress
from bob.run.second_chances import each_in_a_guest
from bob.run.shrinker import Shrinker, in_words
from bob.run.witness_image import by_image
from bob.store.run_directory import read_document, write_whole
from bob.witness import document as witness
from bob.witness.document import Size, Witness


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The witness in ``path`` made smaller: a ``document``, None where its violation does not show any more when it is
    recorded again. ``before`` and ``after`` say how large it was and is."""

    path: Path
    document: Mapping[str, Any] | None
    before: Size
    after: Size


def shrink(
    paths: Sequence[Path], *, image: str | None, connect: str | None, budget: int, progress: Progress
) -> Iterator[Shrunk]:
    """The witnesses in ``paths``, each smaller; each workload that is tried has ``budget`` mounts.

    Raises MalformedError for what is no witness and UsageError where the image's kernel is another, or it is of an
    expectation, before anything is started.
    """
    witnesses = [(path, witness.read(path)) for path in paths]
    for path, found in witnesses:
        if (refusal := found.claim.no_shrinking) is not None:
            raise UsageError(f"the witness {path.name} is of {refusal.reason}", hint=refusal.hint)
    groups = by_image(witnesses, image, progress)
    return chain.from_iterable(_shrunk(group, built, connect, budget, progress) for built, group in groups)


def _shrunk(
    witnesses: Sequence[tuple[Path, Witness]], image: Image, connect: str | None, budget: int, progress: Progress
) -> Iterator[Shrunk]:
    def shrink_one(agent: Agent, each: tuple[Path, Witness]) -> Shrunk:
        return _shrink(agent, *each, budget, progress)

    items = [(str(path), (path, found)) for path, found in witnesses]
    with Hypervisor.open(connect, progress.step) as hypervisor:
        yield from each_in_a_guest(hypervisor, image, Clock.VIRTUAL, items, shrink_one, progress)


def _shrink(agent: Agent, path: Path, found: Witness, budget: int, progress: Progress) -> Shrunk:
    progress.step(f"{path}: {found.size.operations} operations, {found.size.setup} in the initial tree")
    assert isinstance(found.claim, Judgeable)
    shrinker = Shrinker(agent, found.configuration, found.model, found.claim, budget)
    smaller = shrinker.shrunk(found.workload, progress)
    before = found.shrunk_from or found.size
    if smaller is None:
        progress.step("recorded again, it does not show; it stays as it is")
        return Shrunk(path, None, before, found.size)
    progress.step(f"{in_words(smaller)}: done")
    document = witness.write(
        smaller,
        environment=found.environment,
        configuration=found.configuration,
        model=found.model,
        shrunk_from=before,
    )
    return Shrunk(path, document, before, smaller.size)


def tell_results(run: Path) -> None:
    """Have the results in ``run``, a run directory, say of each × what its witness says."""
    for file in sorted([*run.glob("result.json"), *run.glob("*/result.json")]):
        result = read_document(file)
        # The result of a quick question has none.
        cells = [
            cell for column in result.get("configurations", ()) for cell in column["properties"] if cell.get("witness")
        ]
        for cell in cells:
            cell["evidence"] = witness.read(file.parent / cell["witness"]).evidence
        write_whole(file, documents.text(result).encode())
