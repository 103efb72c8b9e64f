"""Whatever is found after a crash can be told: whose data, zeros, stale medium, or none of these."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.workload import operations as ops
from bob.workload import pattern
from bob.workload.kinds import ChangeKind, Relation, changes, relation
from bob.workload.language import parse
from bob.workload.operations import Operation, Workload
from bob.workload.pattern import (
    CELL_BYTES,
    FIRST_SETUP_NUMBER,
    MAX_OPERATIONS,
    UNSHADED,
    UNSHADED_PATTERN,
    contents,
    describe,
    operations_in,
    place,
    stale,
)
from bob.workload.shades import (
    ALPHABET,
    SHADES,
    SHORT_BYTES,
    Shades,
    _alphabet,
    _taken,
    _WrittenRange,
    first_shade,
    shaded,
)
from bob.workload.simulation import RefusedError, simulate
from tests.workload.generators import random_workload
from wording import text_with

NUMBERS = st.integers(1, MAX_OPERATIONS - 1)
OFFSETS = st.one_of(st.integers(0, 10_000), st.integers(0, 2**33))
SHADE = st.one_of(st.none(), st.integers(UNSHADED, SHADES - 1))


def name(number: int) -> str:
    return f"operation {number}" if number < FIRST_SETUP_NUMBER else "initial data"


@given(NUMBERS, OFFSETS, st.integers(0, 9000), st.integers(0, 9000), SHADE)
def test_contents_depend_on_operation_offset_and_shade_only(
    number: int, offset: int, skip: int, length: int, shade: int | None
) -> None:
    assert contents(number, offset, skip + length, shade)[skip:] == contents(number, offset + skip, length, shade)
    assert len(contents(number, offset, length, shade)) == length


@given(NUMBERS, OFFSETS, st.integers(2 * CELL_BYTES - 1, 9000), SHADE)
def test_any_range_is_recognised(number: int, offset: int, length: int, shade: int | None) -> None:
    data = contents(number, offset, length, shade)
    assert operations_in(data) == {number}
    assert describe(data, offset) == f"{name(number)} ({length:,} B)"


@given(NUMBERS, OFFSETS, SHADE)
def test_a_cell_says_what_it_is(number: int, offset: int, shade: int | None) -> None:
    start = offset // CELL_BYTES * CELL_BYTES
    cell = place(contents(number, start, CELL_BYTES, shade))
    assert cell == (number, start, first_shade(number) if shade is None else shade)
    assert all(place(contents(number, start, CELL_BYTES)[:length]) is None for length in range(CELL_BYTES))


@pytest.mark.parametrize("shade", range(UNSHADED, SHADES))
def test_cells_name_no_other_operation_from_any_place_in_them(shade: int) -> None:
    """What begins within a cell, or where two meet, is no cell of any shade."""
    for numbers in itertools.pairwise((1, 0x7F, 0x80, 0x1111, 9_999, FIRST_SETUP_NUMBER, MAX_OPERATIONS - 1, 1)):
        for other in (UNSHADED, 0, 1, 32, shade):
            pieces = contents(numbers[0], 0xABCDEF000, 48, shade), contents(numbers[1], 0x30, 48, other)
            for cut in range(16):
                assert operations_in(pieces[0][:48] + pieces[1][cut:]) == set(numbers)


@given(
    st.lists(st.tuples(NUMBERS, OFFSETS, st.integers(31, 6000), SHADE), max_size=5),
    st.one_of(st.binary(max_size=20), st.integers(0, 4096).map(bytes)),
)
def test_operations_are_found_wherever_they_stand(
    pieces: list[tuple[int, int, int, int | None]], between: bytes
) -> None:
    data = between.join(contents(*piece) for piece in pieces)
    assert {number for number, *_ in pieces} <= operations_in(data) == operations_by_hand(data)
    assert operations_in(stale(9000) + bytes(9000)) == frozenset()


def operations_by_hand(data: bytes) -> set[int]:
    cells = (place(data[at : at + CELL_BYTES]) for at in range(len(data)))
    return {cell.operation for cell in cells if cell is not None}


PIECE = st.one_of(st.just("zeros"), st.just("stale medium"), st.integers(1, 30).map(name))


@given(st.lists(st.tuples(PIECE, st.integers(2, 40)), min_size=1, max_size=6), st.integers(0, 600))
def test_mixtures_of_whole_cells(pieces: list[tuple[str, int]], first: int) -> None:
    start = position = first * CELL_BYTES
    data = b""
    merged: list[tuple[str, int]] = []
    for what, cells in pieces:
        data += made_of(what, position, cells * CELL_BYTES)
        position += cells * CELL_BYTES
        if merged and merged[-1][0] == what:
            merged[-1] = (what, merged[-1][1] + cells * CELL_BYTES)
        else:
            merged.append((what, cells * CELL_BYTES))
    assert describe(data, start) == ", ".join(f"{what} ({length:,} B)" for what, length in merged)


def made_of(what: str, offset: int, length: int) -> bytes:
    if what == "zeros":
        return bytes(length)
    if what == "stale medium":
        return stale(offset + length)[offset:]
    return contents(int(what.split()[1]), offset, length)


@given(st.lists(st.tuples(PIECE, st.integers(1, 9000)), max_size=6), st.integers(0, 9000), st.integers(0, 1))
def test_whole_blocks_are_named_as_their_cells_are(pieces: list[tuple[str, int]], start: int, moved: int) -> None:
    data = b""
    for what, length in pieces:
        data += made_of(what, start + len(data) + moved * 4096, length)
    told = describe(data, start)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pattern, "_uniform", lambda _block, _offset: None)
        assert describe(data, start) == told


@given(st.lists(st.tuples(PIECE, st.integers(31, 500)), min_size=1, max_size=5), st.integers(0, 5000))
def test_mixtures_that_change_anywhere(pieces: list[tuple[str, int]], start: int) -> None:
    data = b""
    for what, length in pieces:
        data += made_of(what, start + len(data), length)
    told = describe(data, start)
    runs = re.findall(r"(?:^|, )([a-z]+(?: [a-z0-9]+)*) \(([\d,]+) B\)", told)
    assert sum(int(length.replace(",", "")) for _what, length in runs) == len(data)
    names = [what for at, (what, _length) in enumerate(pieces) if at == 0 or pieces[at - 1][0] != what]
    # Where two meet, up to a few bytes can be of both (all data begins with "[op"): the names still come in order.
    assert [what for what, _length in runs] == names


@pytest.mark.parametrize(
    ("data", "offset", "told"),
    [
        (b"", 0, "nothing"),
        (b"\0", 5, "zeros (1 B)"),
        (b"?", 0, "unknown (1 B)"),
        (b"<op03:", 16, "operation 3 (6 B)"),
        (b"[op03:", 16, "operation 3 (6 B)"),
        (contents(3, 16, 6, 77), 16, "operation 3 (6 B)"),
        (contents(3, 17, 4, 77), 17, "unknown (4 B)"),
        (contents(3, 0, 20, 1) + contents(3, 20, 40), 0, "operation 3 (60 B)"),
        (b"garbage, and more of it.", 0, "unknown (24 B)"),
        (contents(3, 4096, 64), 0, snapshot("misplaced data of operation 3 (64 B)")),
        (contents(FIRST_SETUP_NUMBER + 72, 4096, 64), 0, snapshot("misplaced initial data (64 B)")),
        (contents(FIRST_SETUP_NUMBER + 2, 0, 100) + bytes(3996), 0, snapshot("initial data (100 B), zeros (3,996 B)")),
        (
            contents(FIRST_SETUP_NUMBER + 2, 0, 100) + contents(3, 100, 60),
            0,
            snapshot("initial data (100 B), operation 3 (60 B)"),
        ),
        (
            contents(FIRST_SETUP_NUMBER + 2, 0, 100) + stale(4096)[100:],
            0,
            snapshot("initial data (100 B), stale medium (3,996 B)"),
        ),
        (
            contents(2, 0, 512) + contents(FIRST_SETUP_NUMBER + 2, 512, 512) + b"?" * 16,
            0,
            snapshot("operation 2 (512 B), initial data (512 B), unknown (16 B)"),
        ),
    ],
)
def test_what_people_are_told(data: bytes, offset: int, told: str) -> None:
    assert describe(data, offset) == told


@pytest.mark.parametrize("shade", [UNSHADED - 1, SHADES])
def test_shades_that_are_none(shade: int) -> None:
    with pytest.raises(ValueError) as refused:
        contents(1, 0, 10, shade)
    assert text_with(str(refused.value), shade).replace(str(shade), "N") == snapshot(
        "shade N is out of range (0 to 185)"
    )


@pytest.mark.parametrize("number", [-1, MAX_OPERATIONS])
def test_numbers_that_do_not_fit(number: int) -> None:
    with pytest.raises(ValueError) as refused:
        contents(number, 0, 10)
    assert str(refused.value).replace(str(number), "N") == snapshot("operation number N is out of range (0 to 10127)")


@pytest.mark.parametrize("word", [b"ffff", b"2710", b"2711", b"0003", b"007f"])
@pytest.mark.parametrize("form", [b"<%s:000000:%02x>", b"[%s:000000:%02X]"])
def test_a_cell_that_names_no_operation_is_nobodys(word: bytes, form: bytes) -> None:
    data = b"".join(form % (word.upper() if form[:1] == b"[" else word, cell) for cell in range(256))
    assert operations_in(data) == frozenset()
    assert describe(data) == "unknown (4,096 B)"


# Each byte that is written differs from all that could be in its place, or the operation is refused

FILES = st.sampled_from(["/a", "/b"])
FEW = st.one_of(
    st.builds(ops.Write, FILES, st.integers(0, 20), st.integers(1, 40)),
    st.builds(ops.Write, FILES, st.none(), st.integers(1, 20), st.sampled_from([ops.How.PLAIN, ops.How.TRUNC])),
    st.builds(ops.Truncate, FILES, st.integers(0, 40)),
    st.builds(ops.Fallocate, FILES, st.integers(0, 20), st.integers(1, 20)),
)


@given(st.lists(FEW, max_size=2), st.lists(FEW, min_size=1, max_size=5))
def test_every_byte_differs_from_what_any_set_of_earlier_operations_leaves(
    setup: list[Operation], operations: list[Operation]
) -> None:
    workload = Workload("few", (ops.Create("/a"), ops.Create("/b"), *setup), tuple(operations))
    before, performed = what_is_written(workload)
    for number, (path, offset, data) in enumerate(performed):
        if data is None:
            continue
        medium = stale(offset + len(data))[offset:]
        for size in range(number + 1):
            for there in combinations(range(number), size):
                found = left(path, before, [performed[one] for one in there])
                found = found.ljust(offset + len(data), b"\0")[offset : offset + len(data)]
                assert all(new not in (old, 0, free) for new, old, free in zip(data, found, medium, strict=True))


Effect = tuple[str, int, bytes | None]


def what_is_written(workload: Workload) -> tuple[dict[str, bytes], list[Effect]]:
    """The initial files, and what each operation does: (path, offset, data), data None for a new size."""
    history, _setup, performed = simulate(workload)
    files = {path: history.steps[0].inodes[thing].content for path, thing in history.steps[0].names.items()}
    effects: list[Effect] = []
    for one in performed:
        match one.operation:
            case ops.Truncate(path, size):
                effects.append((path, size, None))
            case ops.Write(path):
                effects.append((path, one.offset, one.data))
            case _:
                effects.append(("", 0, None))
    return files, effects


def left(path: str, before: dict[str, bytes], effects: list[Effect]) -> bytes:
    file = before[path]
    for where, offset, data in effects:
        if where == path and data is None:
            file = file[:offset].ljust(offset, b"\0")
        elif where == path and data is not None:
            file = file.ljust(offset, b"\0")[:offset] + data + file[offset + len(data) :]
    return file


@given(st.integers(0, 2**32))
def test_what_writes_to_one_place_of_a_file_or_an_attribute_differs_everywhere(seed: int) -> None:
    history, _setup, performed = simulate(random_workload(Random(seed), most=12))
    values: dict[tuple[int, str, int], set[int]] = defaultdict(lambda: {0})
    first = history.steps[0].inodes
    placed = [(thing, "", 0, inode.content) for thing, inode in first.items()]
    for one in performed:
        if one.data and isinstance(one.operation, ops.Write | ops.Setxattr):
            attribute = one.operation.name if isinstance(one.operation, ops.Setxattr) else ""
            thing = history.steps[one.number].thing(one.operation.path)
            placed.append((thing, attribute, one.offset, one.data))
    for thing, attribute, offset, data in placed:
        for at, byte in enumerate(data, start=offset):
            assert byte not in values[thing, attribute, at] and byte != stale(16 * (at // 16 + 1))[at]
            values[thing, attribute, at].add(byte)


@pytest.mark.parametrize("length", [1, 3, 15, 16, 30])
def test_what_is_too_short_to_be_recognised_is_like_nothing_else(length: int) -> None:
    setup = f"write /gone 0 9000; write /f 0 {length}; mkdir /d"
    operations = f"write /n 0 {length}; setxattr /n user.x {length}; setxattr /n user.x 16; write /f 5 1; write /m 0 4K"
    _history, made, performed = simulate(Workload("short", parse(setup), parse(operations)))
    data = [(one.offset, one.data) for one in (*made, *performed) if one.data]
    for at in range(length):
        shown = [found[at - offset] for offset, found in data if offset <= at < offset + len(found)]
        assert len(set(shown)) == len(shown) >= 5


@pytest.mark.parametrize("length", [1, 4096])
def test_where_there_are_too_many_the_operation_is_refused_by_name(length: int) -> None:
    made: set[bytes] = set()
    taken: list[Operation] = [ops.Write("/f", 0, length)]
    with pytest.raises(RefusedError, match=r"'write /f 0 \S+'") as refusal:
        while True:
            made |= {one.data[:1] for one in simulate(Workload("many", (), tuple(taken)))[2]}
            taken.append(ops.Write("/f", 0, length))
    assert SHADES // 2 < len(made) == len(taken) - 1 and refusal.value.operation == taken[-1]


def test_a_long_log_is_not_refused() -> None:
    log = tuple(ops.Write("/log", None, 500) for _ in range(1000))
    assert len(simulate(Workload("log", (), log))[2]) == 1000


def test_a_shade_depends_on_what_came_before_alone() -> None:
    operations = parse("write /f 0 1; write /f 0 100; write /g 0 5; setxattr /f user.x 1; write /f 50 9")
    whole = simulate(Workload("whole", parse("write /f 0 40K"), operations))[2]
    for some in range(len(operations)):
        assert simulate(Workload("some", parse("write /f 0 40K"), operations[:some]))[2] == whole[:some]


def test_the_first_pattern_is_written_as_it_was() -> None:
    operations = parse("write /f 0 16; setxattr /f user.x 3")
    old = Workload("old", parse("write /f 0 40"), operations, pattern=UNSHADED_PATTERN)
    history, setup, performed = simulate(old)
    assert setup[0].data == b"<op80:000000:00><op80:000000:01><op80:00"
    assert [one.data for one in performed] == [b"<op01:000000:00>", b"<op"]
    assert history.steps[1].inodes[1].content == contents(1, 0, 16, UNSHADED) + setup[0].data[16:]
    assert operations_in(history.steps[1].inodes[1].content) == {1, FIRST_SETUP_NUMBER}


def test_the_alphabet_of_each_position_has_as_many_characters_as_there_are_shades() -> None:
    for position in range(16):
        found = _alphabet(position)
        assert len(set(found)) == ALPHABET
        assert not {0, ord(" "), 127} & set(found)


def test_the_shades_that_are_taken_are_those_in_which_a_byte_agrees() -> None:
    for number in range(300):
        rng = Random(number)
        mine, theirs = (f"op{rng.randrange(100):02}".encode() for _ in range(2))
        if mine == theirs:
            continue
        shade = rng.randrange(SHADES)
        there = shaded(b"[" + theirs + b":000000:00]", shade)
        agreeing = {
            other
            for other in range(SHADES)
            if any(a == b for a, b in zip(shaded(b"[" + mine + b":000000:00]", other), there, strict=True))
        }
        assert _taken([_WrittenRange(0, 16, shade, theirs)], mine) == agreeing


@pytest.mark.parametrize(("length", "is_short"), [(SHORT_BYTES - 1, True), (SHORT_BYTES, False)])
def test_what_has_a_whole_cell_may_be_like_others_elsewhere(length: int, is_short: bool) -> None:
    shades = Shades()
    first = shades.choose(1, b"op01", "a", 0, length)
    assert (shades.choose(2, b"op02", "b", 0, length) != first) == is_short


# What kinds of change operations make, and how two are related

SETUP = "mkdir /d; mkdir /e; write /d/a 0 8192; write /e/b 0 100; write /d/c 0 100"


def changes_of(operations: str) -> list[tuple[int, str]]:
    history, _setup, _performed = simulate(Workload("w", tuple(parse(SETUP)), tuple(parse(operations))))
    return [(change.number, change.kind.value) for change in changes(history)]


@pytest.mark.parametrize(
    ("operation", "kinds"),
    [
        ("write /d/a 0 4096", ["overwrite"]),
        ("append /d/a 10", ["append"]),
        ("write /d/a 8000 4096", ["overwrite", "append"]),
        ("write /d/a 9000 10", ["append"]),
        ("append /d/a 10 trunc", ["truncate-down", "append"]),
        ("write /d/new 0 10", ["create", "append"]),
        ("create /d/new", ["create"]),
        ("truncate /d/a 10", ["truncate-down"]),
        ("truncate /d/a 9000", ["truncate-up"]),
        ("truncate /d/a 8192", []),
        ("fallocate /d/a 0 10K", ["fallocate"]),
        ("fallocate /d/a 0 10K keep", []),
        ("fallocate /d/a 0 10K punch", ["zero"]),
        ("fallocate /d/a 8K 1K punch", []),
        ("fallocate /d/a 0 10K zero", ["zero", "fallocate"]),
        ("fallocate /d/a 0 4K zero", ["zero"]),
        ("fallocate /d/a 8K 4K zero", ["fallocate"]),
        ("fallocate /d/a 0 10K zero-keep", ["zero"]),
        ("fallocate /d/a 0 4K collapse", ["shift"]),
        ("fallocate /d/a 4K 8K insert", ["shift"]),
        ("mknod /d/p fifo", ["create"]),
        ("utimes /d 1000000000", ["setxattr"]),
        ("copy_file_range /d/a /e/b 0 4096", ["overwrite", "append"]),
        ("copy_file_range /d/a /e/b 4096 100", ["append"]),
        ("copy_file_range /d/a /e/new 0 10", ["create", "append"]),
        ("reflink /d/a /e/b", ["overwrite", "append"]),
        ("open /d/a as f", []),
        ("tmpfile /d as f", []),
        ("rename /d/a /e/a", ["rename"]),
        ("rename /d/a /e/b", ["rename-over"]),
        ("rename /d/a /e/a noreplace", ["rename"]),
        ("rename /d/a /e/b exchange", ["rename-over"]),
        ("rename /d /e exchange", ["rename-over"]),
        ("link /d/a /e/a", ["link"]),
        ("symlink a /e/a", ["symlink"]),
        ("unlink /d/a", ["unlink"]),
        ("mkdir /d/new", ["mkdir"]),
        ("setxattr /d/a user.x 4", ["setxattr"]),
        ("chmod /d 700", ["setxattr"]),
        ("chown /d/a 1:1", ["setxattr"]),
        ("fsync /d/a", []),
        ("sync", []),
    ],
)
def test_an_operation_is_changes_of_kinds(operation: str, kinds: list[str]) -> None:
    assert changes_of(operation) == [(1, kind) for kind in kinds]


@pytest.mark.parametrize(
    ("operations", "kinds"),
    [
        ("open /d/a as f; unlink /d/a; write f 0 10; truncate f 20; chmod f 600; close f",
         [(2, "unlink"), (3, "overwrite"), (4, "truncate-down"), (5, "setxattr")]),
        ("tmpfile /d as f; append f 10; link f /d/x; link f /d/y", [(2, "append"), (3, "create"), (4, "link")]),
        ("open /d as f; utimes f 1000000000", [(2, "setxattr")]),
    ],
)  # fmt: skip
def test_what_is_done_to_an_open_file(operations: str, kinds: list[tuple[int, str]]) -> None:
    assert changes_of(operations) == kinds


def test_every_kind_can_be_made() -> None:
    made = changes_of(
        "write /d/a 8000 4096; truncate /d/a 10; truncate /d/a 20; fallocate /d/a 0 8192; create /d/x; link /d/x /d/y;"
        "symlink t /d/z; unlink /d/x; rename /d/y /e/y; rename /e/y /e/b; mkdir /d/s; rmdir /d/s;"
        "setxattr /d/a user.x 4; fallocate /d/a 0 10 punch; fallocate /d/a 0 4096 collapse"
    )
    assert {kind for _number, kind in made} == {kind.value for kind in ChangeKind}


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ("write /d/a 0 10; append /d/a 10", Relation.SAME_FILE),
        ("append /d/a 10; rename /d/a /e/x", Relation.SAME_FILE),
        ("write /d/a 0 10; rename /d/c /d/a", Relation.SAME_FILE),
        ("write /d/a 0 10; write /d/c 0 10", Relation.SAME_DIRECTORY),
        ("create /d/x; unlink /d/c", Relation.SAME_DIRECTORY),
        ("mkdir /d/x; create /d/x/y", Relation.SAME_DIRECTORY),
        ("rename /d/a /e/x; create /e/y", Relation.SAME_DIRECTORY),
        ("write /d/a 0 10; write /e/b 0 10", Relation.OTHER_DIRECTORY),
        ("create /d/x; create /e/x", Relation.OTHER_DIRECTORY),
    ],
)
def test_two_changes_are_related_by_file_then_by_directory(operations: str, expected: Relation) -> None:
    history, _setup, _performed = simulate(Workload("w", tuple(parse(SETUP)), tuple(parse(operations))))
    one, other = changes(history)
    assert relation(one, other) is relation(other, one) is expected
