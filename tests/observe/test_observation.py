"""What was found is read from the form in which it is kept, that of older runs too."""

from __future__ import annotations

import json

from bob.observe.observation import Findings, Node

OLD = {"kind": "directory", "inode": 12, "links": 1, "size": 0, "content": []}
"""An entry as older runs and witnesses have it."""


def node(entry: dict[str, object]) -> Node:
    tree = Findings([json.dumps({"error": None, "repaired": False, "tree": {"/d": entry}})]).observation(0).tree
    assert tree is not None
    return tree["/d"]


def test_what_an_older_run_did_not_observe_is_none() -> None:
    assert node(OLD) == Node("directory", 12)
    assert (node(OLD).mode, node(OLD).uid, node(OLD).gid, node(OLD).mtime) == (None, None, None, None)


def test_what_stat_says_is_kept() -> None:
    more = {"links": 3, "mode": 0o1750, "uid": 7, "gid": 8, "mtime": 0}
    assert node(OLD | more) == Node("directory", 12, 3, mode=0o1750, uid=7, gid=8, mtime=0)
