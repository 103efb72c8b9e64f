"""What strace writes down, and who made a call, by the frames below it."""

from __future__ import annotations

import subprocess
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.errors import MalformedError, RecordingError
from bob.program.program import Program, ProgramFile
from bob.program.stack import caller, from_chosen, located
from bob.program.strace import SystemCall, parse
from planted_in_c import compiled


def escaped(data: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in data)


def line(pid: int, text: str, seconds: str = "1700000000.000001") -> str:
    return f"{pid} {seconds} {text}"


@given(st.binary(max_size=40), st.binary(min_size=1, max_size=20).filter(lambda path: b"\0" not in path))
def test_whatever_is_written_comes_back(data: bytes, path: bytes) -> None:
    text = line(7, f'write(3<{escaped(path)}>, "{escaped(data)}", {len(data)}) = {len(data)}')
    [call] = parse(text)
    assert (call.pid, call.name, call.result, call.written) == (7, "write", len(data), data)
    assert call.path(0).encode(errors="surrogateescape") == path


def test_a_short_write_has_written_no_more_than_it_returned() -> None:
    [call] = parse(line(1, f'write(1<{escaped(b"pipe:[5]")}>, "{escaped(b"abcdef")}", 6) = 2'))
    assert call.written == b"ab"


def test_writev_has_the_pieces_one_after_the_other() -> None:
    vector = f'[{{iov_base="{escaped(b"ab")}", iov_len=2}}, {{iov_base="{escaped(b"c")}", iov_len=1}}]'
    [call] = parse(line(1, f"writev(1<{escaped(b'pipe:[5]')}>, {vector}, 2) = 3"))
    assert call.written == b"abc"
    assert len(call.arguments) == 3


def test_a_call_that_was_interrupted_by_others_is_one_call() -> None:
    text = "\n".join(
        [
            line(1, f"fsync(3<{escaped(b'/a')}> <unfinished ...>", "1700000000.000001"),
            line(2, "sync() = 0", "1700000000.000002"),
            line(1, "<... fsync resumed>) = 0", "1700000000.000003"),
        ]
    )
    sync, fsync = parse(text)
    assert (sync.pid, sync.name) == (2, "sync")
    assert (fsync.pid, fsync.name, fsync.result, fsync.seconds) == (1, "fsync", 0, 1700000000.000001)
    assert fsync.path(0) == "/a"


def test_what_failed_has_no_result_and_wrote_nothing() -> None:
    [call] = parse(line(1, f'write(1<{escaped(b"pipe:[5]")}>, "{escaped(b"ab")}", 2) = -1 EPIPE (Broken pipe)'))
    assert call.result is None and call.written == b""


def test_signals_and_ends_are_no_calls() -> None:
    assert parse(line(1, "--- SIGCHLD {si_signo=SIGCHLD} ---") + "\n" + line(1, "+++ exited with 0 +++")) == ()


def test_what_strace_says_of_itself_is_no_call() -> None:
    assert parse("[ Process PID=12 runs in 32 bit mode. ]\n" + line(1, "[ Process PID=1 runs in 64 bit mode. ]")) == ()


def test_data_that_strace_has_cut_off_is_refused() -> None:
    [call] = parse(line(1, f'write(1<{escaped(b"pipe:[5]")}>, "{escaped(b"ab")}"..., 9) = 9'))
    with pytest.raises(RecordingError):
        _ = call.written


def test_an_address_is_a_number() -> None:
    [call] = parse(line(1, "mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3<>, 0) = 0x7f0000000000"))
    assert call.result == 0x7F0000000000


def test_a_call_that_never_returned_is_none() -> None:
    assert parse(line(1, "fsync(3<> <unfinished ...>")) == ()


@pytest.mark.parametrize("text", ["nonsense", "1 2.0 nonsense", "1 x write(1) = 0"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(MalformedError):
        parse(text)


def test_a_descriptor_without_a_path_has_none() -> None:
    assert SystemCall(1, 0.0, "write", ("1", '""', "0"), 0).path(0) == ""


# Who made a call, by the frames below it


LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6(fdatasync+0x10) [0xf7a20]"


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        ((), ""),
        ((LIBC,), ""),
        ((LIBC, "/usr/lib/liblmdb.so.0.0.0(mdb_env_sync0+0x5c) [0x1234]"), "mdb_env_sync0 in liblmdb.so.0.0.0"),
        ((LIBC, "/usr/lib/libleveldb.so.1(_ZN7leveldb4SyncEv+0x5) [0x1]"), "_ZN7leveldb4SyncEv in libleveldb.so.1"),
        ((LIBC, "/usr/bin/python3.11(_PyEval_EvalFrameDefault+0x1) [0x1]", "/x/libz.so(f+0x1) [0x1]"), ""),
        ((LIBC, "unexpected_backtracing_error [0x0]", "/x/git(main+0x10) [0x1]"), "main in git"),
        ((LIBC, "/x/kv(kv::DB::Put(kv::Slice const&, void (*)(int)) const+0x5) [0x1]"), "kv::DB::Put in kv"),
        (
            (LIBC, "/x/kv((anonymous namespace)::Writer::operator()(int)+0x5) [0x1]"),
            "(anonymous namespace)::Writer::operator() in kv",
        ),
        (
            (LIBC, "/x/kv(<app::Store<(u64, u8)> as app::Save>::save+0x5) [0x1]"),
            "<app::Store<(u64, u8)> as app::Save>::save in kv",
        ),
        ((LIBC, "/x/kv(<Log as FnOnce<()>>::call_once+0x5) [0x1]"), "<Log as FnOnce<()>>::call_once in kv"),
        ((LIBC, "/x/kv(kv::put(int) [clone .cold]+0x5) [0x1]"), "kv::put in kv"),
        ((LIBC, "/x/kv((anonymous namespace)::sync+0x5) [0x1]"), "(anonymous namespace)::sync in kv"),
        ((LIBC, "/usr/lib/liblmdb.so() [0x1]", "/usr/lib/liblmdb.so(mdb_put+0x5) [0x2]"), "mdb_put in liblmdb.so"),
        ((LIBC, "/usr/lib/liblmdb.so() [0x1]", "/usr/bin/python3() [0x2]", "/x/git(main+0x10) [0x1]"), ""),
    ],
)
def test_the_innermost_function_of_the_program_is_named(stack: tuple[str, ...], expected: str) -> None:
    assert caller(stack) == expected
    assert caller(from_chosen(stack, ["no_such_*"])) == expected
    assert caller([f"{one} save.c:12" for one in stack]) == (
        f"{expected.partition(' in ')[0]} in save.c:12" * bool(expected)
    )


def test_another_frame_may_be_chosen_by_its_function_or_its_file() -> None:
    stack = (
        LIBC,
        "/usr/lib/libsqlite3.so.0.8.6(unixSync+0x5c) [0x1]",
        "/usr/lib/libsqlite3.so.0.8.6(sqlite3_step+0x5c) [0x2]",
        "/x/save(commit+0x10) [0x3]",
        "/x/save(main+0x10) [0x4]",
    )
    named = {
        "unixSync in libsqlite3.so.0.8.6": [(), ("none",), ("libsqlite3*",)],
        "sqlite3_step in libsqlite3.so.0.8.6": [("sqlite3_*",)],
        "commit in save": [("save",), ("commit", "main"), ("com?it",)],
    }
    for words, choices in named.items():
        assert {caller(from_chosen(stack, patterns)) for patterns in choices} == {words}
    assert from_chosen((), ["*"]) == ()
    nameless = (LIBC, "/x/git() [0x1]", "/x/git(main+0x10) [0x2]")
    assert from_chosen(nameless, ["git"]) == nameless[1:]
    assert from_chosen(nameless, ["main"]) == nameless[2:]
    assert from_chosen(("unexpected_backtracing_error [0x0]",), ["*"]) == ("unexpected_backtracing_error [0x0]",)


def test_frames_belong_to_the_call_above_them() -> None:
    text = "\n".join(
        [
            "1 1700000000.000001 sync() = 0",
            f" > {LIBC}",
            " > /x/git(main+0x10) [0x1]",
            "1 1700000000.000002 sync() = 0",
        ]
    )
    first, second = parse(text)
    assert first.stack == (LIBC, "/x/git(main+0x10) [0x1]")
    assert second.stack == ()


def test_frames_below_a_signal_are_no_calls() -> None:
    """strace -k writes them, too, and the signal may be another process's."""
    text = "\n".join(
        [
            "1 1700000000.000001 sync() = 0",
            f" > {LIBC}",
            "2 1700000000.000002 --- SIGUSR1 {si_signo=SIGUSR1} ---",
            " > /x/git(main+0x10) [0x1]",
            "1 1700000000.000003 fsync(3<> <unfinished ...>",
            "2 1700000000.000004 +++ exited with 0 +++",
            "1 1700000000.000005 <... fsync resumed>) = 0",
            " > /x/git(main+0x20) [0x2]",
        ]
    )
    assert [call.stack for call in parse(text)] == [(LIBC,), ("/x/git(main+0x20) [0x2]",)]


TWO_LINES = """
static int twice(int n) {
    return n + n;
}

int main(int count, char **words) {
    int sum = twice(count);
    while (count-- > 0)
        sum += words[count][0];
    return sum;
}
"""


def one_binary(data: bytes) -> Program:
    return Program("p", "", (ProgramFile("bin/p", data, True), ProgramFile("check", b"#!/bin/sh", True)))


def frame(offset: int, path: str = "/run/home/bin/p") -> str:
    return f"{path}(main+0x1) [{offset:#x}]"


@pytest.mark.parametrize("how", [("-gdwarf-5", "-O0"), ("-gdwarf-4", "-O2"), ("-gdwarf-5", "-no-pie"), ("-gdwarf-3",)])
def test_the_line_behind_a_frame_is_that_of_addr2line(how: tuple[str, ...]) -> None:
    """What runs next is at the offset that strace tells; the line is that of the byte before it."""
    data = compiled(TWO_LINES, *how)
    base = 0x400000 if "-no-pie" in how else 0
    offsets = range(0x1000, 0x1300)
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        addresses = "\n".join(hex(base + offset) for offset in offsets)
        done = subprocess.run(
            ["addr2line", "-e", file.name], input=addresses, capture_output=True, text=True, check=True
        )
    said = [line.rpartition("/")[2].partition(" ")[0] for line in done.stdout.splitlines()]
    expected = ["" if line.endswith((":0", ":?")) else f" {line}" for line in said]
    assert len(set(expected)) > 4
    frames = tuple(frame(offset + 1) for offset in offsets)
    [call] = located([SystemCall(1, 0.0, "sync", (), 0, "", frames)], one_binary(data), "/run/home")
    assert [one.removeprefix(two) for one, two in zip(call.stack, frames, strict=True)] == expected


def test_only_frames_of_the_programs_own_binaries_get_lines() -> None:
    data = compiled(TWO_LINES)
    stack = (LIBC, frame(0x1140, "/elsewhere/bin/p"), frame(0x1140, "/run/home/check"), "[0x1]")
    call = SystemCall(1, 0.0, "sync", (), 0, "", stack)
    assert located([call], one_binary(data), "/run/home") == (call,)
    assert located([call], one_binary(data[:4]), "/run/home") == (call,)


def test_a_binary_that_says_its_segments_are_beyond_any_file_has_no_lines() -> None:
    """The library raises what its reading comes upon: here Python's OverflowError."""
    damaged = bytearray(compiled(TWO_LINES))
    damaged[39] = 128  # the last byte of e_phoff
    call = SystemCall(1, 0.0, "sync", (), 0, "", (frame(0x1140),))
    assert located([call], one_binary(bytes(damaged)), "/run/home") == (call,)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_damaged_binary_has_no_lines_and_does_no_harm(data: st.DataObject) -> None:
    whole = bytearray(compiled(TWO_LINES))
    for _damage in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(whole[: data.draw(st.integers(4, len(whole)))])
    call = SystemCall(1, 0.0, "sync", (), 0, "", (frame(0x1140),))
    [got] = located([call], one_binary(damaged), "/run/home")
    assert got.stack[0].startswith(frame(0x1140))


def test_a_program_that_a_thread_starts_goes_on_as_the_process_itself() -> None:
    """As strace 6.1 writes it."""
    text = (
        '9873  1.000000 execve("\\x2f\\x78", ["\\x78"], 0x7ffc5fe21c78 /* 39 vars */ <pid changed to 9872 ...>\n'
        "9872  1.100000 +++ superseded by execve in pid 9873 +++\n"
        "9872  1.200000 <... execve resumed>)       = 0\n"
        "9872  1.300000 sync()                          = 0\n"
    )
    assert [(one.pid, one.name, one.result) for one in parse(text)] == [(9872, "execve", 0), (9872, "sync", 0)]


def test_what_is_written_raw_is_read() -> None:
    text = "1 1.0 read(0x3, 0x7ffc02d53adf, 0x1000) = 0x10\n1 1.1 read(0x3, 0x7ffc, 0x1) = -1 (errno 11)\n"
    assert [(one.arguments[0], one.result) for one in parse(text)] == [("0x3", 16), ("0x3", None)]
