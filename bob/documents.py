"""JSON for people and for version control: a line for each small part of a document, an indented block for others."""

from __future__ import annotations

import json
from typing import Any

LONGEST_LINE = 400
"""What is written in at most so many characters is one line."""


def text(document: Any) -> str:
    """``document`` as JSON, with a line break at its end."""
    return _text(document, 0) + "\n"


def _text(part: Any, depth: int) -> str:
    line = json.dumps(part, separators=(",", ":"))
    if len(line) <= LONGEST_LINE or not isinstance(part, dict | list | tuple):
        return line
    if isinstance(part, dict):
        brackets, inner = (
            "{}",
            [f"{json.dumps(name)}: {_text(value, depth + 1)}" for name, value in part.items()],
        )
    else:
        brackets, inner = "[]", [_text(value, depth + 1) for value in part]
    indent = "\n" + " " * depth
    return brackets[0] + ",".join(f"{indent} {one}" for one in inner) + indent + brackets[1]
