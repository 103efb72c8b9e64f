"""Files that were told of and never synced, and changes that bob does not follow, by what strace wrote."""

from __future__ import annotations

import pytest

from bob.program.strace import SystemCall
from bob.program.unsynced import not_followed, unsynced

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


def renamed(old: str, new: str, how: str = "rename") -> SystemCall:
    here = f"AT_FDCWD<{hexed(ROOT)}>"
    if how == "rename":
        return SystemCall(1, 0.0, how, (f'"{hexed(ROOT + old)}"', f'"{hexed(ROOT + new)}"'), 0)
    return SystemCall(1, 0.0, how, (here, f'"{hexed(old[1:])}"', here, f'"{hexed(new[1:])}"', "0"), 0)


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
        ([write("/f"), write("/t"), on("fsync", "/t"), renamed("/t", "/f"), tell()], ("/f",)),
        ([write("/t"), on("fsync", "/t"), renamed("/t", "/f"), tell()], ()),
        ([write("/f")], ()),
        ([write("/f"), tell(), on("fsync", "/f")], ("/f",)),
        ([tell(), write("/f")], ()),
        ([write("/../elsewhere/f"), tell()], ("/../elsewhere/f",)),
        ([SystemCall(1, 0.0, "write", (fd(3, "/tmp/other"), '"\\x61"', "1"), 1), tell()], ()),
    ],
)
def test_files_that_were_told_of_and_never_synced(calls: list[SystemCall], told: tuple[str, ...]) -> None:
    assert unsynced(calls, PIPE, ROOT) == told


def test_a_file_that_is_written_synchronously_needs_no_sync() -> None:
    opened = SystemCall(1, 0.0, "openat", (f"AT_FDCWD<{hexed(ROOT)}>", f'"{hexed("f")}"', "O_WRONLY|O_DSYNC"), 3)
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


def test_a_name_is_relative_to_where_the_process_has_gone() -> None:
    gone = SystemCall(1, 0.0, "chdir", (f'"{hexed(ROOT + "/d")}"',), 0)
    moved = SystemCall(1, 0.0, "rename", (f'"{hexed("f")}"', f'"{hexed("g")}"'), 0)
    assert unsynced([gone, write("/d/f"), moved, tell()], PIPE, ROOT) == ("/d/g",)
    assert unsynced([write("/d/f"), moved, tell()], PIPE, ROOT) == ("/d/f",)
