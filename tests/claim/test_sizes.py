"""What the size of a file says of its operations, and which parts of an append are a prefix, by trying all that a crash
can leave of them, one size after the other."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from bob.claim.property.contents import Fact, FileStory
from bob.observe.observation import Presence
from bob.workload import operations as ops
from bob.workload.history import History
from bob.workload.language import parse
from bob.workload.operations import Allocation, How, Operation, Workload
from bob.workload.simulation import simulate

from .test_collateral import read
from .worlds import World

SECTOR, BLOCK = 512, 4096
MOST = 12

resizing: st.SearchStrategy[Operation] = st.one_of(
    st.builds(ops.Write, st.just("/a"), st.integers(0, 6), st.integers(1, 4), st.sampled_from([How.PLAIN, How.TRUNC])),
    st.builds(ops.Truncate, st.just("/a"), st.integers(0, 9)),
    st.builds(
        ops.Fallocate,
        st.just("/a"),
        st.integers(0, 6),
        st.integers(1, 4),
        st.sampled_from([Allocation.GROW, Allocation.KEEP, Allocation.ZERO, Allocation.PUNCH]),
    ),
)


def size_after(history: History, number: int) -> int:
    return history.steps[number].inodes[history.steps[number].names["/a"]].size


def is_emptied(operation: Operation) -> bool:
    return isinstance(operation, ops.Write) and operation.how is How.TRUNC


def reach(history: History, number: int) -> tuple[int | None, int, int]:
    """To which size an operation first cuts the file, and after which one, up to which one, it can then be torn."""
    before = size_after(history, number - 1)
    match history.operations[number - 1]:
        case ops.Truncate(_path, size):
            return size, size, size
        case ops.Write(_path, offset, length, how):
            return 0 if how is How.TRUNC else None, min(offset, before), offset + length
        case ops.Fallocate(_path, offset, length, mode):
            return None, min(offset, before), offset + length if mode in (Allocation.GROW, Allocation.ZERO) else 0
    raise AssertionError


def left(history: History, size: int, number: int, *, is_torn: bool) -> set[int]:
    """The sizes that an operation makes of ``size``, if all of it is there, or only a part."""
    cut, bottom, stop = reach(history, number)
    start = size if cut is None else cut
    if not is_torn:
        return {max(start, stop)}
    cuts = set() if cut is None else {cut}
    return cuts | {torn for torn in range(stop + 1) if torn > max(bottom, min(size, start))}


def sizes(history: History, *, left_out: int = 0, whole: int = 0) -> set[int]:
    """The sizes that a crash can leave: each operation is there, left out or torn, but for the one that is named."""
    found = {size_after(history, 0)}
    for number in range(1, len(history.operations) + 1):
        if number == left_out:
            continue
        every = {after for size in found for after in left(history, size, number, is_torn=False)}
        if number != whole:
            every |= found | {after for size in found for after in left(history, size, number, is_torn=True)}
        found = every
    return found


@settings(max_examples=300)
@given(st.integers(0, 6), st.lists(resizing, min_size=1, max_size=4))
def test_what_a_size_says_of_each_operation(initially: int, operations: list[Operation]) -> None:
    setup = parse(f"write /a 0 {initially}" if initially else "create /a")
    history = simulate(Workload("sizes", tuple(setup), tuple(operations)))[0]
    story = FileStory(history, history.steps[0].names["/a"])
    was = [size_after(history, number) for number in range(len(operations) + 1)]
    resizes = {n for n in story.writers if was[n] != was[n - 1] or is_emptied(operations[n - 1])}
    for number in story.writers:
        without, along = sizes(history, left_out=number), sizes(history, whole=number)
        cut = reach(history, number)[0]
        for size in range(MOST):
            assert story.may_have(size) is (
                size in sizes(history) or any(is_within(history, n, size) for n in story.writers)
            )
            is_inside = is_within(history, number, size)
            if size in without and is_inside and number not in resizes:
                expected = Fact.EITHER
            elif size in without | along:
                expected = fact(without=size in without, along=size in along)
            else:
                is_its_own = is_inside or size == cut or (resizes or story.writers) == {number}
                expected = Fact.NEITHER if is_its_own else Fact.EITHER
            found, suspects = story.size(number, size)
            assert found is expected, (number, size)
            assert bool(suspects) is (size not in without | along), (number, size)


def is_within(history: History, number: int, size: int) -> bool:
    _cut, bottom, stop = reach(history, number)
    return bottom < size < stop


def fact(*, without: bool, along: bool) -> Fact:
    if without and along:
        return Fact.EITHER
    return Fact.AFTER if along else Fact.BEFORE


@settings(max_examples=150)
@given(
    st.sampled_from(["", "; truncate /a 20480"]),
    st.sampled_from([0, *range(BLOCK, 20481, BLOCK), 512, 5000]),
    st.integers(0, 24),
    st.sets(st.integers(0, 23), max_size=2),
)
def test_a_part_is_a_prefix_just_where_it_ends_at_a_block_and_has_no_hole(
    later: str, size: int, end: int, wrong: set[int]
) -> None:
    """Of three blocks that are appended each sector is there or zeros; a later call may have made the file longer."""
    world = World.of(Workload("append", tuple(parse("create /a")), tuple(parse(f"write /a 0 12288{later}"))))
    tree = dict(world.step(1).tree or {})
    whole = tree["/a"].content
    there = [(sector < end) is (sector not in wrong) for sector in range(24)]
    content = b"".join(
        whole[sector * SECTOR : (sector + 1) * SECTOR] if is_there else bytes(SECTOR)
        for sector, is_there in enumerate(there)
    )
    tree["/a"] = replace(tree["/a"], size=size, content=content.ljust(size, b"\0")[:size])
    reading = read(world, tree)
    seen = [is_there for sector, is_there in enumerate(there) if sector * SECTOR < size]
    is_prefix = any(
        size in ({stop, 20480} if later else {stop})
        and all(is_there is (sector * SECTOR < stop) for sector, is_there in enumerate(seen))
        for stop in range(0, 12289, BLOCK)
    )
    if reading.of(1) is Presence.PARTIAL:
        assert reading.prefixes == ({1} if is_prefix else set())
    else:
        assert is_prefix or size > 12288  # such a size is not the append's
