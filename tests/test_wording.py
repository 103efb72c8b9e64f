"""Snapshots, and the facts beside them (``wording.py``)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from wording import line_with, sentence_with, text_with

TESTS = Path(__file__).parent


def lost_snapshots(text: str) -> list[int]:
    """The lines of a file with a snapshot that nothing is held against: it stands neither beside a ``==`` nor in a
    table of parameters. `./run words` could not write it anew, and nobody would see that it is no longer so."""
    tree = ast.parse(text)
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}

    def is_held(node: ast.AST) -> bool:
        while (up := above[node]) is not tree:
            if isinstance(up, ast.Compare):
                return all(isinstance(one, ast.Eq) for one in up.ops)
            if isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and up.func.attr == "parametrize":
                return True
            node = up
        return isinstance(node, ast.Assign)  # a table with a name

    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "snapshot"
        if not is_held(node)
    ]


def test_something_is_held_against_each_snapshot() -> None:
    texts = {str(file.relative_to(TESTS)): file.read_text() for file in TESTS.rglob("test_*.py")}
    lost = {name: lost_snapshots(text) for name, text in texts.items() if "\nfrom inline_snapshot import" in text}
    assert len(lost) > 10
    assert {name: lines for name, lines in lost.items() if lines} == {}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("assert say() == snapshot('a')\nassert (1, say()) == (1, snapshot('a'))", []),
        ("@pytest.mark.parametrize('said', [snapshot('a')])\ndef test(said): ...\nSAID = [snapshot('a')]", []),
        ("assert snapshot('a')\nsnapshot('a')\nassert 'a' in snapshot('a')\nassert say().startswith(snapshot('a'))", 4),
        ("def test():\n    said = snapshot('a')", 1),
    ],
)
def test_a_snapshot_that_nothing_is_held_against(text: str, lines: int | list[int]) -> None:
    assert len(lost_snapshots(text)) == lines or lost_snapshots(text) == lines


TEXT = "4 states of /d/f.\n  4096 bytes: of 'a b', 1,234; 0.5 s"


def test_the_facts_of_a_text() -> None:
    assert text_with(TEXT, 4, 4096, "/d/f", "a b", "1,234") == TEXT
    for fact in (40, 1, 234, 5, "/d/g"):
        with pytest.raises(AssertionError, match=f"^{fact!r} "):
            text_with(TEXT, fact)


def test_the_line_and_the_sentence_with_the_facts() -> None:
    assert line_with(TEXT, 4096, "a b") == "4096 bytes: of 'a b', 1,234; 0.5 s"
    assert line_with(TEXT.split("\n"), "/d/f") == "4 states of /d/f."
    assert line_with(TEXT, "of") == "4 states of /d/f.\n4096 bytes: of 'a b', 1,234; 0.5 s"
    assert sentence_with(TEXT, "1,234") == "of 'a b', 1,234;"
    with pytest.raises(AssertionError, match="4097"):
        line_with(TEXT, 4097)
