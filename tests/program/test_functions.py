"""The names of functions that strace writes are held against what nm and objdump say of the same binary with all of its
symbols."""

from __future__ import annotations

import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.program.stack import files_with_names, without_wrong_names
from planted_in_c import compiled

SOURCE = """
#include <unistd.h>

int exported(int n) { return n + 1; }

static __attribute__((noinline)) int hidden(int n) { sync(); return n * 2; }

int __attribute__((noinline)) outer(int n) { return hidden(n) + 3; }

static __attribute__((noinline)) int last(int n) { return outer(n) - 1; }

int main(int count, char **words) { return exported(count) + last(count) + outer(count); }
"""
PATH = "/usr/lib/libx.so"


@cache
def stripped(how: tuple[str, ...]) -> tuple[bytes, bytes]:
    """A binary with all of its symbols, and with exported ones alone."""
    whole = compiled(SOURCE, "-rdynamic", *how)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "binary"
        path.write_bytes(whole)
        subprocess.run(["strip", path], check=True)
        return whole, path.read_bytes()


def symbols(data: bytes, *options: str) -> list[tuple[int, int, str]]:
    """By nm: where a function begins, how long it is, and its name."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        done = subprocess.run(["nm", "-S", *options, file.name], capture_output=True, text=True, check=True)
    found = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [TtWw] (\S+)$", done.stdout, re.M)
    return sorted((int(start, 16), int(length, 16), name) for start, length, name in found)


def frame(name: str, distance: int, offset: int, path: str = PATH) -> str:
    return f" > {path}({name}+{distance:#x}) [{offset:#x}]"


@pytest.mark.parametrize("how", [(), ("-O2",), ("-no-pie",)])
def test_a_name_stays_where_the_code_is_of_that_function_and_nowhere_else(how: tuple[str, ...]) -> None:
    """Of each byte of the code: libunwind gives it the nearest exported name before it."""
    whole, data = stripped(how)
    base = 0x400000 if "-no-pie" in how else 0
    exported = symbols(data, "-D")
    right = wrong = 0
    for start, length, name in symbols(whole):
        for at in range(start + 1, start + length + 1):  # what runs next, behind a call at the byte before
            near, _length, said = max((one for one in exported if one[0] < at), default=(0, 0, ""))
            if not said:
                continue
            given_ = frame(said, at - near, at - base)
            is_right = said == name
            expected = given_ if is_right else f" > {PATH}() [{at - base:#x}]"
            assert without_wrong_names(given_, {PATH: data}) == expected, name
            assert without_wrong_names(given_, {PATH: whole}) == expected, name
            right, wrong = right + is_right, wrong + (not is_right)
    assert right > 50 and wrong > 20


def test_calls_and_frames_that_do_not_matter_stay_as_they_are() -> None:
    calls = "\n".join(
        [
            "7 1700000000.000001 sync() = 0",
            frame("sync", 0x10, 0x20, "/usr/lib/libc.so.6"),
            frame("_PyEval_EvalFrameDefault", 0x10, 0x20, "/usr/bin/python3.11"),
            f" > {PATH}() [0x30]",
            " > unexpected_backtracing_error [0x0]",
            '7 1700000000.000002 write(1<\\x2f>, "\\x20\\x3e", 2) = 2',
            "",
        ]
    )
    assert files_with_names(calls) == []
    assert without_wrong_names(calls, {}) == calls


def test_a_file_is_asked_for_once_and_a_name_of_one_that_is_gone_is_not_believed() -> None:
    calls = "\n".join([frame("f", 1, 2), frame("ns::f(int, g())", 3, 4), frame("f", 1, 2, "/y"), "7 1.0 sync() = 0"])
    assert files_with_names(calls) == [PATH, "/y"]
    gone = f" > {PATH}() [0x2]\n > {PATH}() [0x4]\n > /y() [0x2]\n7 1.0 sync() = 0"
    assert without_wrong_names(calls, {}) == without_wrong_names(calls, {PATH: b"", "/y": b"\x7fELF"}) == gone


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_damaged_file_takes_names_and_does_no_harm(data: st.DataObject) -> None:
    _whole, good = stripped(())
    damaged = bytearray(good)
    for _damage in range(data.draw(st.integers(1, 8))):
        damaged[data.draw(st.integers(4, len(good) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.integers(4, len(good)))])
    [(start, length, name), *_] = [one for one in symbols(good, "-D") if one[2] == "outer"]
    given_ = frame(name, length, start + length)
    assert without_wrong_names(given_, {PATH: cut}) in (given_, f" > {PATH}() [{start + length:#x}]")
    assert without_wrong_names(given_, {PATH: good}) == given_
