"""Witnesses as they are kept, many in one file and data as a recipe: they read as they did, and damage is refused."""

from __future__ import annotations

import json
import lzma
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.cli.main import run
from bob.documents import opened
from bob.errors import MalformedError, StoreError
from bob.guest.hypervisor import Hypervisor
from bob.schema import decode, encode
from bob.witness import bundle
from bob.witness.document import files_in, read
from bob.witness.recipes import DataRecipe, from_recipe, to_recipe
from bob.workload.pattern import FIRST_SETUP_NUMBER, UNSHADED, contents, stale
from report.witnesses import documents
from witness.test_witness import document as one_document
from witness.test_witness import stored
from wording import text_with


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder ``witnesses`` with some in it."""
    folder = tmp_path / "run" / "witnesses"
    folder.mkdir(parents=True)
    for name, document in documents().items():
        (folder / f"{name}.json").write_text(json.dumps(document, indent=1))
    return folder


def read_packed(packed: Path) -> Any:
    return opened(lzma.decompress(packed.read_bytes()))


def write_packed(packed: Path, document: Any) -> None:
    packed.write_bytes(lzma.compress(json.dumps(document).encode()))


def test_witnesses_read_the_same_from_a_bundle(folder: Path) -> None:
    before = {path: (read(path), bundle.load(path)) for path in files_in([folder.parent])}
    assert len(before) > 1
    size = sum(path.stat().st_size for path in before)
    packed = bundle.pack(folder)
    assert not folder.exists()
    assert files_in([folder.parent]) == sorted(before)
    assert {path: (read(path), bundle.load(path)) for path in before} == before
    assert packed.stat().st_size < size
    assert all(bundle.is_there(path) for path in before)
    assert not bundle.is_there(folder / "another.json")


def test_a_matrix_has_one_bundle_for_all_its_configurations(folder: Path) -> None:
    matrix = folder.parent.parent
    shutil.copytree(folder.parent, matrix / "xfs")
    (matrix / "result.json").write_text("{}")
    before = {path: (read(path), bundle.load(path)) for path in files_in([matrix])}
    assert {path.parent.parent.name for path in before} == {"run", "xfs"}
    packed = bundle.pack(matrix)
    assert sorted(matrix.rglob("*.*")) == sorted([packed, matrix / "result.json"])
    assert files_in([matrix]) == sorted(before)
    assert {path: (read(path), bundle.load(path)) for path in before} == before
    assert all(map(bundle.is_there, before))
    [first, *_] = before
    assert not bundle.is_there(matrix / "ext4" / "witnesses" / first.name)
    assert not bundle.is_there(matrix / "witnesses" / first.name)
    assert len(read_packed(packed)["shared"]["environment"]) == 1


def test_a_bundle_of_its_own_comes_before_that_of_the_matrix(folder: Path) -> None:
    [first, *_] = files_in([folder.parent])
    bundle.pack(folder.parent.parent)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / first.name).write_text(json.dumps({**bundle.load(first), "program": "its own"}))
    bundle.pack(folder)
    assert bundle.load(first)["program"] == "its own"


def test_each_part_that_witnesses_share_is_there_once(folder: Path) -> None:
    """A program is a part that only some witnesses have; a bundle of before shares fewer parts."""
    [first, second, third, *_] = files_in([folder.parent])
    for path in (first, second):
        path.write_text(json.dumps({**json.loads(path.read_text()), "program": "the same"}))
    before = {path: bundle.load(path) for path in files_in([folder.parent])}
    packed = bundle.pack(folder)
    document = read_packed(packed)
    assert document["shared"]["program"] == ["the same"]
    assert json.dumps(document).count('"the same"') == 1
    assert "program" not in document["witnesses"][third.stem]
    statuses = document["shared"].pop("status_before")
    for found in document["witnesses"].values():
        found["status_before"] = statuses[found["status_before"]]
    assert {path: bundle.load(path) for path in before} == before
    write_packed(packed, document)
    assert {path: bundle.load(path) for path in before} == before


def test_a_witness_that_a_bundle_has_not(folder: Path) -> None:
    bundle.pack(folder)
    with pytest.raises(MalformedError, match=r"another\.json"):
        read(folder / "another.json")


def test_a_bundle_that_was_made_anew_is_read_anew(folder: Path) -> None:
    packed = bundle.pack(folder)
    [first, *_] = files_in([folder.parent])
    read(first)
    document = read_packed(packed)
    del document["witnesses"][first.stem]
    write_packed(packed, document)
    assert first not in files_in([folder.parent])


def damaged(**changes: Any) -> str:
    return json.dumps({"schema": bundle.SCHEMA, "shared": {}, "witnesses": {"a": {}}, **changes})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is not a bundle"),
        ("[]", "is not a JSON object"),
        (damaged(schema="bob.witness/1"), "has schema 'bob.witness/1'"),
        (damaged(witnesses=[]), "witnesses: expected object"),
        (damaged(shared=None), "shared: expected object"),
        (damaged(), "has schema None, not 'bob.witness/1'"),
        (damaged(witnesses={"a": 7}, shared={"base": []}), r"witnesses\[...\]: expected object"),
        (damaged(witnesses={"a": {"base": 7}}, shared={"base": []}), "is damaged"),
    ],
)
def test_what_is_no_bundle_is_refused(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / bundle.FILE).write_bytes(lzma.compress(text.encode()))
    with pytest.raises(MalformedError, match=why):
        read(tmp_path / "witnesses" / "a.json")


@pytest.mark.parametrize("content", [b"", b"{}", lzma.compress(b"{}")[:-9]])
def test_what_is_not_compressed_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / bundle.FILE).write_bytes(content)
    with pytest.raises(MalformedError, match="is not a bundle"):
        read(tmp_path / "witnesses" / "a.json")


def test_what_cannot_be_packed_stays(folder: Path, tmp_path: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(StoreError):
        bundle.pack(folder)
    assert (folder / "notes.txt").read_text() == "mine"
    for wrong in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(StoreError):
            bundle.pack(wrong)


def test_the_rest_of_a_program_may_still_write_single_ones(folder: Path) -> None:
    one = documents()["overwrite-any"]
    bundle.pack(folder)
    folder.mkdir()
    (folder / "later.json").write_text(json.dumps(one))
    assert folder / "later.json" in files_in([folder.parent])
    assert read(folder / "later.json")


# Data comes out of its recipe as it was, and what is damaged is refused


SECTOR = st.one_of(
    st.binary(min_size=512, max_size=512),
    st.just(bytes(512)),
    st.just(stale(512)),
    st.tuples(
        st.one_of(st.integers(1, 400), st.integers(FIRST_SETUP_NUMBER, FIRST_SETUP_NUMBER + 127)),
        st.integers(0, 20).map(lambda sector: sector * 512),
    ).map(lambda found: contents(*found, 512)),
    st.integers(0, 600).map(lambda offset: contents(3, offset, 512)),
    st.integers(UNSHADED, 5).map(lambda shade: contents(3, 512, 512, shade)),
)


@given(st.lists(SECTOR, max_size=12))
def test_round_trip(sectors: list[bytes]) -> None:
    data = b"".join(sectors)
    assert from_recipe(decode(DataRecipe, json.loads(json.dumps(encode(to_recipe(data)))))) == data


def test_a_long_write_is_a_line() -> None:
    data = contents(7, 4096, 2 * 1024 * 1024)
    recipe = to_recipe(data + bytes(512))
    assert recipe.patterns == ((0, 4096, 7, 4096, 0),)
    assert len(json.dumps(encode(recipe))) < 200


def test_patterns_without_a_shade_are_of_before_there_were_any() -> None:
    rest = encode(to_recipe(bytes(1024)))["rest"]
    recipe = decode(DataRecipe, {"sectors": 4, "patterns": [[1, 2, 3, 512]], "rest": rest})
    assert from_recipe(recipe) == bytes(512) + contents(3, 512, 1024, UNSHADED) + bytes(512)
    assert to_recipe(from_recipe(recipe)).patterns == ((1, 2, 3, 512, UNSHADED),)


@pytest.mark.parametrize("sectors", [0, 1, 3])
def test_too_few_or_too_many_sectors(sectors: int) -> None:
    recipe = DataRecipe(sectors, (), to_recipe(b"?" * 1024).rest)
    with pytest.raises(ValueError, match="sectors"):
        from_recipe(recipe)


# A witness that is cut off, of another schema or of another kernel is refused in one line, before a guest starts

VERBS = {
    "replay": ["replay"],
    "show": ["witness", "show"],
    "shrink": ["witness", "shrink", "--output", "new"],
    "export": ["witness", "export", "--dm-log", "new"],
}

Refused = Callable[[list[str]], tuple[int, list[str]]]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """The exit code and the lines of a command that must not come so far as to start anything, or to write a file."""

    def started(*_arguments: object, **_named: object) -> NoReturn:
        raise AssertionError("a guest was about to be started")

    monkeypatch.setattr(Hypervisor, "open", started)
    monkeypatch.setattr("bob.run.witness_image.image_called", lambda *_: SimpleNamespace(kernel_release="6.12.1-amd64"))
    monkeypatch.chdir(tmp_path)

    def refused(words: list[str]) -> tuple[int, list[str]]:
        code = run([*words, "witness.json"])
        said = capsys.readouterr()
        assert said.out == ""
        assert not Path("new").exists()
        return code, said.err.splitlines()

    return refused


@pytest.mark.parametrize("verb", VERBS)
def test_one_that_is_cut_off(refused: Refused, tmp_path: Path, verb: str) -> None:
    file = stored(tmp_path, one_document())
    file.write_bytes(file.read_bytes()[:-100])
    code, lines = refused(VERBS[verb])
    assert code == 8
    assert len(lines) == 2
    assert text_with(lines[0], "witness.json") == snapshot(
        "bob: witness.json is not a witness: Unterminated string starting at: line 1 column 2656 (char 2655)"
    )
    assert lines[1] == snapshot("hint: was it truncated?")


@pytest.mark.parametrize("verb", VERBS)
def test_one_whose_kernel_is_no_text(refused: Refused, tmp_path: Path, verb: str) -> None:
    document = one_document()
    stored(tmp_path, document | {"environment": {**document["environment"], "kernel": 6.1}})
    code, lines = refused(VERBS[verb])
    assert (code, len(lines)) == (8, 2)
    assert text_with(lines[0], "witness.json") == snapshot(
        "bob: witness.json is damaged: environment[...]: expected str, got float"
    )


@pytest.mark.parametrize("verb", VERBS)
def test_one_of_another_schema(refused: Refused, tmp_path: Path, verb: str) -> None:
    stored(tmp_path, one_document() | {"schema": "bob.witness/2"})
    assert refused(VERBS[verb]) == (
        8,
        [
            snapshot("bob: witness.json has schema 'bob.witness/2', not 'bob.witness/1'"),
            snapshot("hint: a later bob wrote it; use that bob, or a later one"),
        ],
    )


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("replay", ", or try this image with --any-kernel"),
        ("shrink", ""),
        ("export", ", or try this image with --any-kernel"),
    ],
)
def test_one_of_another_kernel(refused: Refused, tmp_path: Path, verb: str, more: str) -> None:
    stored(tmp_path, one_document())
    assert refused(VERBS[verb]) == (
        2,
        [
            snapshot("bob: the witness witness.json is of kernel 6.1.0-56-amd64, but the image has 6.12.1-amd64"),
            f"hint: name an image with that kernel with --image{more}",
        ],
    )


@pytest.mark.parametrize("verb", ["replay", "export"])
def test_another_kernel_may_do(refused: Refused, tmp_path: Path, verb: str) -> None:
    """Then a guest is about to be started."""
    stored(tmp_path, one_document())
    code, lines = refused([*VERBS[verb], "--any-kernel"])
    assert code == 70
    assert any("guest was about to" in line for line in lines)


def test_a_state_that_no_recording_has(refused: Refused, tmp_path: Path) -> None:
    made = json.loads(json.dumps(one_document()))
    made["crash"]["state"]["kept"] = "all"
    stored(tmp_path, made)
    code, lines = refused(VERBS["export"])
    assert code == 8
    assert text_with(lines[0], "witness.json") == snapshot(
        "bob: witness.json is damaged: crash.state.kept: expected array, got 'all'"
    )


def test_one_of_a_crash_during_recovery(refused: Refused, tmp_path: Path) -> None:
    stored(
        tmp_path,
        one_document()
        | {"claim": "recovery", "property": "recovery-idempotent", "question": {"required": [], "later": None}},
    )
    code, lines = refused(VERBS["export"])
    assert code == 2
    assert text_with(lines[0], "witness.json") == snapshot(
        "bob: the witness witness.json is of a crash during recovery"
    )
