"""A guest and a sandbox over its root: the same checker sees the same of the same tree, and answers alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from bob.agent.client import Agent
from bob.image import ensure, unpacked
from bob.observe.observation import Node
from bob.observe.tree_builder import TreeBuilder
from bob.program.answer import CheckerRun
from bob.program.folder import load, shipped_programs
from bob.program.program import Program, ProgramFile
from bob.record.recorder import put_program
from bob.sandbox.agents import sandbox
from bob.sandbox.bubblewrap import owner

from .conftest import Inhabited

pytestmark = pytest.mark.vm

LOOK = b"""#!/usr/bin/env python3
import json, os, sqlite3, sys, zlib
def row(path):
    one = os.lstat(path)
    kind = [oct(one.st_mode), one.st_nlink, one.st_uid, one.st_gid, one.st_size, one.st_blocks]
    data = os.readlink(path) if os.path.islink(path) else "" if os.path.isdir(path) else zlib.crc32(open(path, "rb").read())
    names = os.listxattr(path, follow_symlinks=False)
    return [path[len(sys.argv[1]):], *kind, data, names]
rows = [row(os.path.join(folder, name)) for folder, *below in os.walk(sys.argv[1]) for name in sum(below, [])]
status = os.statvfs(sys.argv[1])
about = [os.getcwd(), os.getuid(), os.getgid(), os.umask(0), os.uname().nodename, sys.version, sqlite3.sqlite_version]
of_logins = {"SSH_CLIENT", "SSH_CONNECTION", "MAIL", "PWD", "OLDPWD"}
about += [sorted(set(os.environ) - of_logins), sys.argv[1:], status.f_namemax, status.f_bsize]
os.chown(sys.argv[1] + "/f", 0, 0)
about += [sys.flags.hash_randomization, os.path.exists("/dev/null"), sorted(os.listdir("/"))]
print(json.dumps([sorted(rows), about, open(sys.argv[2]).read(), row(sys.argv[1])[1:3]]))
"""
TREE = {
    "/d": Node("directory", mode=0o2750),
    "/d/hole": Node("file", inode=4, mode=0o400, content=b"x" + bytes(20000) + b"y", size=50_000),
    "/empty": Node("directory", mode=0o700),
    "/f": Node("file", inode=3, mode=0o4640, content=b"hello", size=5),
    "/link": Node("file", inode=3, mode=0o4640, content=b"hello", size=5),
    "/pipe": Node("other", target=f"{0o10000:o} 0", mode=0o600),
    "/s": Node("symlink", target="d/hole"),
}


@pytest.fixture
def confined(observing: Inhabited) -> Iterator[Agent]:
    with sandbox(unpacked(ensure("debian-bookworm", print).root, owner(), print)) as agent:
        yield agent


def seen(agent: Agent) -> list[Any]:
    put_program(agent, Program("mine", "", (ProgramFile("check", LOOK, True),)))
    tree = {path: node for path, node in TREE.items() if path != "/pipe"}
    [answer] = TreeBuilder(agent, Node("directory", mode=0o751)).check([CheckerRun(tree, b"told\n")], 60.0)
    assert answer.code == 0, answer.printed
    found: list[Any] = json.loads(answer.printed)
    return found


def test_a_checker_sees_the_same(observing: Inhabited, confined: Agent) -> None:
    rows, about, told, top = seen(confined)
    there = seen(observing.agent)
    assert (rows, told, top) == (there[0], there[2], there[3])
    assert about == there[1]


def test_shipped_checkers_answer_alike(observing: Inhabited, confined: Agent) -> None:
    """On trees that they refuse, too, in the same words."""
    for name in ("sqlite-rollback", "replace-rename", "replace-mv"):
        program, answers = load(shipped_programs()[name]), []
        trees = [{}, {"/f": TREE["/f"]}, {"/db": Node("file", inode=2, mode=0o644, content=b"no database", size=11)}]
        for agent in (observing.agent, confined):
            put_program(agent, program)
            asked = [CheckerRun(tree, told) for tree in trees for told in (b"", b"committed 1\n")]
            answers.append(TreeBuilder(agent, Node("directory")).check(asked, 60.0))
        assert answers[0] == answers[1], name
