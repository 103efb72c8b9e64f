"""``python tests/python_stub.py`` writes bob/__init__.pyi and the table of arguments in docs/results.md."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

from bob.options import REQUIRED, Parameter, parameters
from bob.python import functions
from bob.python.calls import annotation_of, default_of, words_of

_HEAD = '''\
"""What Python may call. This file is written by a program: python tests/python_stub.py."""

import os
from collections.abc import Sequence
from typing import Literal, TypeAlias

from bob.progress import Progress
from bob.report.saved import Saved

StrPath: TypeAlias = str | os.PathLike[str]

'''
_ASKING = ("probe", "try_", "app", "resume")
_PAGE = re.compile(r"\(docs/([\w-]+\.md)\)")
_TABLE = re.compile(r"(?<=<!-- arguments -->\n).*?(?=<!-- /arguments -->)", re.DOTALL)


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


def with_table(page: str) -> str:
    """Return ``page`` with a new table of all arguments."""
    functions_of: dict[str, list[str]] = {}
    for name in _ASKING:
        for one in parameters(inspect.unwrap(getattr(functions, name))):
            functions_of.setdefault(f"`{one.name}` | {_in_table(one)}", []).append(f"`{name}`")
    rows = [f"| {argument} | {', '.join(names)} |" for argument, names in functions_of.items()]
    table = "\n".join(["| argument | what it is | of |", "|---|---|---|", *rows, ""])
    return _TABLE.sub(lambda _: table, page, count=1)


def _in_table(one: Parameter) -> str:
    words = f"{words_of(one)} One, or several." if one.several else words_of(one)
    if (default := default_of(one)) not in (REQUIRED, None, "", (), 0):
        words = f"{words} Default: {default}."
    return _PAGE.sub(r"([\1](\1))", words.replace("``", "`"))


if __name__ == "__main__":
    Path("bob/__init__.pyi").write_text(stub())
    reports = Path("docs/results.md")
    reports.write_text(with_table(reports.read_text()))
