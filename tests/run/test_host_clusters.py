"""Which trees of nodes a sandbox gets, and which it cannot make."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bob.agent.loss import GuestLost, Loss, LossCause
from bob.catalogue.request import CheckPlace
from bob.observe.observation import Node, OutcomeTable
from bob.program.answer import CheckerAnswer
from bob.program.program import Program
from bob.progress import Silent
from bob.run import host_clusters, pool
from bob.run.host_clusters import HostCluster, TupleCheck, can_be_made
from bob.run.node_trees import NodeTrees


class Seen:
    def __init__(self, tree: dict[str, dict[str, Any]]) -> None:
        self.findings = OutcomeTable([json.dumps({"error": None, "repaired": False, "tree": tree})])


class Disk:
    def __init__(self, number: int) -> None:
        self.number = number


def below(number: int, **inodes: int) -> dict[str, Node]:
    """The nodes of a tree with files of these inode numbers, on the disk ``number`` of three."""
    tree = {"/": {"kind": "directory"}, **{f"/{name}": {"kind": "file", "inode": n} for name, n in inodes.items()}}
    return NodeTrees(cast(Any, Disk(number)), cast(Any, Seen(tree)), (0,), (), True).nodes_below(0, 3)


def test_two_names_are_one_file_only_if_they_have_one_inode_on_one_disk() -> None:
    numbers = [one.inode for disk in range(3) for path, one in below(disk, a=3, b=3, c=4).items() if len(path) > 3]
    assert len(set(numbers)) == 6
    assert numbers[0] == numbers[1] and numbers[3] == numbers[4]


def test_where_a_file_system_numbers_inodes_anew_no_two_names_are_one_file() -> None:
    numbers = [one.inode for disk in range(3) for path, one in below(disk, a=0, b=0, c=0).items() if len(path) > 3]
    assert len(set(numbers)) == 9


ROOTED = {"mode": 0o644, "uid": 0, "gid": 0}


@pytest.mark.parametrize(
    ("tree", "can_be"),
    [
        ({"/n0/f": Node("file", 3, **ROOTED)}, True),
        ({"/n0/f": Node("file", 3, links=2, **ROOTED), "/n0/g": Node("file", 3, links=2, **ROOTED)}, True),
        ({"/n0/f": Node("file", 3, links=2, **ROOTED)}, False),
        ({"/n0/f": Node("file", 3, **ROOTED), "/n0/s/f": Node("file", 3, **ROOTED)}, False),
        ({"/n0/p": Node("other", 3, target="10000 0", **ROOTED)}, False),
        ({"/n0/f": Node("file", 3, fault="Input/output error", **ROOTED)}, False),
        ({"/n0/f": Node("file", 3, mode=0o644, uid=7, gid=0)}, False),
    ],
    ids=["plain", "linked", "another name is hidden", "of two subvolumes", "pipe", "unreadable", "owner"],
)
def test_a_sandbox_gets_only_what_it_can_make(tree: dict[str, Node], can_be: bool) -> None:
    assert can_be_made(tree) is can_be


GONE = GuestLost(Loss(LossCause.VANISHED, ""), "it is gone")


class Counted(Silent):
    def __init__(self) -> None:
        self.states = 0

    def observed(self, workload: str, states: int) -> None:
        del workload
        self.states += states


@pytest.mark.parametrize("times", [0, 1, 2])
def test_progress_counts_each_check_once_although_sandboxes_are_lost(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    lost = [GONE] * times

    @contextmanager
    def agent_in(*_: object) -> Iterator[object]:
        yield SimpleNamespace(is_sound=True)

    def checked(_self: object, _agent: object, asked: TupleCheck, _tree: object) -> CheckerAnswer:
        if asked.output == b"19" and lost:
            raise lost.pop()
        return CheckerAnswer(0, asked.output.decode())

    monkeypatch.setattr(pool, "agent_in", agent_in)
    monkeypatch.setattr(host_clusters, "put_program", lambda *_: None)
    monkeypatch.setattr(HostCluster, "_why_none", lambda _self: None)
    monkeypatch.setattr(HostCluster, "checked", checked)
    progress = Counted()
    guests = pool.ProgramGuests(cast(Any, None), cast(Any, None), progress)
    host = HostCluster(guests, Program("mine", "", (), nodes=2), CheckPlace.AUTO, 1)
    asked = [TupleCheck("t", dict, b"%d" % number) for number in range(80)]
    found = host.check(asked)
    assert all(found[place].printed == str(place) for place in found)
    assert progress.states == len(found) == (80 if times < 2 else 79)
