"""Programs that need a newer C library than the guest has, by what their files say."""

from __future__ import annotations

import io
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from elftools.elf.elffile import ELFFile
from inline_snapshot import snapshot

from bob.errors import UsageError
from bob.program.libc import check_libc, needed_glibc
from bob.program.program import Program, ProgramFile
from wording import text_with

SOURCE = '#include <stdio.h>\nint main(void) { return puts("x") < 0; }\n'


@cache
def built(*options: str) -> bytes:
    with TemporaryDirectory() as folder:
        words = ["gcc", "-x", "c", "-", "-o", f"{folder}/x", *options]
        subprocess.run(words, input=SOURCE, text=True, check=True, capture_output=True)
        return Path(folder, "x").read_bytes()


def marked(minor: int) -> bytes:
    """A program that says it needs GLIBC_2.``minor``: the text of its newest version is another one."""
    data = built()
    names = ELFFile(io.BytesIO(data)).get_section_by_name(".dynstr")
    text = names.data()
    newest = max(re.findall(rb"GLIBC_2\.(\d\d)\0", text), key=int)
    changed = text.replace(b"GLIBC_2." + newest + b"\0", f"GLIBC_2.{minor}\0".encode())
    start = names["sh_offset"]
    return data[:start] + changed + data[start + len(text) :]


def program(data: bytes, *, executable: bool = True) -> Program:
    return Program("mine", "", (ProgramFile("workload", b"#!/bin/sh\n", True), ProgramFile("kv", data, executable)))


def test_the_newest_version_counts() -> None:
    mine, theirs = needed_glibc(built()), re.findall(r"\d+", os.confstr("CS_GNU_LIBC_VERSION") or "")
    assert mine is not None and mine <= (int(theirs[0]), int(theirs[1]))
    assert needed_glibc(marked(99)) == (2, 99)


@pytest.mark.parametrize(
    "data",
    [b"", b"#!/bin/sh\n", b"\x7fELF", built()[:700], built("-static"), built("-Wl,--dynamic-linker=/opt/mine/ld.so")],
    ids=["empty", "script", "magic", "cut", "static", "own loader"],
)
def test_other_files_need_nothing(data: bytes) -> None:
    assert needed_glibc(data) is None


@pytest.mark.parametrize("libc", ["", "musl 1.2", "glibc"])
def test_what_is_not_known_refuses_nothing(libc: str) -> None:
    check_libc(program(marked(99)), libc, "debian-bookworm")


@pytest.mark.parametrize(
    ("libc", "refused"), [("glibc 2.37", True), ("glibc 2.38", False), ("glibc 2.9", True), ("glibc 3.0", False)]
)
def test_a_newer_library_than_the_guests_is_refused(libc: str, refused: bool) -> None:
    check_libc(program(marked(38), executable=False), libc, "debian-bookworm")
    if not refused:
        check_libc(program(marked(38)), libc, "debian-bookworm")
        return
    with pytest.raises(UsageError) as error:
        check_libc(program(marked(38)), libc, "debian-bookworm")
    assert libc in error.value.message and "kv" in error.value.message


def test_the_words() -> None:
    with pytest.raises(UsageError) as error:
        check_libc(program(marked(38)), "glibc 2.36", "debian-bookworm")
    assert text_with(str(error.value), "GLIBC_2.38", "2.36") == snapshot(
        "kv needs GLIBC_2.38, and debian-bookworm has glibc 2.36"
    )
    assert text_with(error.value.hint, "bob app build", "--image") == snapshot(
        "link it statically, build it in the guest's system with `bob app build FOLDER`, or choose a newer one with --image, such as debian-trixie"
    )
