"""Judge the evidence of an older result again, from the result's witnesses alone. A witness is a document about one
crash state that breaks a claim, such as a property. Its *evidence* says in a line what is wrong. A witness usually has
the tree of files that a mount of its crash state showed. bob judges this tree, and so needs no guest. This module does
not change a witness that lacks the tree. To add the tree, use ``bob replay --update``, which mounts the crash state
again. A *reference* is a folder with a result and its witnesses, but without the recordings."""

from collections.abc import Callable
from pathlib import Path

from bob.claim.claim import AfterMount
from bob.errors import MalformedError
from bob.witness import bundle
from bob.witness.document import files_in, read
from bob.witness.results import result_files, tell_results


def is_reference(path: Path) -> bool:
    """Return whether the folder ``path`` has a result, but lacks the recordings behind it. bob can judge
    only the witnesses of such a result again."""
    return not (path / "run.json").exists() and bool(result_files(path))


def restate(path: Path, step: Callable[[str], None]) -> None:
    """Judge the witnesses of ``path`` again, and write the new evidence to the witnesses and results. ``step`` is
    called with a line that says how many witnesses changed. Raises MalformedError if, by the rules of this version, a
    witness does not break its claim. Raises StoreError if it finds no witnesses. After either error, all files are
    unchanged."""
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
                f"{file}: its tree does not break «{kept.title}»",
                hint="this version of bob judges it differently; run the matrix again",
            )
        if said != kept.evidence:
            changed[file] = {**bundle.load(file), "evidence": said}
    bundle.save(changed)
    tell_results(path)
    step(f"the evidence of {len(changed):,} of {len(files):,} witnesses has other words now")
    if silent:
        step(f"{silent:,} witnesses lack their tree and did not change; bob replay --update {path} adds it")
