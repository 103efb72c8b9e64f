"""Scripts of a program under test, made of Python functions. A guest has only Python's standard library. So a script
has the source of its function, and of everything that the function uses from its module. Modules of the user go along
as files."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from bob.errors import UsageError
from bob.program.program import CHECK, ProgramFile

_HEAD = """\
#!/usr/bin/env python3
from __future__ import annotations
import os, sys, traceback
from pathlib import Path
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
sys.stdout.reconfigure(line_buffering=True)  # each line of output is a promise
"""
_RUN = "{name}(*[Path(sys.argv[1])][:{count}])\n"
_CHECK = """\
try:
    {name}(*[Path(sys.argv[1]), Path(sys.argv[2]).read_text(errors='replace')][:{count}])
except AssertionError as broken:
    print(str(broken) or traceback.extract_tb(broken.__traceback__)[-1].line)
    sys.exit(1)
"""
_PLAIN = (int, float, str, bytes, bool, type(None))
_MOST = {CHECK: 2}  # arguments of a check; other functions take the directory alone


class ScriptMaker:
    """A maker of scripts of functions. ``root`` is the folder of the user's own modules. ``files`` has the modules that
    the scripts import from there, so far."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self.files: dict[str, ProgramFile] = {}

    def script(self, name: str, function: Callable[..., object]) -> ProgramFile:
        """Return the script ``name`` that calls ``function`` with the directory under test, and for a check also with
        the output. Raise UsageError if the function cannot run alone in a guest."""
        parts: dict[str, str] = {}
        self._add(function, name, parts)
        count = len(inspect.signature(function).parameters)
        most = _MOST.get(name, 1)
        if count > most:
            raise UsageError(f"{name} takes {count} arguments; expected at most {most}", hint=_TAKES)
        call = (_CHECK if name == CHECK else _RUN).format(name=function.__name__, count=count)
        return ProgramFile(name, "\n".join([_HEAD, *parts.values(), call]).encode(), True)

    def add(self, paths: Iterable[Path]) -> None:
        """Add files of the user, and all files in folders of the user. A folder keeps its name, but not the path above
        it. Raises UsageError if a path does not exist."""
        for path in (one.resolve() for one in paths):
            if not path.exists():
                raise UsageError(f"{path} does not exist", hint="files are modules, programs or data of the test")
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file() and "__pycache__" not in file.parts:
                    name = str(file.relative_to(path.parent))
                    self.files[name] = ProgramFile(name, file.read_bytes(), bool(file.stat().st_mode & 0o100))

    def _add(self, function: Callable[..., object], script: str, parts: dict[str, str]) -> None:
        """Add the source of ``function`` to ``parts``, after the sources of all that it uses."""
        if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
            raise UsageError(f"{script} is not a function by def", hint="or give a command, or the path of a script")
        used = inspect.getclosurevars(function)
        if used.nonlocals:
            raise UsageError(
                f"{script}: {function.__name__} uses {_names(used.nonlocals)} of the function around it",
                hint="a guest runs it alone: pass values by files, or write them into it",
            )
        parts[function.__name__] = ""  # a function may call itself
        for name, value in used.globals.items():
            if name not in parts and not name.startswith("@"):  # pytest adds such names for its assertions
                self._use(name, value, function, script, parts)
        del parts[function.__name__]
        source = textwrap.dedent(inspect.getsource(function))
        if not source.startswith("def "):
            raise UsageError(f"{script}: {function.__name__} has a decorator", hint="a guest runs it alone")
        parts[function.__name__] = source

    def _use(self, name: str, value: Any, function: FunctionType, script: str, parts: dict[str, str]) -> None:
        home = getattr(value, "__module__", None)
        if isinstance(value, ModuleType):
            self._bring(value.__name__)
            parts[name] = f"import {value.__name__} as {name}" if "." not in value.__name__ else _dotted(value, name)
        elif isinstance(value, FunctionType) and home == function.__module__:
            self._add(value, script, parts)
        elif _is_plain(value):
            parts[name] = f"{name} = {value!r}"
        elif isinstance(home, str) and home != function.__module__ and hasattr(value, "__qualname__"):
            self._bring(home)
            parts[name] = f"from {home} import {value.__qualname__} as {name}"
        else:
            raise UsageError(
                f"{script}: {function.__name__} uses {name!r} of its module",
                hint="a guest has functions, imports and plain values of it; make the others inside the function",
            )

    def _bring(self, module: str) -> None:
        """Add the user's module, or the package that it is in. Leave out the standard library, which the guest has."""
        top = module.partition(".")[0]
        if top in sys.stdlib_module_names:
            return
        file = getattr(sys.modules.get(top), "__file__", None)
        path = Path(file).resolve() if file else None
        path = path.parent if path is not None and path.name == "__init__.py" else path
        if path is None or not path.is_relative_to(self._root) or "site-packages" in path.parts:
            raise UsageError(f"the guest does not have the module {top}", hint="name Debian packages with packages=")
        self.add([path])


_TAKES = "a workload and a setup take the directory, a check also the output before the crash"


def _dotted(module: ModuleType, name: str) -> str:
    package, _dot, last = module.__name__.rpartition(".")
    return f"from {package} import {last} as {name}"


def _names(found: Mapping[str, object]) -> str:
    return ", ".join(map(repr, found))


def _is_plain(value: object) -> bool:
    return isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(map(_is_plain, value)))
