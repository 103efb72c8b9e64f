"""How much of each call a tree has, held against all ways in which the tree may have come about: slow, and plain."""

from __future__ import annotations

from collections.abc import Mapping

from bob.observe.observation import Node
from bob.program.strace import SystemCall
from bob.protocol.effects import Effects
from bob.protocol.presence import Persisted, presence
from bob.protocol.protocol import protocol

ROOT = "/mnt"


def call(name: str, *arguments: str, result: int = 0, opened: str = "") -> SystemCall:
    return SystemCall(1, 0.0, name, arguments, result, opened)


def quoted(text: str) -> str:
    """As strace writes it."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in text.encode()) + '"'


def made_of(words: str) -> list[SystemCall]:
    """Calls in a few words: ``create a``, ``write a xy`` (from the first byte on), ``rename a b``, ``unlink a``."""
    calls: list[SystemCall] = []
    for one in words.split("; "):
        verb, *of = one.split()
        path, other = (f"{ROOT}/{name}" for name in (of * 2)[:2])
        descriptor = f"3<{quoted(path)[1:-1]}>"
        if verb in ("create", "write"):
            calls.append(call("openat", "AT_FDCWD", quoted(path), "O_RDWR|O_CREAT", "0644", result=3, opened=path))
        if verb == "write":
            calls.append(call("pwrite64", descriptor, quoted(of[1]), str(len(of[1])), "0", result=len(of[1])))
        if verb == "mkdir":
            calls.append(call("mkdir", quoted(path), "0755"))
        if verb in ("rename", "link"):
            calls.append(call(verb, quoted(path), quoted(other)))
        if verb in ("unlink", "rmdir"):
            calls.append(call(verb, quoted(path)))
        if verb in ("create", "write"):
            calls.append(call("close", descriptor))
    return calls


def tree(files: Mapping[str, bytes]) -> dict[str, Node]:
    """A tree of files, whose inodes bob does not know, and of directories: those end in a slash."""
    nodes = {
        path.rstrip("/"): Node("directory" if path.endswith("/") else "file", 0, 1, len(content), content, mode=0o644)
        for path, content in files.items()
    }
    return {"/": Node("directory"), **nodes}


def followed(words: str, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Effects:
    return protocol(made_of(words), ROOT, tree(before), tree(after))


def test_a_name_that_two_files_bear_of_which_one_is_not_followed() -> None:
    """SQLite removes its log, and makes it again; the first is mapped, so no call tells what is in it."""
    words = "write a old; unlink a; write a new"
    effects = followed(words, {}, {"/a": b"new"})
    effects.files[1].followed = False
    says = presence(effects, tree({"/a": b"new"}))
    assert all(how in (Persisted.THERE, Persisted.UNCLEAR) for how in says.values())
