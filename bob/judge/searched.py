"""What searches tried, and the tables of probes: a search writes it down, and a cell of the same question tells it.

A cell tells it where kernel, configuration and property are the same. Workloads of the probe itself are left out. Where
a search breaks a property that the probe's own workloads do not break, the cell fails, with the search's witness: one
question has one answer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from bob.catalogue.sets import properties_of
from bob.claim.verdict import Verdict
from bob.errors import BobError
from bob.request import ProbeRequest, request_of
from bob.result import ConfigurationResult, PropertyResult, Result, Searched, environment_from_json, from_json, to_json
from bob.search.searched import Counted, Kept, On, Said, Whole, asked_by, counted, key, merged, words_of
from bob.search.spaces import Search
from bob.store.lock import writing
from bob.store.matrix_directory import MatrixDirectory
from bob.store.run_directory import RUNS, RunDirectory
from bob.store.search_directory import SearchDirectory
from bob.store.searched_file import read, update
from bob.witness import bundle
from bob.witness import document as witness
from bob.workload.plain import workload_from_json

_ABOVE = 3
"""A column of a matrix on one of several kernels has so many folders above it, up to the one that runs are kept in."""


def note(directory: SearchDirectory, lots: Sequence[tuple[Path, Result]]) -> None:
    """Have the file beside a search's ``directory`` say what its ``lots`` tried, by their folders, and nothing else of
    this search.

    Raises what :func:`bob.store.searched_file.update` raises.
    """
    about = directory.about()
    words = words_of(Search.from_json(about["search"]), about["request"]["budget"])
    told = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    found: dict[On, _Found] = {}
    for folder, result in lots:
        lot = _lot(folder.resolve())
        found.setdefault(lot.on, _Found()).add(lot, f"{directory.path.resolve().name}/{folder.name}", result)
    parts = [
        Kept(about["id"], told, about["bob"], words, on, part.whole, tuple(part.said.values()))
        for on, part in found.items()
    ]
    update(directory.path.resolve().parent, about["id"], parts)


def beside(path: Path, result: Result) -> Result:
    """``result``, of the run in ``path`` (its directory, or the result in it), with what was searched.

    It is looked for in the folder that the run directory is in, in those above that one, and in bob-runs. A run.json
    tells the workloads of the run itself; a result without one says what it said when it was written. The table of a
    search speaks of that search alone.

    Raises StoreError or MalformedError where what is kept cannot be read.
    """
    folder = path if path.is_dir() else path.parent
    runs = _runs(folder) if path.is_dir() or path.name == "result.json" else []
    if not runs or not (known := _known(folder)):
        return result
    if len(result.configurations) > len(runs):  # of a matrix that was stopped, the first ones are there; never more
        return result
    pairs = zip(runs, result.configurations, strict=False)
    return replace(result, configurations=tuple(_column(run, column, known, folder) for run, column in pairs))


def keep(path: Path, result: Result) -> Result:
    """The same, and the run keeps it: it says so wherever it is moved, and has the witnesses of searches, too.

    Raises StoreError where it cannot be written, or is being written, too.
    """
    if beside(path, result) == result:
        return result
    known = _known(path)
    if not MatrixDirectory.is_one(path):
        with writing([path]):
            return _kept(RunDirectory(path), result, known)
    directory = MatrixDirectory(path)
    with writing(directory.written):
        columns = [run for run in directory.columns() if (run.path / "result.json").is_file()]
        return directory.save_result([(run.path, _kept(run, from_json(run.result()), known)) for run in columns])


def check(run: Path) -> None:
    """Raise what :func:`beside` would raise of the directory ``run``, before work is begun whose result is told."""
    _known(run)


@dataclass(frozen=True, slots=True)
class _Lot:
    """A lot of a search: its workloads' keys by their names and finishes, and what its properties ask."""

    on: On
    keys: Mapping[tuple[str, str], str]
    asks: Mapping[str, str]


@lru_cache(maxsize=1024)  # a search tells all its lots anew after each of them
def _lot(folder: Path) -> _Lot:
    run = RunDirectory(folder)
    about, request = run.about(), request_of(run)
    keys: dict[tuple[str, str], str] = {}
    for one in map(workload_from_json, about["workloads"]):
        name = one.name, one.finish.name
        keys[name] = key(one) if keys.get(name, key(one)) == key(one) else ""  # it cannot be told which of the two
    asks = {probe.property.name: asked_by(probe.property) for probe in request.probes}
    return _Lot(_on(about, request), keys, asks)


@dataclass(slots=True)
class _Found:
    """What a search said on one kernel and configuration, lot by lot."""

    whole: dict[str, Whole] = field(default_factory=dict)
    said: dict[tuple[str, str], Said] = field(default_factory=dict)

    def add(self, lot: _Lot, place: str, result: Result) -> None:
        """Add a lot whose folder is ``place`` from the file's on."""
        for cell in result.configurations[0].properties:
            if cell.name not in lot.asks:
                continue
            holds, fails = self._tried(lot, cell, Verdict.HOLDS), self._tried(lot, cell, Verdict.FAILS)
            which = cell.name, lot.asks[cell.name]
            before = self.said.get(which, Said(*which, frozenset()))
            shown = (
                replace(before, witness=f"{place}/{cell.witness}", evidence=cell.evidence) if cell.witness else before
            )
            fails |= before.fails
            self.said[which] = replace(
                before if before.witness else shown, holds=(holds | before.holds) - fails, fails=fails
            )

    def _tried(self, lot: _Lot, cell: PropertyResult, verdict: Verdict) -> frozenset[str]:
        """The keys of the workloads of a cell with this verdict. One that was lost, or of which it is not known how
        many states are legal, is none of them."""
        found = set()
        for one in cell.workloads:
            tried, states = lot.keys.get((one.name, one.finish)), one.states
            if one.verdict is verdict and tried and states.explored_writes is not None:
                self.whole[tried] = Whole(states.explored_writes, states.legal_writes, states.unmountable_writes)
                found.add(tried)
        return frozenset(found)


def _on(about: Mapping[str, Any], request: ProbeRequest) -> On:
    return On.of(request.configuration, environment_from_json(about["environment"]), request.model)


def _runs(folder: Path) -> list[RunDirectory]:
    """The run directories of the columns of the result in ``folder``; none where it is no run of a probe or matrix."""
    try:
        if any(SearchDirectory.is_one(one) for one in (folder, folder.resolve().parent)):
            return []
        return MatrixDirectory(folder).columns() if MatrixDirectory.is_one(folder) else [RunDirectory(folder)]
    except BobError:  # there is a result, and no run that could tell what is its own
        return []


def _known(folder: Path) -> tuple[Kept, ...]:
    """All that is kept where it is looked for from the run directory ``folder`` on, with the paths of its witnesses."""
    folders = dict.fromkeys([*folder.resolve().parents[:_ABOVE], RUNS.resolve()])
    return merged(*([one.within(str(near)) for one in read(near)] for near in folders))


def _column(run: RunDirectory, column: ConfigurationResult, known: Sequence[Kept], folder: Path) -> ConfigurationResult:
    """``column``, of ``run``, with what is ``known``; paths of witnesses are from ``folder`` on."""
    try:
        about, request = run.about(), request_of(run)
        on = _on(about, request)
        alike = [one for one in known if one.on == on]
        if "skipped" in about or not alike or request.configuration.name != column.name:
            return column
        own = frozenset(key(workload_from_json(one)) for one in about["workloads"])
    except (BobError, KeyError, TypeError, ValueError):  # the run of another version
        return column
    asked = (*properties_of(request.rows), *(probe.property for probe in request.probes))
    asks = {prop.name: asked_by(prop) for prop in asked}
    cells = (_cell(cell, alike, asks.get(cell.name, ""), own, folder) for cell in column.properties)
    return replace(column, properties=tuple(cells))


def _cell(cell: PropertyResult, alike: Sequence[Kept], asks: str, own: frozenset[str], folder: Path) -> PropertyResult:
    alone = cell.alone
    found = counted(alike, cell.name, asks, own, is_broken=alone.verdict is Verdict.FAILS)
    if cell.searched is not None and not set(cell.searched.searches) <= {one.id for one in alike}:
        return cell  # it was told of a search that is not known here: these cannot be put together
    return alone if found is None else _told(cell, found, folder)


def _told(cell: PropertyResult, found: Counted, folder: Path) -> PropertyResult:
    alone, whole = cell.alone, found.whole
    told = replace(
        alone,
        searched=Searched(
            workloads=found.workloads,
            failing=found.failing,
            complete=found.complete,
            explored_writes=whole.explored,
            legal_writes=whole.legal,
            unmountable_writes=whole.unmountable,
            searches={one.id: f"{one.words}, bob {one.bob}" for one in found.searches},
            verdict=alone.verdict,
            reason=alone.reason,
        ),
    )
    if not found.failing or alone.verdict is Verdict.FAILS:
        return told
    told = replace(told, verdict=Verdict.FAILS, reason=None)
    kept, copy = found.shown.witness if found.shown else None, cell.witness if cell.is_by_search else None
    shown = {path: said for path in (copy, kept) if path and (said := _evidence(folder / path)) is not None}
    # The copy in the run is shown for as long as it says what the search's own says, or that is gone.
    path = kept if kept in shown and shown[kept] != shown.get(copy or "") else copy
    if path is None or path not in shown:
        return replace(told, evidence=found.shown.evidence if found.shown else cell.evidence)
    return replace(told, witness=os.path.relpath((folder / path).resolve(), folder.resolve()), evidence=shown[path])


def _evidence(path: Path) -> str | None:
    """What the witness in ``path`` shows: it may have been shrunk since. None where it is gone."""
    try:
        return witness.read(path).evidence if bundle.is_there(path) else None
    except BobError:
        return None


def _kept(run: RunDirectory, result: Result, known: Sequence[Kept]) -> Result:
    """The result of a column with what is ``known``, kept in ``run`` with the witnesses of searches."""
    [column] = result.configurations
    column = _column(run, column, known, run.path)
    cells = tuple(_with_own_witness(run, cell) for cell in column.properties)
    result = replace(result, configurations=(replace(column, properties=cells),))
    run.save_result(to_json(result))
    return result


def _with_own_witness(run: RunDirectory, cell: PropertyResult) -> PropertyResult:
    """``cell`` with a copy of a search's witness in ``run``, where its own workloads have left none."""
    if not cell.is_by_search or cell.witness is None:
        return cell
    return replace(cell, witness=run.save_witness(cell.name, bundle.load(run.path / cell.witness)))
