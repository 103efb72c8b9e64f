"""In which order calls of several processes took effect."""

from __future__ import annotations

import pytest

from bob.program.effect_order import in_effect_order
from bob.program.strace import parse


def escaped(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def log(*lines: str) -> str:
    """Lines of strace; what is in quotes, or behind a descriptor, is escaped."""
    made = []
    for number, line in enumerate(lines):
        pid, _space, rest = line.partition(" ")
        for sign in ('"', "<"):
            end = {'"': '"', "<": ">"}[sign]
            parts = rest.split(sign)
            if sign == '"':
                rest = sign.join(escaped(part) if at % 2 else part for at, part in enumerate(parts))
            elif not rest.startswith("<...") and "<unfinished" not in rest:
                rest = sign.join(
                    part if not at else escaped(part.partition(end)[0]) + end + part.partition(end)[2]
                    for at, part in enumerate(parts)
                )
        made.append(f"{pid} {number}.000001 {rest}")
    return "\n".join(made)


def order(*lines: str) -> list[tuple[int, str]]:
    return [(one.pid, one.name) for one in in_effect_order(parse(log(*lines)))]


@pytest.mark.parametrize(
    ("removing", "making"),
    [
        ('unlink("/r/f.lock"', 'openat(AT_FDCWD, "f.lock", O_RDWR|O_CREAT|O_EXCL, 0644) = 3'),
        ('rename("/r/f.lock", "/r/f"', 'openat(AT_FDCWD, "f.lock", O_RDWR|O_CREAT|O_EXCL, 0644) = 3'),
        ('rmdir("lock/"', 'mkdir("/r/lock", 0755) = 0'),
        ('unlinkat(AT_FDCWD, "lock", 0', 'link("/r/mine", "/r/lock") = 0'),
        ('unlink("lock"', 'renameat2(AT_FDCWD, "mine", AT_FDCWD, "lock", RENAME_NOREPLACE) = 0'),
    ],
)
def test_a_name_that_is_made_anew_was_removed_before(removing: str, making: str) -> None:
    name = removing.partition("(")[0]
    lines = f"1 {removing} <unfinished ...>", f"2 {making}", f"1 <... {name} resumed>) = 0"
    assert order(*lines) == [(1, name), (2, making.partition("(")[0])]
    removed, made = in_effect_order(parse(log(*lines)))
    assert removed.begun <= removed.done < made.done  # a sync that begins after that covers it


@pytest.mark.parametrize(
    ("removing", "making", "result"),
    [
        ('unlink("/r/f.lock"', 'openat(AT_FDCWD, "f.lock", O_RDWR|O_CREAT, 0644) = 3', "0"),  # it may be the old one
        ('unlink("/r/other"', 'openat(AT_FDCWD, "f.lock", O_RDWR|O_CREAT|O_EXCL, 0644) = 3', "0"),
        ('unlink("f.lock"', 'openat(AT_FDCWD, "f.lock", O_RDWR|O_CREAT|O_EXCL, 0644) = 3', "-1 ENOENT (No such)"),
        ('unlink("f.lock"', 'openat(AT_FDCWD, "f.lock", O_RDWR|O_CREAT|O_EXCL, 0644) = -1 EEXIST (File exists)', "0"),
        ('rename("f", "f.lock"', 'openat(AT_FDCWD, "f.lock", O_RDWR|O_CREAT|O_EXCL, 0644) = 3', "0"),
    ],
)
def test_else_calls_took_effect_as_they_returned(removing: str, making: str, result: str) -> None:
    name = removing.partition("(")[0]
    lines = f"1 {removing} <unfinished ...>", f"2 {making}", f"1 <... {name} resumed>) = {result}"
    assert order(*lines) == [(2, making.partition("(")[0]), (1, name)]


def test_a_number_is_free_as_soon_as_its_close_has_begun() -> None:
    lines = "1 close(0x3 <unfinished ...>", '2 openat(AT_FDCWD, "f", O_RDWR) = 3', "1 <... close resumed>) = 0"
    assert order(*lines) == [(1, "close"), (2, "openat")]


def test_a_call_tells_what_returned_while_it_ran() -> None:
    lines = "2 fdatasync(3 <unfinished ...>", "1 sync() = 0", "2 <... fdatasync resumed>) = 0", "1 sync() = 0"
    first, synced, last = in_effect_order(parse(log(*lines)))
    assert (synced.name, synced.begun < first.done < synced.done) == ("fdatasync", True)
    assert synced.done < last.begun
