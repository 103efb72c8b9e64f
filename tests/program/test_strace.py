"""What strace writes down, and who made a call, by the frames below it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.errors import MalformedError, RecordingError
from bob.program.stack import caller
from bob.program.strace import SystemCall, parse


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
    ],
)
def test_the_innermost_function_of_the_program_is_named(stack: tuple[str, ...], expected: str) -> None:
    assert caller(stack) == expected


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
