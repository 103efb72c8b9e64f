"""The merge of shards into one run. A shard is a part of a run that another machine may have done: some configurations
of ``bob matrix``, some batches of a search, or some configurations of a program. Each shard has its own run directory
(its recordings and results). All shards must have the same environment, and the same request except for the division
into shards."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

from bob.answer.merge import merged
from bob.answer.result import Result
from bob.catalogue.request import request_to_json
from bob.errors import StoreError, UsageError
from bob.judge.again import told
from bob.schema import encode
from bob.search.space import Part
from bob.search.spaces import search_in
from bob.store.files import read_document
from bob.store.kept_runs import is_locked
from bob.store.lock import LOCK
from bob.store.matrix_directory import MatrixDirectory
from bob.store.run_directory import RunDirectory, request_of
from bob.store.run_kind import RunKind, kind_of
from bob.store.search_directory import SearchDirectory

_OF_A_CONFIGURATION = ("name", "fs", "mkfs_options", "mount_options", "device", "stack", "mkfs_version")
"""Fields of requests and environments that may differ between the columns of a table."""


def merge(out: Path, runs: Sequence[Path], identity: str) -> Result:
    """Merge ``runs`` into one run: copy them into the new run directory ``out``, and return their common result. The
    new run gets the id ``identity``. Raises UsageError if the runs cannot belong to one run. Raises StoreError for a
    folder that is not a finished run, or that another process is writing."""
    for path in runs:
        if not (path / "run.json").is_file():
            raise StoreError(f"{path} is not a run directory", hint="bob runs lists them")
        if is_locked(path):
            raise StoreError(f"another bob is writing to {path}", hint="wait until it is done")
    if len({path.resolve() for path in runs}) < len(runs):
        raise UsageError("a run is named twice", hint="name each run once")
    abouts = [read_document(path / "run.json") for path in runs]
    _same("bob", [about.get("bob") for about in abouts], runs)
    kinds = set(map(kind_of, abouts))
    if kinds == {RunKind.SEARCH}:
        return _searches(out, [SearchDirectory(path) for path in runs], abouts, identity)
    if kinds == {RunKind.APP}:
        return _programs(out, runs, abouts, identity)
    if kinds <= {RunKind.MATRIX, RunKind.PROBE}:
        return _columns(out, runs, abouts, identity)
    raise UsageError(
        "bob cannot merge these runs", hint="name only matrices and probes, only searches, or only runs of bob app"
    )


def _columns(out: Path, runs: Sequence[Path], abouts: Sequence[Mapping[str, Any]], identity: str) -> Result:
    placed: list[tuple[int, RunDirectory]] = []
    for path, about in zip(runs, abouts, strict=True):
        shard, shards = about.get("shard", (1, 1))
        columns = MatrixDirectory(path).columns() if kind_of(about) is RunKind.MATRIX else [RunDirectory(path)]
        placed += [(place * shards + shard - 1, column) for place, column in enumerate(columns)]
    if all("shard" in about for about in abouts):
        _check_shards([tuple(about["shard"]) for about in abouts], runs)
        _same("the set of configurations", [about.get("set") for about in abouts], runs)
        placed.sort(key=lambda one: one[0])
    columns = [column for _place, column in placed]
    requests = [request_of(column) for column in columns]
    _same("the request", [_without(request_to_json(one), _OF_A_CONFIGURATION) for one in requests], columns)
    measured = [_without(column.about().get("environment", {}), _OF_A_CONFIGURATION) for column in columns]
    begun = [one for one in zip(measured, columns, strict=True) if one[0]]
    _same("the environment", [one for one, _column in begun], [column for _one, column in begun])
    names = [request.configuration.name for request in requests]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise UsageError(f"several of these runs have the configuration {twice[0]}", hint="merge only one of them")
    whole = {"set": abouts[0].get("set", "merged"), "about": abouts[0].get("about", "")}
    directory = MatrixDirectory.create(out, _about(identity, abouts, whole), names)
    done: list[tuple[Path, Result]] = []
    for folder, column in zip(directory.folders, columns, strict=True):
        _copy(column.path, folder)
        if (folder / "result.json").is_file() and len(done) == directory.folders.index(folder):
            done.append((folder, RunDirectory(folder).result()))
    if not done:
        raise StoreError(
            f"{columns[0].path} lacks a result, so the table would be empty",
            hint=f"bob matrix --resume {out} continues it",
        )
    return directory.save_columns(done)


def _searches(
    out: Path, found: Sequence[SearchDirectory], abouts: Sequence[Mapping[str, Any]], identity: str
) -> Result:
    runs = [one.path for one in found]
    _check_finished(abouts, runs, "bob search --resume {} continues it")
    asked = [search_in(about["search"]) for about in abouts]
    _same("the search", [replace(one, part=replace(one.part, shard=1)) for one in asked], runs)
    _same("the request", [about["request"] for about in abouts], runs)
    _check_shards([(one.part.shard, one.part.shards) for one in asked], runs)
    parts = sorted(zip(asked, found, strict=True), key=lambda one: one[0].part.shard)
    lots = [lot for _asked, directory in parts for lot in directory.runs()]
    _same("the environment", [lot.about().get("environment") for lot in lots], lots)
    part = asked[0].part
    sample = None if part.sample is None else part.sample * part.shards
    whole = {
        "search": encode(replace(asked[0], part=Part(1, 1, sample, part.seed))),
        "request": abouts[0]["request"],
        "finished": max(str(about["finished"]) for about in abouts),
        "skipped": list(dict.fromkeys(words for about in abouts for words in about.get("skipped", ()))),
    }
    directory = SearchDirectory.create(out, _about(identity, abouts, whole))
    for lot in lots:
        _copy(lot.path, directory.begin(len(lot.about()["workloads"])))
    return told(directory, directory.results())


def _programs(out: Path, runs: Sequence[Path], abouts: Sequence[Mapping[str, Any]], identity: str) -> Result:
    _check_finished(abouts, runs, "run it again with bob app")
    parts = [RunDirectory(path).result() for path in runs]
    _same("the program", [about["program"] for about in abouts], runs)
    _same("the environment", [asdict(replace(part.environment, mkfs_version="")) for part in parts], runs)
    asked = [
        {**encode(part.device_model), "seed": part.run.seed, "budget": part.run.budget, "program": part.program}
        for part in parts
    ]
    _same("the request", asked, runs)
    if any(part.models for part in parts):
        raise UsageError("bob cannot merge runs with models", hint="ask the models in a separate run")
    numbered = [
        (number, replace(part, subjects=(subject,), protocols=()))
        for about, part in zip(abouts, parts, strict=True)
        for number, subject in zip(about.get("numbers", ()), part.subjects, strict=True)
    ]
    numbers = sorted(number for number, _part in numbered)
    if numbers != list(range(len(numbers))):
        raise UsageError("a shard is missing, or named twice", hint="name one run for each --shard K/N")
    about = _about(
        identity,
        abouts,
        {
            "program": abouts[0]["program"],
            "numbers": numbers,
            "environment": abouts[0]["environment"],
            "finished": max(str(about["finished"]) for about in abouts),
        },
    )
    run = RunDirectory.create(out, about)
    for path in runs:
        _copy(path, out, "run.json", "result.json")
    identified = replace(parts[0].run, id=identity, started=about["started"], finished=about["finished"])
    whole = merged([part for _number, part in sorted(numbered, key=lambda one: one[0])], identified)
    whole = replace(whole, protocols=tuple(protocol for part in parts for protocol in part.protocols))
    run.save_result(whole)
    return whole


def _about(identity: str, abouts: Sequence[Mapping[str, Any]], whole: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": identity,
        "started": min(str(about["started"]) for about in abouts),
        "bob": abouts[0]["bob"],
        **whole,
        "merged": [about["id"] for about in abouts],
    }


def _check_shards(shards: Sequence[tuple[int, int]], runs: Sequence[Path]) -> None:
    _same("the number of shards", [of for _shard, of in shards], runs)
    [of] = {of for _shard, of in shards}
    there = [shard for shard, _of in shards]
    if missing := [shard for shard in range(1, of + 1) if shard not in there]:
        raise UsageError(f"shard {missing[0]}/{of} is missing", hint="name the run directories of all shards")
    if len(there) > of:
        raise UsageError("a shard is named twice", hint="name one run for each --shard K/N")


def _check_finished(abouts: Sequence[Mapping[str, Any]], runs: Sequence[Path], hint: str) -> None:
    for path, about in zip(runs, abouts, strict=True):
        if "finished" not in about:
            raise StoreError(f"{path} is not finished", hint=hint.format(path))


def _same(what: str, found: Sequence[Any], runs: Sequence[Path] | Sequence[RunDirectory]) -> None:
    for one, run in zip(found, runs, strict=True):
        if one != found[0]:
            names = [str(named.path if isinstance(named, RunDirectory) else named) for named in (runs[0], run)]
            detail = _difference(found[0], one)
            said = f"{what} differs between {names[0]} and {names[1]}{detail}"
            raise UsageError(said, hint="merge only runs that agree in it")


def _difference(one: object, other: object) -> str:
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return ""
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    return f" ({', '.join(map(str, names))})" if names else ""


def _without(document: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in names}


def _copy(source: Path, target: Path, *but: str) -> None:
    try:
        copytree(source, target, dirs_exist_ok=True, ignore=ignore_patterns(LOCK, "*.part", *but))
    except OSError as error:
        raise StoreError(f"cannot copy {source} to {target}: {error}", hint="is the disk full?") from None
