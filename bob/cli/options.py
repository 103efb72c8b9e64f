"""Options and kinds of values that several commands share. What is wrong with one is said before anything starts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from bob.errors import UsageError, meant
from bob.settings import settings
from bob.store.new_folder import check_folder, check_new_folder, why_no_new_file
from bob.subject import file_system, file_systems, is_file

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # before click 8.4 it takes no type

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class Files(ParamType):
    """A path, or one of ``names`` in its place: Tab offers the names that begin so, else ``files``."""

    name = "file"

    def __init__(self, names: Callable[[], Iterable[str]] = tuple, files: str = "file") -> None:
        self._offered = names
        self._files = files

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """What was said; whose it is looks at it."""
        return value

    def shell_complete(self, ctx: click.Context, param: Any, incomplete: str) -> list[CompletionItem]:
        """The names that begin so, else what the shell knows of files."""
        offered = [CompletionItem(name) for name in self._offered() if name.startswith(incomplete)]
        return offered or [CompletionItem(incomplete, type=self._files)]


class Size(ParamType):
    """A number of bytes: ``64M``, ``1G``, ``67108864``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d+)([KMGT]?)(?:i?B)?", value.strip(), re.IGNORECASE)
        if match is None or not int(match[1]):
            raise UsageError(f"{_option(param)}: {value!r} is no size", hint="for example 64M or 1G")
        return int(match[1]) * _UNITS[match[2].upper()]


class Known(ParamType):
    """One of the ``names`` that bob knows, which are asked for when they are needed."""

    name = "name"

    def __init__(self, what: str, names: Callable[[], Iterable[str]]) -> None:
        self._what = what
        self._names = names

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name itself."""
        names = list(self._names())
        if value not in names:
            raise UsageError(f"{_said_in(param, ctx)}unknown {self._what} {value!r}", hint=meant(value, names))
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin so."""
        return [CompletionItem(name) for name in self._names() if name.startswith(incomplete)]


class FileSystemName(Known):
    """A file system that bob ships, by its name, or the file that declares one of the user's own."""

    def __init__(self) -> None:
        super().__init__("file system", file_systems)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name or the path itself, after a look at the file."""
        if not is_file(str(value)):
            return super().convert(value, param, ctx)
        file_system(str(value))
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin so, else files."""
        return super().shell_complete(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]


class NewFile(Files):
    """A file that will be written, in a folder that exists; ``-`` is standard output, where that can be."""

    def __init__(self, *, stdout: bool = True) -> None:
        super().__init__()
        self._stdout = stdout

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path, after a look at whether it can be written."""
        path = Path(value)
        if value == "-" and self._stdout:
            return path
        if value == "-":
            raise UsageError(f"{_option(param)}: it cannot go to stdout", hint="name a file")
        if not path.parent.is_dir():
            raise UsageError(f"{_option(param)}: there is no directory {path.parent}", hint=f"mkdir -p {path.parent}")
        if path.is_dir():
            raise UsageError(f"{_option(param)}: {path} is a directory", hint=f"for example {path / 'result.json'}")
        if reason := _why_not_writable(path):
            raise UsageError(f"{_option(param)}: cannot write {path}: {reason}", hint="name another file")
        return path


class NewFolder(Files):
    """A folder that will be made, or is there and empty."""

    name = "dir"

    def __init__(self) -> None:
        super().__init__(files="dir")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path, after a look at whether it can be made."""
        path = Path(value)
        check_new_folder(path, _option(param))
        return path


class Shard(ParamType):
    """Which part of a run is done: ``K/N``."""

    name = "k/n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """The two numbers."""
        if isinstance(value, tuple):
            return value
        words = str(value).split("/")
        if len(words) != 2 or not all(word.isdecimal() for word in words) or not 1 <= int(words[0]) <= int(words[1]):
            self.fail(f"{value!r} is no part such as 1/4: the first of four", param, ctx)
        return int(words[0]), int(words[1])


@dataclass(frozen=True, slots=True)
class Destination:
    """Where documents go: one into the file ``path``, or several into that folder."""

    path: Path
    is_folder: bool


class NewFileOrFolder(Files):
    """A file as :class:`NewFile` has it; or a folder, which is there or whose name ends in a slash."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Destination:
        """The path and which of the two it is, after a look at whether it can be written."""
        if not value or not (value.endswith("/") or Path(value).is_dir()):
            return Destination(NewFile().convert(value, param, ctx), False)
        check_folder(Path(value), _option(param))
        return Destination(Path(value), True)


def image_names() -> list[str]:
    """The guest images that can be built, and those that were made with kernels of one's own."""
    from bob.image import image_names

    return image_names()


json_option = click.option(
    "--json", "json_file", type=NewFile(), metavar="FILE", help="Write the result as JSON into FILE; - is stdout."
)
connect_option = click.option(
    "--connect", metavar="URI", help="Run guests on this libvirt connection (default: one of bob's own, no daemon)."
)
quiet_option = click.option("--quiet", is_flag=True, help="Show no progress.")


class WitnessPath(click.Path):
    """The argument WITNESS: a file, or a place in a bundle (:mod:`bob.witness.bundle`); or a run's directory, with all
    of its witnesses, where there may be ``several``."""

    def __init__(self, *, several: bool) -> None:
        super().__init__(exists=True, dir_okay=several, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        from bob.witness.bundle import is_there

        return path if is_there(path := Path(value)) else super().convert(value, param, ctx)


RUN = click.Path(exists=True, file_okay=False, path_type=Path)
"""The argument RUN: a run directory."""


def _why_not_writable(path: Path) -> str | None:
    if not path.exists():
        return why_no_new_file(path.parent)
    return None if os.access(path, os.W_OK) else "permission denied"


def _said_in(param: click.Parameter | None, ctx: click.Context | None) -> str:
    """The file that a value stands in, where it is not the command line's."""
    if param is None or ctx is None or ctx.get_parameter_source(param.name or "") is not ParameterSource.DEFAULT_MAP:
        return ""
    return f"{settings().path}: "


def _option(param: click.Parameter | None) -> str:
    return param.opts[0] if param else "value"
