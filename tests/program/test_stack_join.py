"""The frames that calls have of another run."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bob.agent.inside.programs import CLOSES, PLACING, READS
from bob.program.stack import caller
from bob.program.stack_join import WITHOUT_FRAMES, with_stacks_of
from bob.program.strace import SystemCall
from tests.program.test_strace import escaped


@dataclass(frozen=True)
class Does:
    """What a function of a program does: a call about a file, with what it writes."""

    function: str
    name: str
    path: str
    data: str = ""


def fd(number: int, path: str) -> str:
    return f"{number}<{escaped(path.encode())}>"


def stack_of(function: str) -> tuple[str, ...]:
    return ("/lib/libc.so.6(write+0x10) [0x10]", f"/x/kv({function}+0x5) [0x5]", "/x/kv(main+0x7) [0x7]")


def call_of(pid: int, done: Does, number: int, *, framed: bool) -> SystemCall:
    if done.name == "fork":
        arguments, result = (), int(done.data)
    elif done.name == "rename":
        arguments, result = tuple(f'"{escaped(one.encode())}"' for one in done.path.split(" to ")), 0
    else:
        data = (f'"{escaped(done.data.encode())}"', str(len(done.data))) if done.name == "write" else ()
        arguments, result = (fd(number, done.path), *data), 0
    return SystemCall(pid, 0.0, done.name, arguments, result, stack=stack_of(done.function) if framed else ())


def run_of(made: Sequence[tuple[int, Does]], number: int = 3, *, framed: bool) -> list[SystemCall]:
    """A run of processes, each with what it does."""
    return [call_of(pid, done, number, framed=framed) for pid, done in made]


def joined(mine: Sequence[tuple[int, Does]], theirs: Sequence[tuple[int, Does]]) -> list[str]:
    """The functions that the calls of the one run have of the other."""
    calls = run_of(mine, 9, framed=False)
    again = with_stacks_of(calls, run_of(theirs, framed=True))
    assert [replace(call, stack=()) for call in again] == calls
    return [caller(call.stack).removesuffix(" in kv") for call in again]


def of_one(*done: Does) -> list[tuple[int, Does]]:
    return [(7, one) for one in done]


LOG, SYNC = Does("log_append", "write", "/d/log", "put 5"), Does("log_append", "fsync", "/d/log")
SAVE, FLUSH = Does("checkpoint", "write", "/d/data", "page"), Does("checkpoint", "fsync", "/d/data")
OTHER = Does("truncate_log", "write", "/d/log", "header")

NAMES = "write", "fsync", "rename"
kinds = st.lists(
    st.builds(
        Does,
        st.sampled_from(["append", "save", "trim"]),
        st.sampled_from(NAMES),
        st.sampled_from(["/d/a", "/d/b", "/f", "/f to /g"]),
        st.sampled_from(["", "one", "two"]),
    ),
    min_size=1,
    max_size=8,
)
"""What a program can do. Two functions may do the same thing."""


def interleaved(done: Sequence[Sequence[Does]], draw: Random, first_pid: int) -> list[tuple[int, Does]]:
    """A run in which the first process makes the others, in order, and all then take turns as they like."""
    made = [(first_pid, Does("main", "fork", "", str(first_pid + number))) for number in range(1, len(done))]
    left = {first_pid + number: list(each) for number, each in enumerate(done)}
    turns = [pid for pid, each in left.items() for _one in each]
    draw.shuffle(turns)
    return [*made, *((pid, left[pid].pop(0)) for pid in turns)]


@given(st.lists(kinds, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_a_process_that_does_the_same_again_has_the_frames_that_it_had(done: list[list[Does]], draw: Random) -> None:
    """However the processes take turns, and whatever their numbers are; where a process writes something."""
    done = [[*each, Does("end", "write", "/end", "done")] for each in done]
    mine, theirs = interleaved(done, draw, 700), interleaved(done, draw, 100)
    assert joined(mine, theirs) == [one.function for _pid, one in mine]


@given(kinds, st.data())
def test_no_call_is_named_by_a_function_that_did_not_make_it(known: list[Does], data: st.DataObject) -> None:
    """Where a run goes another way, by what it writes or by what it does: each function of it has run in the other one,
    too, and writes something: only that tells who did what has no data, as an fsync, before or after it."""
    told = [replace(one, data=f"{one.data} {one.function}") for one in known]
    written = [one for one in told if one.name == "write"]
    assume(written)
    others = [one for one in told if one.name != "write"]
    steps = []
    for write in written:
        around = [one for one in others if one.function == write.function]
        place = data.draw(st.integers(0, len(around)))
        steps.append((*around[:place], write, *around[place:]))
    draws = st.lists(st.sampled_from(steps), max_size=8)
    mine = [one for step in data.draw(draws) for one in step]
    theirs = [one for step in (*data.draw(draws), *steps) for one in step]
    named = joined(of_one(*mine), of_one(*theirs))
    assert all(name in ("", one.function) for name, one in zip(named, mine, strict=True))
    for name, one in zip(named, mine, strict=True):
        if len({other.function for other in told if (other.name, other.path) == (one.name, one.path)}) == 1:
            assert name == one.function


@given(kinds, st.data())
def test_calls_that_the_other_run_does_not_have_change_no_frames(done: list[Does], data: st.DataObject) -> None:
    without = data.draw(st.lists(st.tuples(st.integers(0, len(done)), st.sampled_from(WITHOUT_FRAMES)), max_size=4))
    mine = list(done)
    for place, name in sorted(without, reverse=True):
        mine.insert(place, Does("passes", name, "/f"))
    found = [name for name, one in zip(joined(of_one(*mine), of_one(*done)), mine, strict=True) if one.name in NAMES]
    assert found == joined(of_one(*done), of_one(*done))


def test_the_calls_without_frames_are_those_that_strace_does_not_look_at() -> None:
    assert set(WITHOUT_FRAMES) == {name.lstrip("?") for name in ",".join((PLACING, READS, CLOSES)).split(",")}


def test_a_function_that_runs_when_it_is_time_gives_its_name_to_no_other() -> None:
    """It ran earlier in the run with the frames, since that took longer."""
    mine = of_one(LOG, SYNC, LOG, SYNC, LOG, SYNC, SAVE, FLUSH, OTHER, SYNC, LOG, SYNC)
    theirs = of_one(LOG, SYNC, SAVE, FLUSH, OTHER, replace(SYNC, function="truncate_log"), LOG, SYNC, LOG, SYNC)
    named = joined(mine, theirs)
    assert [named[place] for place in (0, 2, 4, 6, 7, 8, 10)] == [
        *("log_append", "log_append", "log_append", "checkpoint", "checkpoint", "truncate_log", "log_append")
    ]
    assert [named[place] for place in (1, 3, 5, 9, 11)] == [""] * 5


def test_calls_that_write_something_else_are_not_the_same() -> None:
    """As many bytes, to the same file."""
    other = replace(OTHER, data="trunc")
    close = replace(SYNC, function="truncate_log")
    assert joined(of_one(LOG, SYNC, other, close), of_one(other, close, LOG, SYNC)) == [
        *("log_append", "", "truncate_log", "")
    ]


def test_what_comes_behind_the_last_write_that_is_the_same_may_be_something_else() -> None:
    """Two jobs that threads take in another order: each makes a file, and writes into it."""

    def job(function: str, number: int) -> list[Does]:
        path = f"/d/00000{number}.sst"
        return [Does(function, "create", path), Does(function, "write", path, function), Does(function, "fsync", path)]

    start = Does("start", "write", "/d/log", "up")
    mine = of_one(start, *job("flush", 7), *job("compact", 8))
    theirs = of_one(start, *job("compact", 7), *job("flush", 8))
    assert joined(mine, theirs) == ["start", "", "flush", "", "", "compact", ""]
    assert joined(mine, mine) == [one.function for _pid, one in mine]
    assert joined(mine[:-1], mine) == ["start", *["flush"] * 3, "compact", "compact"]


def test_two_threads_that_only_sync_are_not_told_apart() -> None:
    forks = [(1, Does("main", "fork", "", str(pid))) for pid in (2, 3)]
    mine = [*forks, (2, SYNC), (3, replace(SYNC, function="checkpoint"))]
    theirs = [*forks, (2, replace(SYNC, function="checkpoint")), (3, SYNC)]
    assert joined(mine, theirs)[2:] == ["", ""]


def test_two_functions_that_write_the_same_at_times_are_not_told_apart() -> None:
    """Whichever comes first writes a page."""
    pages = [Does("", "write", "/d/data", page) for page in ("page A", "page B", "page C")]
    first, second, third = (replace(page, function="checkpoint") for page in pages)
    mine = of_one(first, second, replace(third, function="evict"))
    theirs = of_one(replace(first, function="evict"), second, third, LOG)
    assert joined(mine[1:], theirs) == ["", ""]


def test_a_call_that_one_function_makes_at_two_places_has_no_line() -> None:
    calls = run_of(of_one(SYNC, SYNC), framed=True)
    lines = [
        replace(call, stack=(call.stack[0], f"{call.stack[1]} kv.c:{line}"))
        for call, line in zip(calls, (35, 52), strict=True)
    ]
    [again] = with_stacks_of(run_of(of_one(SYNC), framed=False), lines)
    assert caller(again.stack) == "log_append in kv"
    [again] = with_stacks_of(run_of(of_one(SYNC), framed=False), lines[:1])
    assert caller(again.stack) == "log_append in kv.c:35"


def test_a_chain_of_processes_takes_no_time_for_each_ancestor() -> None:
    made = [(pid, Does("main", "fork", "", str(pid + 1))) for pid in range(1, 20_000)]
    assert set(joined([*made, (20_000, LOG)], [*made, (20_000, LOG)])) == {"main", "log_append"}


def test_a_long_write_takes_little_memory() -> None:
    long = replace(LOG, data="x1" * 1_000_000)
    calls = run_of(of_one(long), framed=True)
    tracemalloc.start()
    with_stacks_of(calls, calls)
    assert tracemalloc.get_traced_memory()[1] < 60 * len(long.data)
    tracemalloc.stop()


def test_a_process_more_takes_no_frames_of_another_one() -> None:
    """PostgreSQL, busy, has one that the run with the frames had not: it was not yet there when that ended."""
    main, writer, cleaner = 10, 11, 12
    rename = Does("write_init", "rename", "/g/init.11 to /g/init")
    stats = Does("write_stats", "rename", "/g/stats.tmp to /g/stats")
    forks = [(main, Does("start", "fork", "", str(pid))) for pid in (writer, cleaner)]
    theirs = [*forks, (cleaner, stats), (writer, rename)]
    mine = [*forks, (writer, rename), (cleaner, stats), (main, Does("start", "fork", "", "13")), (13, stats), (13, LOG)]
    assert joined(mine, theirs) == ["start", "start", "write_init", "write_stats", "start", "write_stats", ""]


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("/proc/164/map", "/proc/177/map"),
        ("/d/sedAx1S0C", "/d/sedQ74DZB"),
        ("/o/3e/757656cf36ec", "/o/e0/19be006cf334"),
    ],
)
def test_what_is_made_anew_each_time_ends_nothing(here: str, there: str) -> None:
    """Two functions sync one file; only their order tells which is which."""
    more = [SYNC, replace(SYNC, function="close"), LOG]
    found = joined(of_one(Does("make", "write", here, "x"), *more), of_one(Does("make", "write", there, "x"), *more))
    assert found == ["make", "log_append", "close", "log_append"]


def test_numbers_in_what_is_written_end_the_same_and_leave_the_name() -> None:
    """A log with the time of day."""
    mine = of_one(replace(LOG, data="12:05 open"), OTHER, SYNC)
    theirs = of_one(replace(LOG, data="12:07 open"), OTHER, SYNC)
    assert joined(mine, theirs) == ["log_append", "truncate_log", "log_append"]


def test_a_program_has_no_frames_of_another_program() -> None:
    run = Does("exec", "execve", "/bin/cp")
    mine = [(1, run), (1, LOG), (2, replace(run, path="/bin/mv")), (2, SAVE), (2, LOG)]
    theirs = [(1, run), (1, LOG), (2, replace(run, path="/bin/mv")), (2, OTHER)]
    assert joined(mine, theirs) == ["exec", "log_append", "exec", "", "truncate_log"]


def test_a_child_that_has_called_before_its_parent_has_returned_runs_the_same_program() -> None:
    run = Does("exec", "execve", "/bin/cp")
    made = [(1, run), (2, LOG), (1, Does("main", "fork", "", "2")), (1, SAVE)]
    assert joined([*made, (1, LOG)], made) == ["exec", "log_append", "main", "checkpoint", "log_append"]


def test_a_child_runs_what_its_parent_ran_when_it_was_made() -> None:
    """The parent has gone on to another program by the child's first call."""
    fork, run = Does("main", "fork", "", "2"), Does("exec", "execve", "/bin/mv")
    mine = [(1, replace(run, path="/bin/sh")), (1, fork), (1, run), (1, replace(LOG, function="mv")), (2, LOG)]
    theirs = [(1, replace(run, path="/bin/sh")), (1, LOG), (1, fork), (1, run), (1, replace(LOG, function="mv"))]
    assert joined(mine, theirs)[-1] == "log_append"


def test_an_address_makes_no_difference() -> None:
    sync = SystemCall(7, 0.0, "msync", ("0x7f1200000000", "4096", "MS_SYNC"), 0)
    more = [SYNC, replace(SYNC, function="close"), LOG]
    there = [replace(sync, stack=stack_of("flush")), *run_of(of_one(*more), framed=True)]
    here = [replace(sync, arguments=("0x7f9900000000", "4096", "MS_SYNC")), *run_of(of_one(*more), framed=False)]
    assert [call.stack for call in with_stacks_of(here, there)] == [call.stack for call in there]


def test_a_process_that_is_its_own_ancestor_by_its_number_ends_nothing() -> None:
    made = [(1, Does("main", "fork", "", "2")), (2, Does("main", "fork", "", "1")), (1, LOG)]
    assert joined(made, made)[-1] == "log_append"


def test_stores_that_one_run_was_watched_for_are_not_in_the_way() -> None:
    usual = of_one(Does("map", "mmap", "/d/log"), *[LOG, SYNC, replace(LOG, function="again")] * 5)
    [first, *others] = run_of(usual, 9, framed=False)
    store = SystemCall(7, 0.0, "store", (fd(9, "/d/log"), "a", "1", "0"), 1)
    watched = [replace(first, name="mapped"), *[one for call in others for one in (store, call)]]
    again = with_stacks_of(watched, run_of(usual, framed=True))
    assert [call.stack for call in again if call.name != "store"] == [stack_of(one.function) for _pid, one in usual]
    assert not any(call.stack for call in again if call.name == "store")


def test_without_another_run_there_are_no_frames() -> None:
    assert [call.stack for call in with_stacks_of(run_of(of_one(LOG, SYNC), framed=False), ())] == [(), ()]
