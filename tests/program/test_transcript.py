"""What was told before a crash, against the rules spelled out: every time, every subset, what had been told by then.
And files that were told of and never synced, and changes that bob does not follow, by what strace wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.crash.legal import growth_points
from bob.errors import RecordingError
from bob.program.strace import SystemCall
from bob.program.transcript import Output, clock_offset, outputs, windows
from bob.program.untraced import not_followed, unpaced
from bob.protocol.unsynced import unsynced_at_outputs, unsynced_in_words
from bob.trace.model import Moment
from bob.trace.timeline import CallReturned, Timeline
from crash import brute
from crash.traces import Case, at, cases

PIPE = 5


@st.composite
def telling(draw: st.DrawFn) -> tuple[Case, list[Output]]:
    """A case, and outputs at some moments of its window, or before it."""
    case = draw(cases())
    start, end = case.trace.start.time, case.trace.end.time
    times = sorted(draw(st.sets(st.integers(max(0, start - 4), end), max_size=3)))
    return case, [Output(at(time), bytes([97 + number])) for number, time in enumerate(times)]


@settings(max_examples=400)
@given(telling())
def test_the_windows_have_each_state_with_each_output_that_a_crash_can_leave_it_with(
    found: tuple[Case, list[Output]],
) -> None:
    case, told = found
    legal = set()
    for time in brute.window(case.trace):
        by_then = b"".join(output.data for output in told if output.at.time <= time)
        for durable, pending in brute.durable_and_pending(case.trace, case.model, time):
            legal |= {(by_then, frozenset(durable | kept)) for kept in brute.subsets(pending)}
    found_by_windows = {
        (window.output, frozenset(point.durable) | kept)
        for window in windows(case.trace, told)
        for point in growth_points(window.trace, case.model)
        for kept in brute.subsets(point.pending)
    }
    assert found_by_windows == legal


def call(pid: int, data: bytes, name: str = "write", pipe: int = PIPE, result: int | None = None) -> SystemCall:
    path = "".join(f"\\x{byte:02x}" for byte in f"pipe:[{pipe}]".encode())
    text = "".join(f"\\x{byte:02x}" for byte in data)
    return SystemCall(
        pid, 0.0, name, (f"1<{path}>", f'"{text}"', str(len(data))), len(data) if result is None else result
    )


def returned(time: int, pid: int, result: int, number: int = 1) -> CallReturned:
    return CallReturned(Moment(time, 0.0), pid, number, result)


def test_outputs_count_when_the_kernel_says_that_the_call_had_returned() -> None:
    calls = [call(1, b"aa"), call(2, b"b", pipe=9), call(1, b"c")]
    timeline = Timeline((returned(4, 2, 1), returned(6, 1, 2), returned(9, 3, 7), returned(11, 1, 1)))
    assert outputs(calls, timeline, PIPE, b"aac") == (Output(Moment(6, 0.0), b"aa"), Output(Moment(11, 0.0), b"c"))


@given(st.lists(st.tuples(st.integers(1, 2), st.binary(max_size=3), st.sampled_from([0, 1, 3, None])), max_size=6))
def test_only_what_a_call_has_written_is_told(drawn: list[tuple[int, bytes, int | None]]) -> None:
    """It may have written less than it was given, nothing, or have failed."""
    made, events, told = [], [], []
    for time, (pid, data, most) in enumerate(drawn):
        written = None if most is None else min(len(data), most)
        made.append(replace(call(pid, data), result=written))
        events.append(returned(time, pid, -32 if written is None else written))
        told += [Output(Moment(time, 0.0), data[:written])] if written else []
    assert outputs(made, Timeline(tuple(events)), PIPE, b"".join(one.data for one in told)) == tuple(told)


def test_a_process_that_tells_nothing_needs_no_order() -> None:
    assert outputs([call(2, b"b", pipe=9)], Timeline(()), PIPE, b"") == ()


@pytest.mark.parametrize(
    ("calls", "events", "told"),
    [
        ([call(1, b"a")], [], b"a"),
        ([call(1, b"a")], [returned(1, 1, 2)], b"a"),
        ([call(1, b"a")], [returned(1, 1, 1, number=20)], b"a"),
        ([call(1, b"a")], [returned(1, 1, 1)], b"ab"),
        ([call(1, b"a"), call(2, b"b")], [returned(2, 1, 1), returned(1, 2, 1)], b"ab"),
    ],
)
def test_where_kernel_strace_and_pipe_do_not_agree_nothing_is_believed(
    calls: list[SystemCall], events: list[CallReturned], told: bytes
) -> None:
    with pytest.raises(RecordingError):
        outputs(calls, Timeline(tuple(events)), PIPE, told)


@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.sampled_from(["write", "fsync"]), st.integers(0, 9)), max_size=6),
    st.integers(-50, 50),
)
def test_of_the_clocks_the_shortest_call_tells_most(drawn: list[tuple[int, str, int]], apart: int) -> None:
    """strace says when a call began, and the kernel when it returned."""
    made, events = [], []
    for time, (pid, name, took) in enumerate(drawn):
        made.append(replace(call(pid, b"a", name), seconds=float(10 * time)))
        if name == "write":
            events.append(CallReturned(Moment(time, float(10 * time + took + apart)), pid, 1, 1))
    shortest = min((took for _pid, name, took in drawn if name == "write"), default=None)
    offset = clock_offset(made, Timeline(tuple(events)))
    assert offset == (None if shortest is None else shortest + apart)


PIPE, ROOT = 5, "/tmp/bob/mnt"


def hexed(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def fd(number: int, path: str) -> str:
    return f"{number}<{hexed(path)}>"


def on(name: str, path: str, *more: str) -> SystemCall:
    return SystemCall(1, 0.0, name, (fd(3, ROOT + path), *more), 1)


def write(path: str) -> SystemCall:
    return on("write", path, f'"{hexed("x")}"', "1")


def tell() -> SystemCall:
    return SystemCall(1, 0.0, "write", (fd(1, f"pipe:[{PIPE}]"), f'"{hexed("ok")}"', "2"), 2)


def renamed(old: str, new: str, how: str = "rename", flags: str = "0") -> SystemCall:
    here = f"AT_FDCWD<{hexed(ROOT)}>"
    if how == "rename":
        return SystemCall(1, 0.0, how, (f'"{hexed(ROOT + old)}"', f'"{hexed(ROOT + new)}"'), 0)
    return SystemCall(1, 0.0, how, (here, f'"{hexed(old[1:])}"', here, f'"{hexed(new[1:])}"', flags), 0)


SYNC = SystemCall(1, 0.0, "sync", (), 0)


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ([write("/f"), tell()], ("/f",)),
        ([write("/f"), on("fsync", "/f"), tell()], ()),
        ([write("/f"), on("fdatasync", "/f"), tell()], ()),
        ([write("/f"), SYNC, tell()], ()),
        ([write("/f"), write("/g"), on("fsync", "/g"), tell()], ("/f",)),
        ([write("/f"), on("fsync", "/f"), write("/f"), tell()], ("/f",)),
        ([write("/t"), renamed("/t", "/f"), tell()], ("/f",)),
        ([write("/t"), renamed("/t", "/f", "renameat2"), tell()], ("/f",)),
        ([write("/f"), write("/t"), on("fsync", "/t"), renamed("/t", "/f"), tell()], ()),
        ([write("/t"), on("fsync", "/t"), renamed("/t", "/f"), tell()], ()),
        ([write("/f"), renamed("/t", "/f", "renameat2", "RENAME_EXCHANGE"), tell()], ("/t",)),
        ([write("/t"), renamed("/t", "/f", "renameat2", "RENAME_EXCHANGE"), tell()], ("/f",)),
        ([write("/f"), write("/t"), renamed("/t", "/f", "renameat2", "RENAME_EXCHANGE"), tell()], ("/t", "/f")),
        ([write("/f")], ()),
        ([write("/f"), tell(), on("fsync", "/f")], ("/f",)),
        ([tell(), write("/f")], ()),
        ([write("/../elsewhere/f"), tell()], ("/../elsewhere/f",)),
        ([SystemCall(1, 0.0, "write", (fd(3, "/tmp/other"), '"\\x61"', "1"), 1), tell()], ()),
    ],
)
def test_files_that_were_told_of_and_never_synced(calls: list[SystemCall], told: tuple[str, ...]) -> None:
    assert unsynced(calls, PIPE, ROOT) == told


def unsynced(calls: list[SystemCall], pipe: int, root: str) -> tuple[str, ...]:
    """The files at the last output."""
    return ([()] + [one.files for one in unsynced_at_outputs(calls, pipe, root)])[-1]


def test_files_that_were_not_synced_are_told_of_each_output() -> None:
    """An acknowledgement is a promise at its own moment, whatever a later sync does."""
    one, two = [write("/f"), tell(), on("fsync", "/f")], [write("/g"), tell()]
    assert unsynced_in_words([*one, *two], PIPE, ROOT) == snapshot(
        (
            "changed, but not synced, when the program wrote ‘ok’: /f",
            "changed, but not synced, when the program wrote its last output: /g",
        )
    )
    assert unsynced_in_words([write("/f"), tell(), tell()], PIPE, ROOT) == snapshot(
        ("changed, but not synced, when the program wrote each of its 2 outputs: /f",)
    )
    assert unsynced_in_words([write("/f"), *[tell()] * 5, on("fsync", "/f"), tell()], PIPE, ROOT) == snapshot(
        ("changed, but not synced, when the program wrote ‘ok’, ‘ok’, ‘ok’, and 2 other outputs: /f",)
    )
    assert unsynced_in_words([write("/f"), on("fsync", "/f"), tell()], PIPE, ROOT) == ()


FOLDERS = ("", "/d", "/e")
BELOW = [f"{folder}/{name}" for folder in FOLDERS for name in "fg"]
doings = st.one_of(
    st.tuples(st.sampled_from(["write", "write", "fsync", "unlink"]), st.sampled_from(BELOW)),
    st.tuples(st.sampled_from(["rename", "exchange"]), st.sampled_from(BELOW), st.sampled_from(BELOW)),
    st.tuples(
        st.sampled_from(["rename", "exchange"]), st.sampled_from(FOLDERS[1:]), st.sampled_from(["/d", "/e", "/h"])
    ),
)


@given(st.lists(doings, max_size=12))
def test_what_was_not_synced_goes_with_its_file_whatever_name_that_has(script: list[tuple[str, ...]]) -> None:
    """Against directories of files, each with the number of the write since which it is not synced."""
    folders: dict[str, dict[str, list[int]]] = {"": {}, "/d": {}, "/e": {}}
    calls: list[SystemCall] = []
    for number, (doing, path, *more) in enumerate(script):
        folder, name = path.rsplit("/", 1)
        other, last = (more[0] if more else "/").rsplit("/", 1)
        if path in FOLDERS:
            if path not in folders or path == more[0] or (doing == "exchange") is not (more[0] in folders):
                continue
            folders[more[0]], moved = folders.pop(path), folders.get(more[0])
            folders |= {} if moved is None else {path: moved}
        elif doing == "write" and folder in folders:
            since = folders[folder].setdefault(name, [])
            since += [] if since else [number]
        elif name not in folders.get(folder, {}):
            continue
        elif doing == "fsync":
            folders[folder][name].clear()
        elif doing == "unlink":
            del folders[folder][name]
        elif path == more[0] or other not in folders or (doing == "exchange" and last not in folders[other]):
            continue
        elif doing == "exchange":
            here, there = folders[folder], folders[other]
            here[name], there[last] = there[last], here[name]
        else:
            folders[other][last] = folders[folder].pop(name)
        calls.append(done(doing, path, *more))
    dirty = [(since, f"{folder}/{name}") for folder, names in folders.items() for name, since in names.items() if since]
    assert unsynced([*calls, tell()], PIPE, ROOT) == tuple(name for _since, name in sorted(dirty))


def done(doing: str, path: str, *more: str) -> SystemCall:
    if doing == "exchange":
        call = renamed(path, more[0], "renameat2")
        return replace(call, arguments=(*call.arguments[:-1], "RENAME_EXCHANGE"))
    if doing == "rename":
        return renamed(path, more[0])
    if doing == "unlink":
        return SystemCall(1, 0.0, "unlink", (f'"{hexed(ROOT + path)}"',), 0)
    return write(path) if doing == "write" else on(doing, path)


def test_a_file_that_is_written_synchronously_needs_no_sync() -> None:
    opened = SystemCall(
        1, 0.0, "openat", (f"AT_FDCWD<{hexed(ROOT)}>", f'"{hexed("f")}"', "O_WRONLY|O_DSYNC"), 3, f"{ROOT}/f"
    )
    assert unsynced([opened, write("/f"), tell()], PIPE, ROOT) == ()


def test_a_world_of_its_own_has_the_same_names() -> None:
    call = SystemCall(1, 0.0, "write", (fd(3, "/run/bob-world/root" + ROOT + "/f"), '"\\x61"', "1"), 1)
    assert unsynced([call, tell()], PIPE, ROOT) == ("/f",)


def test_what_is_not_followed_is_named() -> None:
    def mapped(flags: str, path: str) -> SystemCall:
        return SystemCall(1, 0.0, "mmap", ("NULL", "4096", "PROT_READ|PROT_WRITE", flags, fd(3, path), "0"), 1)

    calls = [
        mapped("MAP_PRIVATE", f"{ROOT}/f"),
        mapped("MAP_SHARED", "/lib/x"),
        mapped("MAP_SHARED", f"{ROOT}/db"),
        mapped("MAP_SHARED", f"{ROOT}/db"),
        SystemCall(1, 0.0, "sendfile", (fd(3, f"{ROOT}/out"), fd(4, "/x"), "NULL", "5"), 5),
        SystemCall(1, 0.0, "sendfile", (fd(3, f"{ROOT}/known"), fd(4, f"{ROOT}/f"), "NULL", "5"), 5),
        SystemCall(1, 0.0, "ioctl", (fd(3, f"{ROOT}/copy"), "BTRFS_IOC_CLONE or FICLONE", "4"), 0),
        SystemCall(1, 0.0, "ioctl", (fd(1, f"{ROOT}/t"), "TCGETS", "0x7"), None),
        SystemCall(1, 0.0, "io_submit", ("1", "1"), 1),
    ]
    assert not_followed(calls, ROOT) == ("mmap of /db", "sendfile to /out", "reflink to /copy", "io_submit")


def test_what_a_pace_cannot_come_between_is_named() -> None:
    """Two renames of one io_uring_enter were called safe at each pace, of which none had come between them."""

    def call(name: str, result: int | None, *arguments: str) -> SystemCall:
        return SystemCall(1, 0.0, name, arguments, result)

    one = [
        call("io_uring_setup", 3, "8", "{flags=0, sq_thread_cpu=0, features=IORING_FEAT_SQPOLL_NONFIXED}"),
        call("io_uring_enter", 1, "3", "1", "1"),
        call("io_uring_enter", 1, "3", "1", "1"),
        call("io_submit", 1, "0x1", "1"),
        call("io_submit", None, "0x1", "2"),
        call("io_uring_setup", None, "8", "{flags=IORING_SETUP_SQPOLL}"),
        call("write", 5, "3"),
    ]
    assert unpaced(one) == ()
    polls = call("io_uring_setup", 3, "8", "{flags=IORING_SETUP_SQPOLL, sq_thread_cpu=0}")
    several = [call("io_uring_enter", 2, "3", "2", "2"), call("io_submit", 2, "0x1", "2")]
    assert [words.split()[-1] for words in unpaced([*one, *several, polls])] == [
        "io_uring_enter",
        "io_submit",
        "(IORING_SETUP_SQPOLL)",
    ]


def test_a_name_is_relative_to_where_the_process_has_gone() -> None:
    gone = SystemCall(1, 0.0, "chdir", (f'"{hexed(ROOT + "/d")}"',), 0)
    moved = SystemCall(1, 0.0, "rename", (f'"{hexed("f")}"', f'"{hexed("g")}"'), 0)
    assert unsynced([gone, write("/d/f"), moved, tell()], PIPE, ROOT) == ("/d/g",)
    assert unsynced([write("/d/f"), moved, tell()], PIPE, ROOT) == ("/d/f",)
