"""The run directory of a search: run.json, result.json, and a run directory for each lot of workloads.

::

    RUN/run.json            what was asked (bob/search/spaces.py, bob/catalogue/request.py), and which lots there are
    RUN/result.json         bob.result/2, all lots that are done as one column
    RUN/lot-001/            a run directory like that of a probe (bob/store/run_directory.py)
    RUN/lot-001/result.json

A search may have more workloads than fit into one run, or than anybody can name beforehand. So it goes on lot by lot,
and what it has found so far is told after each.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any

from bob.answer.document import from_json, to_json
from bob.answer.result import Result
from bob.errors import StoreError
from bob.store.files import read_document, rewrite_document, write_document
from bob.store.lock import LOCK
from bob.store.run_directory import RunDirectory, empty_folder
from bob.store.run_kind import RunKind, is_of_kind


class SearchDirectory:
    """The run directory of a search; made by :meth:`create`, opened again by the constructor."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not self.is_one(path):
            raise StoreError(f"{path} is no run of a search", hint="bob search makes one")

    @staticmethod
    def is_one(path: Path) -> bool:
        """Whether ``path`` is a search's run directory."""
        return is_of_kind(path, RunKind.SEARCH)

    @classmethod
    def create(cls, path: Path, about: Mapping[str, Any]) -> SearchDirectory:
        """Make the directory ``path``, without a lot; StoreError if it holds something already."""
        with empty_folder(path):
            write_document(path / "run.json", {**about, "lots": []})
        return cls(path)

    def discard(self) -> None:
        """Make the directory as empty as it was before :meth:`create`: nothing came of the search."""
        for folder, _count in self.lots():
            if not any(folder.glob("workloads/*")):
                rmtree(folder, ignore_errors=True)
        for name in ("run.json", LOCK):
            (self.path / name).unlink(missing_ok=True)

    def about(self) -> dict[str, Any]:
        """What run.json says."""
        return read_document(self.path / "run.json")

    def note(self, **more: Any) -> None:
        """Add to run.json."""
        rewrite_document(self.path / "run.json", {**self.about(), **more})

    def lots(self) -> list[tuple[Path, int]]:
        """The folders of the lots that were begun, in their order, each with its number of workloads."""
        return [(self.path / name, count) for name, count, *_known in self.about()["lots"]]

    def known(self) -> list[int]:
        """For each lot that was begun, of how many lots before it the results were known when its workloads were
        chosen: all of them, but where lots are done side by side."""
        return [known[0] if known else place for place, (_name, _count, *known) in enumerate(self.about()["lots"])]

    def begin(self, workloads: int, known: int | None = None) -> Path:
        """Take note of a new lot of so many ``workloads``; where its run directory is to be. ``known`` as in
        :meth:`known` (None: all)."""
        lots = self.about()["lots"]
        name = f"lot-{len(lots) + 1:03d}"
        self.note(lots=[*lots, [name, workloads, *([] if known in (None, len(lots)) else [known])]])
        return self.path / name

    def runs(self) -> list[RunDirectory]:
        """The run directories of the lots that were begun."""
        return [RunDirectory(folder) for folder, _count in self.lots() if (folder / "run.json").is_file()]

    def save_result(self, result: Result) -> None:
        """Keep what all lots that are done say as one."""
        write_document(self.path / "result.json", to_json(result))

    def results(self) -> list[tuple[Path, Result]]:
        """The results of the lots that are done."""
        return [(run.path, from_json(run.result())) for run in self.runs() if run.is_finished()]
