"""A file of a finished run that was changed is told by its name, or changes nothing: no verdict, count or evidence."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob import documents
from bob.answer.document import to_json
from bob.claim.verdict import Verdict
from bob.crash import case
from bob.crash.state import CrashState
from bob.errors import BobError
from bob.judge.again import judge_again
from bob.report.saved import load
from bob.store.run_directory import RunDirectory
from bob.witness.document import read
from bob.workload.plain import workload_to_json
from wording import text_with

WORKLOADS = [replace(samples.WORKLOAD, name=name) for name in ("one", "two", "lost")]
REQUEST = {
    "name": "ext4-ordered",
    "fs": "ext4",
    "mkfs_options": "",
    "mount_options": "data=ordered",
    "device": 0,
    "properties": ["overwrite-any", "collateral"],
    "image": "debian-bookworm",
    "budget": 10,
    "seed": 7,
    "write_cache": "volatile",
    "atomic_write_bytes": 512,
}
GOOD = samples.observed((samples.FIRST, 0), (samples.LAST, 1), found=[samples.NOTHING, samples.ALL])
BAD = samples.observed(
    (samples.FIRST, 0),
    (samples.LAST, 1),
    (CrashState(1), 2),
    found=[samples.NOTHING, samples.ALL, samples.OUT_OF_ORDER],
)


@pytest.fixture(scope="module", autouse=True)
def nothing_is_checked() -> Iterator[None]:
    """The sample's log is none, so what is wrong with a log is not told by what is read out of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(case, "checked", lambda _recording, _base: samples.TRACE)
        yield


def finished(path: Path, identity: str = "x", mkfs: str = "mke2fs") -> Path:
    """A run directory with each kind of file in it."""
    about = {"id": identity, "started": "then", "bob": "0.1", "request": REQUEST, "environment": samples.ENVIRONMENT}
    run = RunDirectory.create(path, {**about, "workloads": [workload_to_json(one) for one in WORKLOADS]})
    base = replace(samples.BASE, mkfs=mkfs)
    run.save_base(base)
    recording = replace(samples.RECORDING, timeline=f"timeline {identity}")
    for number, seen in enumerate([GOOD, BAD]):
        folder = run.folder(number, WORKLOADS[number])
        run.save_recording(folder, WORKLOADS[number], base, recording)
        run.save_observed(folder, seen)
    folder = run.folder(2, WORKLOADS[2])
    run.save_loss(folder, WORKLOADS[2], "its guest was lost", "Traceback")
    judge_again(path)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, of another day: its observations are others."""
    path = finished(tmp_path_factory.mktemp("another") / "run", "y", "mke2fs of another day")
    run = RunDirectory(path)
    run.save_observed(run.folder(1, WORKLOADS[1]), GOOD)
    judge_again(path)
    return path


def files(path: Path) -> list[Path]:
    return sorted(one.relative_to(path) for one in path.rglob("*") if one.is_file() and one.name != "lock")


def witnesses(path: Path) -> Any:
    return [(read(one).evidence, read(one).state) for one in sorted(path.glob("witnesses/*.json"))]


READERS: dict[str, Callable[[Path], Any]] = {
    "show": lambda path: to_json(load(path).result),
    "witness": witnesses,
    "judge": lambda path: to_json(judge_again(path)),
}


"""The last one writes, too."""


def outcomes(path: Path) -> dict[str, Any]:
    """What each reader makes of the run: a value, or an error."""
    found: dict[str, Any] = {}
    for name, reader in READERS.items():
        try:
            found[name] = reader(path)
        except BobError as error:
            found[name] = error
    return found


@cache
def expected(path: Path) -> dict[str, Any]:
    """What they make of a run that is whole."""
    return outcomes(path)


def check(whole: Path, folder: Path, changed: Path, damage: Callable[[Path], None]) -> dict[str, Any]:
    """Damage a copy of the run, and hold each reader against what it says of the whole one."""
    copy = folder / "damaged"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(whole, copy)
    damage(copy)
    found = outcomes(copy)
    for name, one in found.items():
        if isinstance(one, BobError):
            assert changed.name in one.message, (name, one.message)
            assert len(one.message) < 1_200
        else:
            assert one == expected(whole)[name], (name, changed)
    return found


def flipped(data: bytes, place: float, bit: int) -> bytes:
    number = int(place * len(data))
    return data[:number] + bytes([data[number] ^ 1 << bit]) + data[number + 1 :]


@given(st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_flipped_bit_is_told_or_changes_nothing(whole: Path, tmp_path: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(files(whole)))
    place, bit = data.draw(st.floats(0, 1, exclude_max=True)), data.draw(st.integers(0, 7))
    check(whole, tmp_path, name, lambda copy: edit(copy / name, lambda old: flipped(old, place, bit)))


def edit(file: Path, change: Callable[[bytes], bytes]) -> None:
    file.write_bytes(change(file.read_bytes()))


def without_checksum(data: bytes) -> bytes:
    """As an older version wrote it."""
    found = documents.opened(data)
    for name in ("checksums", "base_checksum", "recorded_checksum"):
        found.pop(name, None)
    return documents.text(found).encode()


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "a lost tail": lambda data: data[: len(data) * 2 // 3],
    "nothing": lambda _data: b"",
    "zeros": lambda data: bytes(len(data)),
    "other line breaks": lambda data: data.replace(b"\n", b"\r\n"),
    "a tail of something else": lambda data: data + b"{}",
    "its beginning twice": lambda data: data[:40] + data,
    "compressed": lambda _data: b"\x1f\x8b\x08\x00garbage",
    "written anew by another program": lambda data: data.replace(b",\n", b", \n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_file_that_was_changed_is_told(whole: Path, tmp_path: Path, change: str) -> None:
    for name in files(whole):
        check(whole, tmp_path, name, lambda copy, name=name: edit(copy / name, CHANGES[change]))  # type: ignore[misc]


RECORDED = Path("workloads/001-two-natural/recorded.json")
OBSERVED = RECORDED.with_name("observed.json")


@pytest.mark.parametrize("name", [RECORDED, OBSERVED, RECORDED.with_name("log"), RECORDED.with_name("timeline")])
def test_a_file_of_the_recording_that_was_changed_is_refused(whole: Path, tmp_path: Path, name: Path) -> None:
    for place in (0.1, 0.5, 0.9):
        found = check(whole, tmp_path, name, lambda copy, at=place: edit(copy / name, lambda old: flipped(old, at, 0)))  # type: ignore[misc]
        assert isinstance(found["judge"], BobError)


def test_files_of_two_workloads_that_were_swapped_are_told(whole: Path, tmp_path: Path) -> None:
    def swap(copy: Path) -> None:
        one, two = copy / OBSERVED, copy / "workloads/000-one-natural/observed.json"
        kept = one.read_bytes()
        one.write_bytes(two.read_bytes())
        two.write_bytes(kept)

    found = check(whole, tmp_path, OBSERVED, swap)
    assert isinstance(found["judge"], BobError)


@pytest.mark.parametrize("name", [OBSERVED, RECORDED.with_name("timeline"), Path(f"bases/{samples.BASE.name}.json")])
def test_a_file_of_another_run_is_told(whole: Path, another: Path, tmp_path: Path, name: Path) -> None:
    found = check(whole, tmp_path, name, lambda copy: edit(copy / name, lambda _old: (another / name).read_bytes()))
    assert isinstance(found["judge"], BobError)


@pytest.mark.parametrize("name", ["result.json", "run.json"])
def test_what_is_said_of_another_run_is_told(whole: Path, another: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(whole, tmp_path / "run")
    shutil.copy(another / name, tmp_path / "run" / name)
    with pytest.raises(BobError) as refused:
        load(tmp_path / "run")
    said = text_with(str(refused.value).replace(str(tmp_path), "TMP"), "result.json")
    assert said.replace(" y", " x") == snapshot("TMP/run/result.json belongs to the run x, but TMP/run is the run x")
    if name == "run.json":
        with pytest.raises(BobError) as refused:
            judge_again(tmp_path / "run")
        assert text_with(str(refused.value).replace(str(tmp_path), "TMP"), "recorded.json") == snapshot(
            "TMP/run/workloads/000-one-natural/recorded.json is damaged: it was changed since bob wrote it: it belongs to another run than run.json"
        )


def test_what_was_observed_and_is_gone_is_told(whole: Path, tmp_path: Path) -> None:
    """A run that was stopped has none of it, and is unknown."""
    shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "run" / OBSERVED).unlink()
    assert judge_again(tmp_path / "run").subjects[0].answers[0].verdict is Verdict.UNKNOWN
    RunDirectory(tmp_path / "run").note(finished="now")
    with pytest.raises(BobError) as refused:
        judge_again(tmp_path / "run")
    assert text_with(str(refused.value).replace(str(tmp_path), "TMP"), "001-two-natural", "observed.json") == snapshot(
        "TMP/run/workloads/001-two-natural is damaged: the run was finished, but observed.json is missing"
    )


def test_a_checksum_that_was_taken_away_is_told(whole: Path, tmp_path: Path) -> None:
    for name in (RECORDED, OBSERVED, Path(f"bases/{samples.BASE.name}.json")):
        found = check(whole, tmp_path, name, lambda copy, name=name: edit(copy / name, without_checksum))  # type: ignore[misc]
        assert isinstance(found["judge"], BobError)


def test_a_run_of_an_older_version_is_read_as_it_was(whole: Path, tmp_path: Path) -> None:
    def age(copy: Path) -> None:
        for name in files(copy):
            if name.suffix == ".json":
                edit(copy / name, without_checksum)

    found = check(whole, tmp_path, Path("run.json"), age)
    assert not any(isinstance(one, BobError) for one in found.values())
    assert not RunDirectory(tmp_path / "damaged").is_sealed
    RunDirectory(tmp_path / "damaged").note(finished="now")
    assert not RunDirectory(tmp_path / "damaged").is_sealed


@given(
    st.dictionaries(
        st.text(max_size=3),
        st.one_of(st.integers(), st.text(), st.lists(st.floats(allow_nan=False, allow_infinity=False))),
    )
)
def test_a_document_reads_back_the_same(document: dict[str, Any]) -> None:
    document.pop(documents.CHECKSUM, None)
    written = documents.sealed(documents.text(document))
    assert documents.opened(written, required=True) == document
    assert documents.checksum_in(written) is not None


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", '{"a": -Infinity}', '{"a": 1e999}', '{"a": 1, "a": 1}', "[" * 9999]
)
def test_what_is_no_document(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a finite number|occurs twice|nested too deeply"):
        documents.parse(text)
