"""Update the results of a run after bob has changed the run's witnesses."""

import lzma
from dataclasses import replace
from pathlib import Path
from typing import Any

from bob import documents
from bob.answer.answer import Answer
from bob.answer.document import from_json, to_json
from bob.answer.result import Finding, Result
from bob.store.files import read_document, reading, rewrite_document, write_whole
from bob.witness import document as witness
from bob.workload.language import write_one

RESULT = "result.json"


def tell_results(run: Path) -> None:
    """Copy the evidence (a line of text) of each witness into the result files in ``run``. ``run`` is a run directory,
    or a directory of the reference results that bob ships. Raises StoreError for an unreadable result, and
    MalformedError for a damaged witness."""
    for file in result_files(run):
        document = _read(file)
        if document.get("schema") == "bob.app/1":
            _tell_program(document, file.parent)
        else:
            document = to_json(_told(from_json(document), file.parent))
        if file.suffix == ".xz":
            write_whole(file, lzma.compress(documents.sealed(documents.text(document)), preset=9))
        else:
            rewrite_document(file, document)


def _tell_program(document: Any, folder: Path) -> None:
    for column in document["configurations"]:
        for one in column["vulnerabilities"]:
            if one.get("witness"):
                one["evidence"] = witness.read(folder / one["witness"]).evidence


def _told(result: Result, folder: Path) -> Result:
    """Return ``result`` with the evidence that its witnesses now have. The paths of the witnesses are relative to
    ``folder``."""

    def evident(answer: Answer) -> Answer:
        ways = (
            replace(way, evidence=witness.read(folder / way.witness).evidence) if way.witness else way
            for way in answer.ways
        )
        return replace(answer, ways=tuple(ways))

    def smaller(finding: Finding) -> Finding:
        if finding.witness is None:
            return finding
        found = witness.read(folder / finding.witness)
        operations = found.workload.operations
        text = "; ".join(map(write_one, operations))
        return replace(finding, evidence=found.evidence, workload=text, operations=len(operations))

    subjects = (
        replace(
            subject,
            answers=tuple(map(evident, subject.answers)),
            findings=tuple(map(smaller, subject.findings)),
        )
        for subject in result.subjects
    )
    return replace(result, subjects=tuple(subjects))


def result_files(run: Path) -> list[Path]:
    """Return the result files in ``run`` and in its subfolders. A result file may be compressed, as large files in
    reference results are."""
    names = (RESULT, f"{RESULT}.xz")
    return sorted(file for name in names for file in (*run.glob(name), *run.glob(f"*/{name}")))


def _read(file: Path) -> dict[str, Any]:
    if file.suffix != ".xz":
        return read_document(file)
    with reading(file):
        return documents.opened(lzma.decompress(file.read_bytes()))
