"""Witnesses in files are shrunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bob.agent.client import Agent
from bob.claim.checking import CheckerClaim
from bob.claim.claim import Judgeable
from bob.errors import UsageError
from bob.guest.spec import Clock
from bob.image import Image
from bob.progress import Progress
from bob.run.program_shrinker import ProgramShrinker
from bob.run.shrinker import Shrinker, in_words
from bob.run.witness_image import WitnessFile, by_image, each_witness
from bob.story.timeline import ProgramCallEvent
from bob.witness import document as witness
from bob.witness.document import WitnessSize


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The witness in ``path`` made smaller: a ``document``, None where its violation does not show any more when it is
    recorded again. ``before`` and ``after`` say how large it was and is."""

    path: Path
    document: Mapping[str, Any] | None
    before: WitnessSize
    after: WitnessSize


def shrink(
    paths: Sequence[Path], *, image: str | None, connect: str | None, budget: int, progress: Progress
) -> Iterator[Shrunk]:
    """The witnesses in ``paths``, each smaller; each workload that is tried has ``budget`` mounts.

    A smaller witness names the kernel that it was shrunk on, which may be another package of the same series. Raises
    MalformedError for what is no witness and UsageError where the image's kernel is of another series, or the witness
    is of an expectation, before anything is started.
    """
    witnesses = [(path, witness.read(path)) for path in paths]
    for path, found in witnesses:
        if (refusal := found.claim.no_shrinking) is not None:
            raise UsageError(f"the witness {path.name} is of {refusal.reason}", hint=refusal.hint)
    shrink_one = partial(_shrink, budget=budget, progress=progress)
    return each_witness(by_image(witnesses, image, progress), Clock.VIRTUAL, shrink_one, progress, connect)


def _shrink(agent: Agent, image: Image, each: WitnessFile, *, budget: int, progress: Progress) -> Shrunk:
    path, found = each
    before = found.shrunk_from or found.size
    calls: Sequence[ProgramCallEvent] = ()
    progress.step(f"{path}: {in_words(found.size)}")
    if isinstance(found.claim, CheckerClaim):
        smaller, calls = ProgramShrinker(agent, found, found.claim, budget).shrunk(progress)
    else:
        assert isinstance(found.claim, Judgeable)
        shrinker = Shrinker(agent, found.configuration, found.model, found.claim, budget)
        smaller = shrinker.shrunk(found.workload, progress)
    if smaller is None:
        progress.step("recorded again, it does not show; it stays as it is")
        return Shrunk(path, None, before, found.size)
    progress.step(f"{in_words(smaller.size)}: done")
    document = witness.write(
        smaller,
        environment={**found.environment, "kernel": image.kernel_release, "image": image.named},
        shrunk_from=before,
        calls=calls,
    )
    return Shrunk(path, document, before, smaller.size)
