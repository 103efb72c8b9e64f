"""Who made a call, by the frames below it."""

from __future__ import annotations

import pytest

from bob.program.stack import caller
from bob.program.strace import parse

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
