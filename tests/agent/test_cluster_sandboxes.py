"""Clusters in real sandboxes on the host, with nodes and clients that are short scripts. No guest runs; bob builds the
image of guests, whose files are the sandboxes' root."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bob.image import ensure, unpacked
from bob.observe.observation import Node
from bob.observe.tree_builder import TreeBuilder
from bob.program.answer import CheckerAnswer, CheckerRun
from bob.program.program import Program, ProgramFile
from bob.record.recorder import choose_start, put_program
from bob.sandbox.agents import sandbox
from bob.sandbox.bubblewrap import owner

pytestmark = pytest.mark.vm

IDLE = "exec sleep 1000"
Check = Callable[..., CheckerAnswer]


@pytest.fixture(scope="module")
def root() -> Path:
    return unpacked(ensure("debian-bookworm", print).root, owner(), print)


@contextmanager
def cluster(root: Path, **scripts: str) -> Iterator[Check]:
    """Yield a function that checks a tree of two nodes in one sandbox."""
    files = tuple(
        ProgramFile(name, (text if text[:2] == "#!" else f"#!/bin/sh\n{text}\n").encode(), True)
        for name, text in scripts.items()
    )
    program = Program("mine", "", files, nodes=2, seconds=20, ready_seconds=8)
    with sandbox(root) as agent:
        put_program(agent, program)
        builder = TreeBuilder(agent, Node("directory", mode=0o755))

        def check(told: bytes = b"", *, alone: int = -1, **files: Node) -> CheckerAnswer:
            choose_start(agent, alone=alone)
            folder = Node("directory", mode=0o755)
            tree = {
                "/n0": folder,
                "/n1": folder,
                **{"/" + path.replace("_", "/"): node for path, node in files.items()},
            }
            return builder.check([CheckerRun(tree, told)], program.seconds, longest=100)[0]

        yield check


SERVER = """#!/usr/bin/python3
import socket, sys
server = socket.socket()  # without SO_REUSEADDR
server.bind((f"10.9.0.1{sys.argv[1]}", 7000))
server.listen()
while True:
    with server.accept()[0] as connection:
        connection.recv(10)  # and close first: the node's end waits for late packets
"""
CLIENT = """#!/usr/bin/python3
import socket
for number in range(2):
    with socket.create_connection((f"10.9.0.1{number}", 7000), 2) as connection:
        connection.sendall(b"x")
        connection.recv(10)
"""


def test_a_node_gets_its_port_again_after_a_crash(root: Path) -> None:
    """A machine that boots has no connections of an earlier life."""
    with cluster(root, node=SERVER, ready=CLIENT, check=CLIENT) as check:
        for _crash in range(2):
            answer = check()
            assert answer.code == 0, answer.printed


LOCAL = """#!/usr/bin/python3
import socket
for address in "127.0.0.1", "10.9.0.1":
    with socket.create_server((address, 0)) as server:
        socket.create_connection(server.getsockname(), 2).close()
"""


def test_a_client_may_talk_to_itself(root: Path) -> None:
    with cluster(root, node=IDLE, check=LOCAL) as check:
        answer = check()
        assert answer.code == 0, answer.printed


def test_a_node_that_empties_its_temporary_folders_leaves_the_next_check_alone(root: Path) -> None:
    node = f"rm -rf /tmp/* /var/tmp/* /dev/shm/* /run/* 2>/dev/null; echo up >$2/up; {IDLE}"
    with cluster(root, node=node, ready="[ -s $1/n0/up ] && [ -s $1/n1/up ]", check="echo fine") as check:
        for _crash in range(2):
            assert check() == CheckerAnswer(0, "fine\n")


def test_a_node_finds_its_files_as_they_were(root: Path) -> None:
    """Long files with holes, times, modes, and two names of one file."""
    long = Node("file", 2, size=2**40, mode=0o640, mtime=10**18, pieces={2**39 + 7: b"x"})
    both = Node("file", 4, links=2, size=2, content=b"ab", mode=0o4755, mtime=3 * 10**18)
    folder = Node("directory", 8, mode=0o1700, mtime=2 * 10**18)
    look = "stat -c '%n %a %Y' $2/d; stat -c '%n %a %Y %h %s' $2/d/long $2/d/a $2/d/b"
    look += f"; dd if=$2/d/long bs=1 skip={2**39 + 7} count=1"
    node = f"[ $1 = 0 ] || {IDLE}; {{ {look}; }} >$2/seen 2>/dev/null; {IDLE}"
    files = {"n0_d": folder, "n0_d_long": long, "n0_d_a": both, "n0_d_b": both}
    with cluster(root, node=node, ready="grep -q x$ $1/n0/seen", check="cat $1/n0/seen") as check:
        answer = check(**files)
    assert answer.printed.splitlines() == [
        "/n0/d 1700 2000000000",
        f"/n0/d/long 640 1000000000 1 {2**40}",
        "/n0/d/a 4755 3000000000 2 2",
        "/n0/d/b 4755 3000000000 2 2",
        "x",
    ]
