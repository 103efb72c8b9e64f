"""What was found after the crash of a witness, as plain JSON: with it, the witness can be judged without a guest.

The contents of all files are one recipe (:mod:`bob.witness.recipes`), each padded to whole sectors, in the order of the
names; of several names of one file, each has its contents.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from bob.observe.observation import Node, Observation
from bob.trace.model import SECTOR_BYTES
from bob.witness.recipes import from_recipe, to_recipe

_PLAIN = {"inode": 0, "links": 1, "size": 0, "target": "", "fault": None, "mode": None, "uid": None, "gid": None}
"""The fields of a node that are left out where they say nothing, and what they are then."""


def found_to_json(found: Observation, kernel: str) -> dict[str, Any]:
    """``found``, as it was seen on ``kernel``."""
    tree, data = None, b""
    if found.tree is not None:
        ordered = sorted(found.tree.items())
        tree = {path: _node_to_json(node) for path, node in ordered}
        data = b"".join(_padded(node.content) for _path, node in ordered)
    return {
        "kernel": kernel,
        "mounted": found.mounted,
        "error": found.error,
        "repaired": found.repaired,
        "tree": tree,
        "data": to_recipe(data),
    }


def found_from_json(document: Mapping[str, Any]) -> Observation:
    """What :func:`found_to_json` wrote. Raises KeyError, TypeError, ValueError or LZMAError for what is none."""
    data, position = from_recipe(document["data"]), 0
    tree: dict[str, Node] | None = None
    if document["tree"] is not None:
        tree = {}
        for path, entry in document["tree"].items():
            length = int(entry.get("length", 0))
            tree[path] = _node(entry, data[position : position + length])
            position += len(_padded(tree[path].content))
    if position != len(data):
        raise ValueError("what was found has more data than files")
    return Observation(bool(document["mounted"]), document["error"], tree, bool(document["repaired"]))


def _node_to_json(node: Node) -> dict[str, Any]:
    said = {name: getattr(node, name) for name, plain in _PLAIN.items() if getattr(node, name) != plain}
    if node.content:
        said["length"] = len(node.content)
    if node.xattrs:
        said["xattrs"] = {name: base64.b64encode(value).decode() for name, value in node.xattrs.items()}
    if node.mtime is not None:
        said["mtime"] = node.mtime
    return {"kind": node.kind, **said}


def _node(entry: Mapping[str, Any], content: bytes) -> Node:
    if len(content) != int(entry.get("length", 0)):
        raise ValueError("what was found has less data than files")
    said = {name: entry.get(name, plain) for name, plain in _PLAIN.items()}
    xattrs = {name: base64.b64decode(value, validate=True) for name, value in entry.get("xattrs", {}).items()}
    return Node(entry["kind"], content=content, xattrs=xattrs, mtime=entry.get("mtime"), **said)


def _padded(content: bytes) -> bytes:
    return content.ljust(-(-len(content) // SECTOR_BYTES) * SECTOR_BYTES, b"\0")
