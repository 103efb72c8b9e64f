"""The evidence of a reference, said anew from what its witnesses keep: without a run, and without a guest.

A witness that keeps what was found after its crash can be judged by this bob. One that does not stays as it is:
``bob replay --update`` mounts its crash state again, and has it keep that.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bob.claim.claim import AfterMount
from bob.errors import MalformedError
from bob.witness import bundle
from bob.witness.document import files_in, read
from bob.witness.results import result_files, tell_results


def is_reference(path: Path) -> bool:
    """Whether ``path`` has a result and its witnesses, but not the run that they are of."""
    return not (path / "run.json").exists() and bool(result_files(path))


def restate(path: Path, step: Callable[[str], None]) -> None:
    """Have the witnesses in ``path`` say their evidence as this bob says it, and the results there what they say.

    ``step`` is told how many changed. Raises MalformedError for a witness whose claim, by this bob, is not broken by
    what was found, and StoreError where there are none; then nothing is changed.
    """
    files = files_in([path])
    changed, silent = {}, 0
    for file in files:
        kept = read(file)
        if kept.found is None:
            silent += kept.claim.is_shown_by_the_tree
            continue
        said = kept.claim.broken(AfterMount(kept.found), kept.context)
        if said is None:
            raise MalformedError(
                f"{file}: what was found there does not break «{kept.title}»",
                hint="this bob judges it otherwise than the one that found it: run the matrix again",
            )
        if said != kept.evidence:
            changed[file] = {**bundle.load(file), "evidence": said}
    bundle.save(changed)
    tell_results(path)
    step(f"{len(changed):,} of {len(files):,} witnesses say their evidence otherwise now")
    if silent:
        step(f"{silent:,} do not keep what was found, and stay as they are: bob replay --update {path} adds it")
