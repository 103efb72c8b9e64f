"""``python tests/python_stub.py`` writes bob/__init__.pyi."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path
from typing import Any

from bob.options import parameters
from bob.python import functions
from bob.python.calls import annotation_of

_HEAD = '''\
"""What Python may call. This file is written by a program: python tests/python_stub.py."""

import os
from collections.abc import Sequence
from typing import Literal, TypeAlias

from bob.progress import Progress
from bob.report.saved import Saved

StrPath: TypeAlias = str | os.PathLike[str]

'''


def stub() -> str:
    found = {name: one for name, one in sorted(vars(functions).items()) if getattr(one, "__module__", "") == "bob"}
    names = ", ".join(f'"{name}"' for name in found)
    made = "\n".join(map(_function, found.values()))
    return f"{_HEAD}__all__ = [{names}]\n\n__version__: str\n\n{made}"


def _function(function: Any) -> str:
    annotations = {one.name: annotation_of(one, of_choices=True) for one in parameters(inspect.unwrap(function))}
    asked = inspect.signature(function)
    lines, is_keyword_only = [], False
    for one in asked.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not is_keyword_only:
            lines.append("*")
            is_keyword_only = True
        default = "" if one.default is one.empty else f" = {one.default!r}".replace("'", '"')
        lines.append(f"{one.name}: {annotations[one.name]}{default}")
    taken = "".join(f"    {line},\n" for line in lines)
    told = textwrap.indent(f'"""{function.__doc__}\n"""', "    ")
    return f"def {function.__name__}(\n{taken}) -> {asked.return_annotation}:\n{told}\n"


if __name__ == "__main__":
    Path("bob/__init__.pyi").write_text(stub())
