"""Build the file trees that a persistence model allows, each in a tmpfs, and run a program's checker on them. A request
describes a tree by a list of entries. In the list, a directory comes before the entries in it. The contents of files
are cut into chunks, and each chunk has a number. The guest keeps the chunks between requests, because the trees of one
program have nearly all chunks in common."""

from __future__ import annotations

import os
from typing import Any, Optional

from bob.agent.inside import processes
from bob.agent.inside.frames import Denial, Reply
from bob.agent.inside.let_go import mounts, unmount_after_scripts
from bob.agent.inside.mounts import ROOT, mount_at
from bob.agent.inside.programs import directories, run_check, run_or_refuse
from bob.agent.inside.removal import remove_all

CHUNK = 4096  # bytes of a part of a file's contents that has a number
HOLE = -1  # the number of a part that is zero, and takes no memory; -3 stands for three such parts
EMPTIED = "emptied"  # in place of a script that damages a tree: bob removes everything in it

chunks: list[bytes] = []  # all chunks that the host has sent; the index is the number
most = "100%"  # the size of a tree's file system, as tmpfs(5) takes it
CheckerReply = tuple[Optional[int], str]  # the exit code of a checker (None: it did not end in time), and its output


def forget_chunks(blob: bytes) -> Reply:
    del blob, chunks[:]
    return {}, b""


def check_built(
    trees: list[list[list[Any]]],
    root: list[int],
    told: list[str],
    spoilers: list[str],
    seconds: float,
    lengths: list[int],
    blob: bytes,
) -> Reply:
    """Build each of ``trees``, and run the program's checker on it. A crash leaves ``trees[i]``, and before that crash
    the program under test had printed ``told[i]`` (one character for each byte). An entry of a tree is [path, kind,
    inode, mode, uid, gid, size, target, chunk numbers, pairs of extended attribute and chunk number, time of
    modification (ns since 1970; 0: unknown)]. ``root`` is [mode, uid, gid] of the root directory.

    ``spoilers[i]`` is a script that damages ``trees[i]`` before the check (:func:`spoil_and_check`). ``blob`` has new
    chunks one after the other, and ``lengths`` has their lengths. In the reply, ``answers`` has the exit code and the
    output of the checker for each tree. The reply's ``without`` has the names of the extended attributes that tmpfs
    refused, so the trees lack them.
    """
    position = 0
    for length in lengths:
        chunks.append(blob[position : position + length])
        position += length
    without: set[str] = set()
    answers = []
    for entries, text, spoiler in zip(trees, told, spoilers):
        mount_at("bob", ROOT, "tmpfs", 0, f"mode=755,size={most}")
        before = mounts()
        try:
            _mount_nodes()
            _build(entries, root, without)
            answers.append(spoil_and_check(text.encode("latin-1"), spoiler, seconds))
        finally:
            unmount_after_scripts(before)
    return {"answers": answers, "without": sorted(without)}, b""


def _mount_nodes() -> None:
    """If the program is a cluster, give each of its nodes a file system in memory."""
    for place in directories():
        if place != ROOT:
            os.mkdir(place)
            mount_at("bob", place, "tmpfs", 0, f"mode=755,size={most}")


def spoil_and_check(told: bytes, spoiler: str, seconds: float) -> CheckerReply:
    """Damage the mounted state, and then run the program's checker on the state. ``spoiler`` is the name of a script
    that does the damage, or one of two special values: :data:`EMPTIED` (bob removes everything) or "" (no damage).
    ``told`` is what the program under test had printed before the crash."""
    if spoiler == EMPTIED:
        for place in directories():
            if fault := remove_all(place):
                raise Denial(f"cannot empty the tree: {fault}")
    elif spoiler:
        run_or_refuse(spoiler, seconds)
    ended = run_check(told, seconds)
    return ended.code, ended.words


def _build(entries: list[list[Any]], root: list[int], without: set[str]) -> None:
    first: dict[int, str] = {}
    made = set(directories())
    for entry in entries:
        try:
            _make(entry, first, made, without)
        except OSError as error:  # a sandbox has one user, and no devices
            raise Denial(f"{entry[0]} of {entry[4]}:{entry[5]} cannot be made: {error.strerror}") from None
    for path, *_others, modified in entries:  # now, because a new name changes its directory's time
        if modified:
            os.utime(ROOT + path, ns=(modified, modified), follow_symlinks=False)
    mode, uid, gid = root
    try:
        _status(ROOT, "directory", mode, uid, gid)
    except OSError as error:
        raise Denial(f"/ of {uid}:{gid} cannot be made: {error.strerror}") from None


def _make(entry: list[Any], first: dict[int, str], made: set[str], without: set[str]) -> None:
    path, kind, inode, mode, uid, gid, size, target, numbers, xattrs, _modified = entry
    place = ROOT + path
    if kind == "file" and inode in first:
        os.link(first[inode], place)
        return
    if kind == "directory":
        if place not in made:
            os.mkdir(place)
    elif kind == "symlink":
        os.symlink(target, place)
    elif kind == "file":
        first[inode] = place
        with open(place, "wb") as file:
            for number in numbers:
                if number <= HOLE:
                    file.seek(CHUNK * -number, os.SEEK_CUR)
                else:
                    file.write(chunks[number])
            file.truncate(size)
    else:
        kind_of, device = target.split()
        os.mknod(place, int(kind_of, 8) | 0o600, int(device))
    if xattrs and processes.is_on_host:  # it may set others than a guest may
        raise Denial(f"{path} has the extended attribute {xattrs[0][0]}, which a sandbox shows otherwise than a guest")
    for name, number in xattrs:
        try:
            os.setxattr(place, name, chunks[number], follow_symlinks=False)
        except OSError:
            without.add(name)
    _status(place, kind, mode, uid, gid)


def _status(place: str, kind: str, mode: int, uid: int, gid: int) -> None:
    os.chown(place, uid, gid, follow_symlinks=False)
    if kind != "symlink":
        os.chmod(place, mode)
