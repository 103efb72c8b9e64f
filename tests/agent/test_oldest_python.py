"""The agent runs on the Python of the oldest guest (3.9, bullseye's), which is not the one that runs these tests.

Its syntax is checked by the compiler, and what is known to have come later by name. ruff too checks the agent as 3.9
(pyproject.toml); a guest of debian-bullseye is the proof.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import bob.agent.inside

OLDEST = (3, 9)
MODULES = sorted(Path(bob.agent.inside.__path__[0]).glob("*.py"))
LATER_ARGUMENTS = {"zip": "strict", "dataclass": "slots", "field": "kw_only"}
LATER_NAMES = {"pairwise", "TypeAlias", "ParamSpec", "bit_count", "aiter", "anext", "StrEnum", "Self", "batched", "UTC"}
LATER_MODULES = {"tomllib", "wsgiref.types", "asyncio.taskgroups"}


def later_things(source: str) -> list[str]:
    """What in ``source`` Python 3.9 does not have."""
    try:
        tree = ast.parse(source, feature_version=OLDEST)
    except SyntaxError as error:
        return [f"line {error.lineno}: {error.msg}"]
    return [f"line {line}: {what}" for line, what in _later(tree)]


def _later(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Call(func=ast.Name(id=name), keywords=keywords):
            if any(keyword.arg == LATER_ARGUMENTS.get(name, "") for keyword in keywords):
                yield node.lineno, f"{name}({LATER_ARGUMENTS[name]}=)"
        case (
            ast.BinOp(op=ast.BitOr(), right=ast.Constant(value=None))
            | ast.BinOp(op=ast.BitOr(), left=ast.Constant(value=None))
        ):
            yield node.lineno, "a union with None"
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) if name in LATER_NAMES:
            yield node.lineno, name
        case ast.Import(names=names) if any(one.name in LATER_MODULES for one in names):
            yield node.lineno, "an import"
        case ast.ImportFrom(module=str(module)) if module in LATER_MODULES:
            yield node.lineno, module
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):  # never evaluated: each module postpones them
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _later(child)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_agent_needs_nothing_later(module: Path) -> None:
    source = module.read_text()
    assert later_things(source) == []
    assert "def " not in source or "from __future__ import annotations" in source


@pytest.mark.parametrize(
    "source",
    [
        "match x:\n    case 1: pass",
        "zip(a, b, strict=True)",
        "Outcome = tuple[str | None, int]",
        "from itertools import pairwise",
        "import tomllib",
        "@dataclass(frozen=True, slots=True)\nclass A: pass",
    ],
)
def test_later_things_are_seen(source: str) -> None:
    assert later_things(source)


def test_annotations_may_be_newer() -> None:
    assert later_things("def f(a: int | None) -> str | None:\n    b: int | None = a\n    return b") == []
