"""Each sentence of the references against the tree that its witness gives.

What a sentence says is read here word by word, and looked up in the tree by hand: the oracle that made the sentence is
not asked. Whose bytes they are, their pattern tells.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from bob.claim.claim import AfterMount
from bob.observe.observation import Node
from bob.report.saved import load
from bob.witness.document import Witness, files_in, read
from bob.workload import operations as ops
from bob.workload.history import History
from bob.workload.pattern import describe, operations_in
from bob.workload.simulation import simulate

ROOT = Path(__file__).resolve().parent.parent / "reports" / "reference"
FOLDERS = sorted(path.parent for path in ROOT.glob("*/result.json*"))
NUMBER = r"([\d,]+)"
NAMES = (
    *((rf"(/\S+) {said}", True) for said in ("still exists", "exists")),
    *((rf"(/\S+) {said}", False) for said in ("does not exist", "is gone", "is not there")),
)


@cache
def shown(folder: Path) -> dict[Path, Witness]:
    """The witnesses in a reference that a tree is the evidence of."""
    every = {path: read(path) for path in files_in([folder])}
    return {path: one for path, one in every.items() if one.claim.is_shown_by_the_tree and one.claim.kind == "property"}


def tree_of(found: Witness) -> dict[str, Node]:
    assert found.found is not None and found.found.tree is not None
    return dict(found.found.tree)


def number(words: str) -> int:
    return int(words.replace(",", ""))


def nodes(tree: dict[str, Node], history: History, label: str) -> list[Node]:
    """What may be the file first known as ``label``: that, or under another name that it ever had."""
    thing = next(step.names[label] for step in history.steps if label in step.names)
    paths = {path for step in history.steps for path, it in step.names.items() if it == thing}
    return [tree[path] for path in sorted(paths) if path in tree]


def check_details(found: Witness, history: History) -> int:
    """Hold what the sentence says of names, sizes and bytes against the tree; how many of these it says."""
    tree, said = tree_of(found), 0
    text = found.evidence
    for pattern, is_there in NAMES:
        for path in re.findall(rf"(?<!file ){pattern}\b", text):
            said += 1
            assert (path in tree) == is_there, path
    for name, label, words in re.findall(r"the attribute (\S+) of (/\S+): (set|absent)", text):
        said += 1
        assert {name in node.xattrs for node in nodes(tree, history, label)} == {words == "set"}, label
    for path in re.findall(r"the name (/\S+): something unreadable", text):
        said += 1
        assert tree[path].fault, path
    for label, size in re.findall(rf"the size of (/\S+): {NUMBER} B", text):
        said += 1
        assert number(size) in {node.size for node in nodes(tree, history, label)}, label
    for start, stop, label, words in re.findall(
        rf"bytes {NUMBER} to {NUMBER} of (/\S+): (.*?)(?=; |, where|\)|$)", text
    ):
        said += 1
        begin, end = number(start), number(stop)
        pieces = [describe(node.content[begin:end], begin) for node in nodes(tree, history, label)]
        # A run of bytes ends with a bracket, and so does the text that was cut out above.
        assert any(
            piece.startswith(words.split(" instead of")[0].partition(", then the end")[0]) for piece in pieces
        ), (
            label,
            words,
            pieces,
        )
    return said


def others_on(history: History, at: int, *paths: str) -> bool:
    """Whether another operation than ``at`` names one of ``paths``."""
    names = {
        value
        for other, operation in enumerate(history.operations, start=1)
        if other != at
        for value in (getattr(operation, one, None) for one in ("path", "old", "new", "source"))
    }
    return bool(names.intersection(paths))


def has_all(history: History, at: int, tree: dict[str, Node]) -> bool:
    """Whether the tree has all that operation ``at`` does, as it left it."""
    operation, before, after = history.operations[at - 1], history.steps[at - 1], history.steps[at]
    made, gone = set(after.names) - set(before.names), set(before.names) - set(after.names)
    if not made <= set(tree) or gone & set(tree):
        return False
    if at in history.data:
        thing, start, length = history.data[at]
        data = after.inodes[thing].content[start : start + length]
        paths = [path for path, it in after.names.items() if it == thing and path in tree]
        return any(tree[path].content[start : start + length] == data for path in paths)
    if isinstance(operation, ops.Setxattr):
        value = after.inodes[after.thing(operation.path)].xattrs[operation.name]
        return operation.path in tree and tree[operation.path].xattrs.get(operation.name) == value
    if isinstance(operation, ops.Truncate | ops.Fallocate):
        size = len(after.inodes[after.thing(operation.path)].content)
        return operation.path in tree and tree[operation.path].size == size
    return True


def has_any(history: History, at: int, tree: dict[str, Node]) -> bool:
    """Whether something in the tree can only come of operation ``at``: a name that it made, or bytes that it wrote."""
    before, after = history.steps[at - 1], history.steps[at]
    made, gone = set(after.names) - set(before.names), set(before.names) - set(after.names)
    is_named = bool(made & set(tree)) or any(path not in tree for path in gone)
    return is_named or any(at in operations_in(node.content) for node in tree.values())


def check_how_much(found: Witness, history: History) -> Counter[str]:
    """Hold how much the sentence says is there of each operation against the tree."""
    tree, said = tree_of(found), Counter[str]()
    told = [
        ("whole", r"operation (\d+) \([^)]*\) survived"),
        ("nothing", r"nothing of operation (\d+) \("),
        ("part", r"(?<!at least )a part of operation (\d+) \("),
    ]
    what = [(word, int(at)) for word, pattern in told for at in re.findall(pattern, found.evidence)]
    of_it = re.match(r"operation (\d+) .* had returned, but (nothing|only a part) of it ", found.evidence)
    if of_it is not None:
        what.append((of_it[2].rpartition(" ")[2], int(of_it[1])))
    for word, at in what:
        said[word] += 1
        operation = history.operations[at - 1]
        paths = [value for one in ("path", "old", "new") if (value := getattr(operation, one, None))]
        is_alone = not others_on(history, at, *paths)
        if word == "whole":
            assert has_all(history, at, tree) or not is_alone, at
        elif word == "nothing":
            assert not has_any(history, at, tree) or not is_alone, at
            assert not has_all(history, at, tree) or not is_alone, at
        else:
            assert not has_all(history, at, tree) or not is_alone, at
    return said


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_each_sentence_is_what_the_tree_of_its_witness_shows(folder: Path) -> None:
    how_much: Counter[str] = Counter()
    for path, found in shown(folder).items():
        assert found.found is not None, f"{path} does not keep what was found: bob replay --update {folder}"
        history = simulate(found.workload)[0]
        try:
            details, told = check_details(found, history), check_how_much(found, history)
        except AssertionError as error:
            raise AssertionError(f"{path}: {found.evidence}: {error}") from None
        assert details or "of the names, " in found.evidence or " links " in found.evidence, f"{path}: {found.evidence}"
        how_much += told
    assert how_much["part"] and how_much["nothing"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_each_sentence_is_that_of_this_bob_and_of_its_cell(folder: Path) -> None:
    """After a change that is meant: ``bob judge``, then ``reports/make-pages``."""
    for path, found in shown(folder).items():
        assert found.found is not None
        assert found.claim.broken(AfterMount(found.found), found.context) == found.evidence, path
    for column in load(folder).result.subjects:
        for cell in column.answers:
            if cell.witness is not None:
                assert read(folder / cell.witness).evidence == cell.evidence
