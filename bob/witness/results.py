"""The results that tell of witnesses, told anew."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

from bob import documents
from bob.store.files import read_document, reading, rewrite_document, write_whole
from bob.witness import document as witness
from bob.workload.language import write_one

RESULT = "result.json"


def tell_results(run: Path) -> None:
    """Have the results in ``run``, a run directory or a reference, say of each ×, and of each finding, what its witness
    says.

    Raises StoreError for a result that cannot be read, MalformedError for a witness that is none.
    """
    for file in result_files(run):
        result = _read(file)
        # The result of a quick question has none; that of a program has vulnerabilities, and no properties.
        for column in result.get("configurations", ()):
            for cell in column.get("properties", column.get("vulnerabilities", ())):
                if cell.get("witness"):
                    cell["evidence"] = witness.read(file.parent / cell["witness"]).evidence
            for finding in column.get("findings", ()):
                found = witness.read(file.parent / finding["witness"])
                operations = found.workload.operations
                text = "; ".join(map(write_one, operations))
                finding.update(evidence=found.evidence, workload=text, operations=len(operations))
        if file.suffix == ".xz":
            write_whole(file, lzma.compress(documents.sealed(documents.text(result)), preset=9))
        else:
            rewrite_document(file, result)


def result_files(run: Path) -> list[Path]:
    """The files of results in ``run``, and in the folders in it; a large one of a reference is compressed."""
    names = (RESULT, f"{RESULT}.xz")
    return sorted(file for name in names for file in (*run.glob(name), *run.glob(f"*/{name}")))


def _read(file: Path) -> dict[str, Any]:
    if file.suffix != ".xz":
        return read_document(file)
    with reading(file):
        return documents.opened(lzma.decompress(file.read_bytes()))
