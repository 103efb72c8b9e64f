"""The run directory of `bob search`. A search looks for workloads where a crash breaks a property. It has lots (batches
of workloads). Each lot is a run of its own (lot-001/), since one run would have too many workloads. The file run.json
has the request (bob/search/spaces.py) and a list of the lots. The file result.json combines the results of the finished
lots."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any

from bob.answer.result import Result
from bob.store.lock import LOCK
from bob.store.run_directory import RunDirectory
from bob.store.run_kind import RunFolder, RunKind


class SearchDirectory(RunFolder):
    kind = RunKind.SEARCH

    @classmethod
    def create(cls, path: Path, about: Mapping[str, Any]) -> SearchDirectory:
        return cls.made(path, {**about, "lots": []})

    def discard(self) -> None:
        """Undo a search that ended before it had a result. Remove run.json, the lock file, and the lots where bob has
        not tried a workload yet. Keep the other lots."""
        for folder, _count in self.lots():
            if not any(folder.glob("workloads/*")):
                rmtree(folder, ignore_errors=True)
        for name in ("run.json", LOCK):
            (self.path / name).unlink(missing_ok=True)

    def lots(self) -> list[tuple[Path, int]]:
        """Return the folder of each lot that was begun, and the number of workloads in the lot."""
        return [(self.path / name, count) for name, count, *_known in self.about()["lots"]]

    def known(self) -> list[int]:
        """Return for each lot how many earlier lots had results when bob chose the lot's workloads. If lots do not run
        side by side, this is the number of all earlier lots."""
        return [known[0] if known else place for place, (_name, _count, *known) in enumerate(self.about()["lots"])]

    def begin(self, workloads: int, known: int | None = None) -> Path:
        """Add a lot with this number of ``workloads`` to run.json, and return its path. ``known`` is the number of
        earlier lots that have results now (None: all of them)."""
        lots = self.about()["lots"]
        name = f"lot-{len(lots) + 1:03d}"
        self.note(lots=[*lots, [name, workloads, *([] if known in (None, len(lots)) else [known])]])
        return self.path / name

    def runs(self) -> list[RunDirectory]:
        return [RunDirectory(folder) for folder, _count in self.lots() if (folder / "run.json").is_file()]

    def results(self) -> list[tuple[Path, Result]]:
        return [(run.path, run.result()) for run in self.runs() if run.is_finished()]
