"""What is found in a tree; here, one of the host's own."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.agent.inside import look
from bob.agent.inside.devices import EPOCH, without_usage
from bob.agent.inside.late_disk import (
    FLUSH,
    READ,
    REPLY,
    REPLY_MAGIC,
    REQUEST,
    REQUEST_MAGIC,
    SETTLED_SECONDS,
    WRITE,
    LateServer,
)
from bob.agent.inside.look import Look, TreeEntry, describe
from bob.agent.inside.mounts import libc
from bob.agent.inside.state_session import StateOutcome, encode
from bob.agent.inside.statx import FS_IOC_GETFLAGS


def found(looking: Look) -> dict[str, dict[str, Any]]:
    return describe(looking.tree())


ENTRY = st.tuples(
    st.sampled_from(["file", "directory"]), st.integers(0, 9), st.just(1), st.integers(0, 2**40),
    st.lists(st.integers(0, 9), max_size=3).map(tuple), st.text(max_size=3),
    st.lists(st.tuples(st.text(max_size=3), st.integers(0, 9)), max_size=2).map(lambda some: tuple(dict(some).items())),
    st.none() | st.tuples(st.integers(0, 0o7777), st.just(0), st.just(0), st.integers(0, 2**60)),
    st.sampled_from([(), (("unseen", True),), (("touched", ("mtime", "atime")), ("blocks", 8))]),
    st.none() | st.text(max_size=3),
)  # fmt: skip
PATHS = st.binary(max_size=4).map(os.fsdecode)


@given(
    st.lists(
        st.tuples(
            st.none() | st.text(max_size=3),
            st.booleans(),
            st.none() | st.dictionaries(PATHS, ENTRY, max_size=4).map(lambda tree: tuple(sorted(tree.items()))),
        )
    )
)
def test_outcomes_are_encoded_as_json_would(outcomes: list[StateOutcome]) -> None:
    encoded: dict[tuple[str, TreeEntry], str] = {}
    for error, repaired, tree in [*outcomes, *outcomes]:
        told = "no: it is full" if error == "no" else error
        whole = {"error": told, "repaired": repaired, "tree": None if tree is None else describe(tree)}
        text = encode((error, repaired, tree), {"no": "it is full"}, encoded)
        assert text == json.dumps(whole, sort_keys=True, separators=(",", ":"))


def test_a_tree_is_found_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "d/e").mkdir(parents=True)
    (tmp_path / "d/a").write_bytes(b"a" * 5000)
    (tmp_path / "d/b").hardlink_to(tmp_path / "d/a")
    (tmp_path / "s").symlink_to("/nowhere")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "fifo")
    looking = Look(str(tmp_path))
    tree = found(looking)
    assert list(tree) == ["/d", "/d/a", "/d/b", "/d/e", "/empty", "/fifo", "/s"]
    assert {path: entry["kind"] for path, entry in tree.items()} == {
        "/d": "directory", "/d/a": "file", "/d/b": "file", "/d/e": "directory", "/empty": "file", "/fifo": "other",
        "/s": "symlink",
    }  # fmt: skip
    assert tree["/d/a"] == tree["/d/b"]
    assert tree["/d/a"]["links"] == 2
    assert tree["/d/a"]["size"] == 5000
    assert [looking.new_chunks[number] for number in tree["/d/a"]["content"]] == [b"a" * 4096, b"a" * 904]
    assert tree["/d/a"]["inode"] == (tmp_path / "d/a").stat().st_ino
    assert tree["/empty"]["content"] == ()
    assert tree["/s"]["target"] == "/nowhere"


def test_what_stat_says_is_found(tmp_path: Path) -> None:
    (tmp_path / "d/e").mkdir(parents=True)
    (tmp_path / "d/f").mkdir()
    (tmp_path / "a").touch()
    (tmp_path / "s").symlink_to("a")
    (tmp_path / "d").chmod(0o1751)
    (tmp_path / "a").chmod(0o4604)
    before = EPOCH * 10**9 - 1
    os.utime(tmp_path / "a", ns=(0, before))
    os.utime(tmp_path / "d", ns=(0, before + 1))
    tree = found(Look(str(tmp_path)))
    assert (tree["/d"]["mode"], tree["/a"]["mode"], tree["/s"]["mode"]) == (0o1751, 0o4604, 0o777)
    assert (tree["/d"]["mtime"], tree["/a"]["mtime"], tree["/s"]["mtime"]) == (0, before, 0)
    assert tree["/d"]["links"] == (tmp_path / "d").stat().st_nlink
    assert {(entry["uid"], entry["gid"]) for entry in tree.values()} == {(os.getuid(), os.getgid())}


def test_equal_contents_have_one_number_whenever_they_are_seen(tmp_path: Path) -> None:
    looking = Look(str(tmp_path))
    numbers = []
    for content in (b"x" * 4096, b"y" * 4096, b"x" * 4096, b"x" * 4096 + b"y" * 4096):
        (tmp_path / "a").write_bytes(content)
        numbers.append(found(looking)["/a"]["content"])
    assert numbers == [(0,), (1,), (0,), (0, 1)]
    assert looking.new_chunks == [b"x" * 4096, b"y" * 4096]


LATER = 4_200_000_000 * 10**9
"""A time of access that no read changes (relatime)."""
CHANGES: dict[str, Callable[[Path], object]] = {
    "a byte": lambda root: (root / "d/a").write_bytes(b"a" * 4999 + b"b"),
    "its size": lambda root: os.truncate(root / "d/a", 5001),
    "its mode": lambda root: (root / "d/a").chmod(0o601),
    "a nanosecond": lambda root: os.utime(root / "d/a", ns=(LATER, 5_000_000_001)),
    "one more link": lambda root: (root / "d/b").hardlink_to(root / "d/a"),
    "another inode": lambda root: ((root / "n").write_bytes(b"a" * 5000), (root / "n").rename(root / "d/a")),
    "an attribute": lambda root: os.setxattr(root / "d/a", "user.x", b"1"),
    "a directory's mode": lambda root: (root / "d").chmod(0o701),
    "a directory's time": lambda root: os.utime(root / "d", ns=(LATER, 5_000_000_001)),
    "a directory's attribute": lambda root: os.setxattr(root / "d", "user.x", b"1"),
    "a directory for a file": lambda root: ((root / "d/a").unlink(), (root / "d/a").mkdir()),
}


@pytest.mark.parametrize("closely", [False, True])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_changed_since_the_last_look_is_seen(
    tmp_path: Path, change: Callable[[Path], object], *, closely: bool
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a").write_bytes(b"a" * 5000)
    for path in ("d/a", "d"):
        os.utime(tmp_path / path, ns=(LATER, 5_000_000_000))
    looking = Look(str(tmp_path), closely=closely)
    before = looking.tree()
    assert looking.tree() == before
    try:
        change(tmp_path)
    except OSError as error:
        pytest.skip(f"the folder for temporary files cannot do it: {error.strerror}")
    after, anew = looking.tree(), Look(str(tmp_path), closely=closely)
    assert after != before
    assert in_full(after, looking) == in_full(anew.tree(), anew)


FAR = 5 * 2**30
"""Behind what is read of each file from end to end."""


def far_in(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(FAR)
        file.write(data)


def deep_below(root: Path, levels: int = 40) -> int:
    """The directory so many levels below ``root``, made where it is missing, as a descriptor."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for level in range(levels):
        name = f"{level:0200}"
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=fd)
        deeper = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = deeper
    return fd


def deep_file(root: Path, data: bytes) -> None:
    folder = deep_below(root)
    fd = os.open("f", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=folder)
    os.write(fd, data)
    os.close(fd)
    os.close(folder)


def flagged(path: Path, flag: int) -> None:
    """What chattr does."""
    fd = os.open(path, os.O_RDONLY)
    try:
        flags = bytearray(8)
        fcntl.ioctl(fd, FS_IOC_GETFLAGS, flags)
        now = int.from_bytes(flags, "little") | flag
        fcntl.ioctl(fd, FS_IOC_SETFLAGS, now.to_bytes(8, "little"))
    finally:
        os.close(fd)


def reserved(path: Path, length: int) -> None:
    keep_size = 1
    if libc.fallocate(os.open(path, os.O_WRONLY), keep_size, ctypes.c_long(0), ctypes.c_long(length)):
        raise OSError(ctypes.get_errno(), "fallocate")


FS_IOC_SETFLAGS = 0x40086602
NOATIME, NODUMP = 0x80, 0x40
YEAR_2100 = 4_102_444_800 * 10**9
CHANGES_THAT_A_PROGRAM_SEES: dict[str, Callable[[Path], object]] = {
    "data far in a file": lambda root: far_in(root / "far", b"new"),
    "zeros for data far in a file": lambda root: far_in(root / "far", bytes(3)),
    "data far down": lambda root: deep_file(root, b"new"),
    "a name far down": lambda root: os.close(deep_below(root, 41)),
    "a flag": lambda root: flagged(root / "d/a", NOATIME),
    "another flag": lambda root: flagged(root / "d/a", NODUMP),
    "a directory's flag": lambda root: flagged(root / "d", NODUMP),
    "another time in the future": lambda root: os.utime(root / "d/a", ns=(LATER, YEAR_2100)),
    "a nanosecond in the future": lambda root: os.utime(root / "d/b", ns=(LATER, YEAR_2100 + 1)),
    "a time of access": lambda root: os.utime(root / "d/a", ns=(LATER + 1, 5_000_000_000)),
    "1970 for now": lambda root: os.utime(root / "now", ns=(LATER, 0)),
    "reserved room": lambda root: reserved(root / "d/a", 1_000_000),
    "an attribute of a link": lambda root: os.setxattr(root / "s", "trusted.x", b"1", follow_symlinks=False),
    "another device": lambda root: ((root / "dev").unlink(), os.mknod(root / "dev", 0o20600, os.makedev(1, 3))),
    "an access list": lambda root: os.setxattr(root / "d/a", "system.posix_acl_access", ACCESS_LIST),
}
ACCESS_LIST = struct.pack(
    "<I" + "HHI" * 5, 2, 1, 6, 2**32 - 1, 2, 4, 7, 4, 4, 2**32 - 1, 16, 4, 2**32 - 1, 32, 4, 2**32 - 1
)


@pytest.mark.parametrize("change", CHANGES_THAT_A_PROGRAM_SEES.values(), ids=CHANGES_THAT_A_PROGRAM_SEES)
def test_what_a_program_sees_makes_another_tree(tmp_path: Path, change: Callable[[Path], object]) -> None:
    since = time.time_ns()  # so all times that are set from here on are one
    (tmp_path / "d").mkdir()
    for name in ("d/a", "d/b", "far", "now"):
        (tmp_path / name).write_bytes(b"a" * 5000)
    (tmp_path / "s").symlink_to("d")
    with suppress(PermissionError):
        os.mknod(tmp_path / "dev", 0o20600, os.makedev(1, 5))
    far_in(tmp_path / "far", b"old")
    deep_file(tmp_path, b"old")
    for name, ns in (("d/a", 5_000_000_000), ("d/b", YEAR_2100), ("now", time.time_ns())):
        os.utime(tmp_path / name, ns=(LATER, ns))
    looking = Look(str(tmp_path), closely=True)
    before = looking.tree(since)
    assert looking.tree(since) == before
    try:
        change(tmp_path)
    except OSError as error:
        pytest.skip(f"the folder for temporary files cannot do it: {error.strerror}")
    os.utime(tmp_path, ns=(LATER, 0))
    after, anew = looking.tree(since), Look(str(tmp_path), closely=True)
    assert [entry for entry in after if entry[0] != "/"] != [entry for entry in before if entry[0] != "/"]
    assert told_in_full(after, looking) == told_in_full(anew.tree(since), anew)
    assert not any("unseen" in entry for entry in describe(after).values())


def told_in_full(tree: look.EntryTree, looking: Look) -> dict[str, Any]:
    """``tree`` as it travels, with its chunks in place of their numbers."""
    chunks = looking.new_chunks
    return {
        path: entry
        | {"content": [chunks[number] for number in entry["content"]]}
        | {"xattrs": {name: chunks[number] for name, number in entry.get("xattrs", {}).items()}}
        for path, entry in describe(tree).items()
    }


def test_far_in_a_file_a_hole_is_as_good_as_zeros(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"begin")
    far_in(tmp_path / "a", b"end")
    looking = Look(str(tmp_path), closely=True)
    before = found(looking)["/a"]
    assert before["size"] == FAR + 3
    assert dict(zip(before["places"], (looking.new_chunks[number] for number in before["content"]), strict=True)) == {
        0: b"begin".ljust(4096, b"\0"),
        FAR: b"end",
    }
    with (tmp_path / "a").open("r+b") as file:
        file.seek(FAR // 2 + 100)
        file.write(bytes(10_000))
    after = found(looking)["/a"]
    assert (after["places"], after["content"], after["size"]) == (before["places"], before["content"], before["size"])


def test_a_time_that_recovery_or_the_look_has_set_makes_no_difference(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    os.utime(tmp_path / "a", ns=(LATER, 7))
    trees = []
    for _turn in range(2):
        since = time.time_ns()
        os.utime(tmp_path / "a", ns=(LATER, time.time_ns()))
        time.sleep(0.01)
        trees.append(describe(Look(str(tmp_path), closely=True).tree(since)))
    one, other = (tree["/a"] for tree in trees)
    assert one == other
    assert one["mtime"] == 0
    assert {"mtime", "ctime"} <= set(one["touched"])


def test_what_bob_does_not_look_at_is_told_from_what_the_kernel_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad").write_bytes(b"1")
    for number, is_unseen in ((5, False), (117, False), (12, True), (126, True)):
        with monkeypatch.context() as patched:
            Faulty(patched, "open", "bad", number=number)
            assert found(Look(str(tmp_path)))["/bad"].get("unseen", False) == is_unseen


def test_more_data_than_is_looked_at_is_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "LONGEST", 2 * look.PIECE)
    (tmp_path / "a").write_bytes(b"a" * (2 * look.PIECE + 1))
    (tmp_path / "b").write_bytes(b"b" * (2 * look.PIECE))
    tree = found(Look(str(tmp_path), closely=True))
    assert tree["/a"]["unseen"]
    assert "more than" in tree["/a"]["fault"]
    assert "fault" not in tree["/b"]


def test_a_directory_without_end_is_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "MOST_TEXT", 10_000)
    deep_file(tmp_path, b"")
    tree = found(Look(str(tmp_path)))
    [last] = [path for path, entry in tree.items() if entry.get("unseen")]
    assert last == max(tree)


def in_full(tree: look.EntryTree, looking: Look) -> list[tuple[str, object]]:
    """``tree`` with its chunks in place of their numbers."""
    chunks = looking.new_chunks
    return [
        (
            path,
            [entry[:4], *(chunks[one] for one in entry[4]), entry[5], *((name, chunks[one]) for name, one in entry[6])],
        )
        for path, entry in tree
    ]


def test_bobs_own_files_and_lost_and_found_are_passed_over_at_the_root_only(tmp_path: Path) -> None:
    for path in (".bob-clock", "lost+found", "d/.bob-clock", "d/lost+found"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    assert list(found(Look(str(tmp_path)))) == ["/d", "/d/.bob-clock", "/d/lost+found"]


def test_extended_attributes_of_files_and_directories(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "a").touch()
    try:
        for name in ("d", "a"):
            os.setxattr(tmp_path / name, "user.x", b"value")
    except OSError:
        pytest.skip("the folder for temporary files has no extended attributes")
    looking = Look(str(tmp_path))
    tree = found(looking)
    assert tree["/d"]["xattrs"] == tree["/a"]["xattrs"] == {"user.x": looking.new_chunks.index(b"value")}


def test_names_that_are_no_text_are_found(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))).touch()
    assert list(found(Look(str(tmp_path)))) == ["/\udcff\udcfe"]


def test_a_damaged_size_does_not_keep_it_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "LONGEST", 2 * look.PIECE)
    with (tmp_path / "a").open("wb") as file:
        file.truncate(10**12)
    entry = found(Look(str(tmp_path)))["/a"]
    assert entry["size"] == 10**12
    assert len(entry["content"]) == 2 * look.PIECE // look.CHUNK
    assert "longer than" in entry["fault"]


class Faulty:
    """Some calls of os fail."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, call: str, name: str, *, after: int = 0, number: int = 117
    ) -> None:
        self.left = after
        real = getattr(os, call)

        def fail(path: Any, *arguments: Any) -> Any:
            if name not in str(path) and call != "read":
                return real(path, *arguments)
            if self.left > 0:
                self.left -= 1
                return real(path, *arguments)
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(look.os, call, fail)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("lstat", {"/bad": ("unreadable", "Structure needs cleaning")}),
        ("open", {"/bad": ("file", "Structure needs cleaning")}),
        ("listxattr", {"/bad": ("file", "Structure needs cleaning")}),
    ],
)
def test_what_cannot_be_read_is_at_fault_and_the_rest_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, expected: dict[str, tuple[str, str]]
) -> None:
    (tmp_path / "bad").write_bytes(b"1")
    (tmp_path / "good").write_bytes(b"2")
    Faulty(monkeypatch, call, "bad")
    tree = found(Look(str(tmp_path)))
    assert {path: (entry["kind"], entry["fault"]) for path, entry in tree.items() if "fault" in entry} == expected
    assert tree["/good"]["size"] == 1
    assert ("mode" in tree["/bad"]) == (call != "lstat")


def test_what_was_read_before_a_fault_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"a" * (look.PIECE + 100))
    Faulty(monkeypatch, "read", "", after=1)
    looking = Look(str(tmp_path))
    entry = found(looking)["/a"]
    assert entry["fault"] == "Structure needs cleaning"
    assert len(entry["content"]) == look.PIECE // look.CHUNK


def test_a_folder_that_cannot_be_listed_keeps_its_inode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad").mkdir()
    Faulty(monkeypatch, "listdir", "bad")
    entry = found(Look(str(tmp_path)))["/bad"]
    assert entry["kind"] == "directory"
    assert entry["mode"] == (tmp_path / "bad").stat().st_mode & 0o7777
    assert entry["inode"] == (tmp_path / "bad").stat().st_ino
    assert entry["fault"] == snapshot("cannot be listed: Structure needs cleaning")


def test_a_root_that_cannot_be_listed(tmp_path: Path) -> None:
    entry = found(Look(str(tmp_path / "missing")))["/"]
    assert (entry["kind"], entry["fault"]) == ("directory", snapshot("cannot be listed: No such file or directory"))


def test_inode_numbers_that_do_not_last_are_not_told(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_bytes(b"a")
    assert all(entry["inode"] for entry in found(Look(str(tmp_path))).values())
    assert [entry["inode"] for entry in found(Look(str(tmp_path), lasting_inodes=False)).values()] == [0, 0]


def test_what_recovery_saves_at_the_top_is_left_out(tmp_path: Path) -> None:
    """fsck.fat makes a file of clusters that no file has: on vfat each of them passed for damage."""
    (tmp_path / "d").mkdir()
    for name in ("FSCK0000.REC", "lost+found", ".bob-clock", "FSCK0000.RECx", "d/FSCK0000.REC"):
        (tmp_path / name).touch()
    assert list(found(Look(str(tmp_path)))) == ["/FSCK0000.RECx", "/d", "/d/FSCK0000.REC"]


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("invalid option -- 'x'\nUsage: mkfs.xfs\n/* blocksize */ [-b size=num]\n", "invalid option -- 'x'"),
        ("mke2fs 1.47.0\nunknown feature: nix\n", "mke2fs 1.47.0\nunknown feature: nix\n"),
        ("usage: mkfs.minix [options] /dev/name\n", "usage: mkfs.minix [options] /dev/name\n"),
        ("no usage: is a word here", "no usage: is a word here"),
    ],
)
def test_what_a_program_says_of_a_mistake_is_told_without_all_its_options(printed: str, told: str) -> None:
    assert without_usage(printed).strip() == told.strip()


# The process that serves a disk that takes its time: what it answers, and when, to the kernel's driver

FUA = 1 << 16
LENGTH = 64 * 1024


class Kernel:
    """The driver's end."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def ask(self, command: int, handle: int, start: int = 0, length: int = 0, data: bytes = b"") -> None:
        self.end.sendall(REQUEST.pack(REQUEST_MAGIC, command, handle, start, length or len(data)) + data)

    def told(self, data: int = 0) -> tuple[int, bytes]:
        """The next handle that is told to be done, with ``data`` bytes that were read."""
        self.end.settimeout(20)
        magic, error, handle = REPLY.unpack(self._exactly(REPLY.size))
        assert (magic, error) == (REPLY_MAGIC, 0)
        return handle, self._exactly(data)

    def silent(self, seconds: float) -> bool:
        return not select.select([self.end], [], [], seconds)[0]

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.end.recv(count - len(data))
            assert more, "it hung up"
            data += more
        return data


@contextmanager
def served(disk: Path, *, youngest: bool) -> Iterator[Kernel]:
    disk.write_bytes(bytes(LENGTH))
    ours, kernels = socket.socketpair()
    control, other_end = os.pipe()
    serving = LateServer(ours, control, str(disk), 0, LENGTH, youngest=youngest)
    server = threading.Thread(target=serving.serve)
    server.start()
    try:
        yield Kernel(kernels)
    finally:
        os.close(other_end)
        server.join(20)
        assert not server.is_alive()
        os.close(control)
        ours.close()
        kernels.close()


@pytest.mark.parametrize(("youngest", "order"), [(True, [3, 2, 1]), (False, [1, 2, 3])])
def test_writes_are_told_one_at_a_time_in_the_order_asked_for(tmp_path: Path, youngest: bool, order: list[int]) -> None:
    with served(tmp_path / "disk", youngest=youngest) as kernel:
        for number in (1, 2, 3):
            kernel.ask(WRITE | (FUA if number == 2 else 0), number, number * 4096, data=bytes([number]) * 4096)
        assert [kernel.told()[0] for _ in range(3)] == order
        assert kernel.silent(5 * SETTLED_SECONDS)
    disk = (tmp_path / "disk").read_bytes()
    assert [disk[number * 4096 : (number + 1) * 4096] for number in range(4)] == [bytes([n]) * 4096 for n in range(4)]


def test_of_writes_of_one_place_the_last_lands_last_whichever_is_told_first(tmp_path: Path) -> None:
    with served(tmp_path / "disk", youngest=True) as kernel:
        kernel.ask(WRITE, 1, 0, data=b"a" * 512)
        kernel.ask(WRITE, 2, 0, data=b"b" * 512)
        assert {kernel.told()[0], kernel.told()[0]} == {1, 2}
    assert (tmp_path / "disk").read_bytes()[:512] == b"b" * 512


def test_reads_and_flushes_do_not_wait_for_what_is_held_and_reads_see_it(tmp_path: Path) -> None:
    with served(tmp_path / "disk", youngest=True) as kernel:
        pending = b"".join(
            [
                REQUEST.pack(REQUEST_MAGIC, WRITE, 1, 512, 512) + b"x" * 512,
                REQUEST.pack(REQUEST_MAGIC, FLUSH, 2, 0, 0),
                REQUEST.pack(REQUEST_MAGIC, READ, 3, 0, 1024),
            ]
        )
        kernel.end.sendall(pending)
        assert kernel.told()[0] == 2
        assert kernel.told(1024) == (3, bytes(512) + b"x" * 512)
        assert kernel.told()[0] == 1


def test_it_ends_when_the_kernel_hangs_up(tmp_path: Path) -> None:
    with served(tmp_path / "disk", youngest=True) as kernel:
        kernel.end.shutdown(socket.SHUT_RDWR)
