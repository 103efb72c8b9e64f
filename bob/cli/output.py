"""The output of results: a coloured table on stdout, documents in files."""

import codecs
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.theme import Theme

from bob import documents
from bob.answer.document import to_json
from bob.answer.result import Result
from bob.cli.called import as_called
from bob.cli.ending import drop
from bob.errors import UsageError
from bob.report.answers import print_answers
from bob.report.programs import print_programs
from bob.report.repair import with_commands
from bob.report.table import print_result
from bob.schema import encode

# People with colour vision deficiencies can distinguish these colours (Wong, Nature Methods 8, 2011). Marks say the
# same.
_VERMILLION, _GREEN, _ORANGE, _BLUE, _PURPLE = "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7"

THEME = Theme(
    {
        "bob.fails": f"bold {_VERMILLION}",
        "bob.holds": _GREEN,
        "bob.unknown": f"bold {_ORANGE}",
        "bob.skipped": "dim",
        "bob.unmountable": f"bold {_PURPLE}",
        "bob.command": _BLUE,
        "bob.bar": _BLUE,
        "bob.title": "bold",
        "bob.heading": "bold",
        "bob.dim": "dim",
    }
)

_ASCII = str.maketrans({"×": "x", "–": "-", "·": ".", "…": ".", "━": "-", "╸": "-", "╺": "-"})


# Control characters that terminals obey.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), *range(127, 160))}


class Screen(Console):
    """A console that stays silent after its reader has gone (``| head``). The work goes on, since bob's exit code
    matters; with rich's own console, bob would end with exit code 1. Control characters in a result become visible
    text, since a terminal would obey them."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            text = segment.text
            is_plain = segment.control or text.isprintable()
            yield segment if is_plain else segment._replace(text=text.translate(_CONTROLS))

    def on_broken_pipe(self) -> None:
        self.quiet = True
        drop(self.file)


class _Spoken(Screen):
    """A screen for people, who can paste each command that it shows."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=as_called(segment.text))


def console(*, stderr: bool = False) -> Screen:
    """Return a screen on stdout or stderr. If that is not a terminal, the screen has 80 columns and no colours."""
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="bob.ascii")
    return _Spoken(file=stream, theme=THEME, highlight=False, markup=False, emoji=False)


def paper(file: io.StringIO, width: int | None = None) -> Screen:
    """Return a screen that writes into ``file``, without colours and with ``width`` columns (None: $COLUMNS or 80)."""
    said = os.environ.get("COLUMNS", "")
    width = width or (int(said) if said.isdecimal() and int(said) else 80)
    return Screen(file=file, theme=THEME, highlight=False, markup=False, emoji=False, color_system=None, width=width)


def document(result: Result, run: Path) -> dict[str, Any]:
    """Return the document that --json writes about ``result``, whose witnesses are in ``run``."""
    return to_json(with_commands(result, run))


def deliver(result: Result, run: Path, json_file: Path | None) -> None:
    """Write ``result``, whose files are in ``run``, into ``json_file`` (if given). Print the result, unless the JSON
    goes to stdout."""
    if json_file is not None:
        write_json(json_file, document(result, run))
    if not is_stdout(json_file):
        print_one(console(), result, run)


def present(json_file: Path | None, document: Any, show: Callable[[Screen], None]) -> None:
    """Write ``document`` into ``json_file`` (if given). Call ``show``, which prints for people, unless the JSON goes to
    stdout."""
    if json_file is not None:
        write_json(json_file, document)
    if not is_stdout(json_file):
        show(console())


def print_one(screen: Console, result: Result, run: Path) -> None:
    if result.workload is not None:
        print_answers(screen, result, run)
    elif result.program is not None:
        print_programs(screen, result, run)
    else:
        print_result(screen, result, run)


def write_json(path: Path, document: Any, option: str = "--json") -> None:
    """Write ``document`` into the file ``path``. If the write fails, an old file stays as it was. A document with a
    schema gets a checksum, which bob checks when it reads the document."""
    plain = encode(document)
    text = json.dumps(plain, indent=2) + "\n"
    is_read = isinstance(plain, dict) and "schema" in plain
    write_text(path, documents.sealed(text).decode() if is_read else text, option)


def write_text(path: Path, text: str, option: str) -> None:
    """Write ``text`` in UTF-8 to stdout, or into the file that the user named with ``option``. If the write fails, an
    old file stays as it was."""
    if is_stdout(path):
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", errors="replace")
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            drop(sys.stdout)
        return
    with whole_or_not_at_all(path, option) as file:
        file.write(text.encode("utf-8", errors="replace"))


@contextmanager
def whole_or_not_at_all(path: Path, option: str) -> Iterator[BinaryIO]:
    """Open the file that the user named with ``option``. The new contents replace an old file only when they are
    complete. Raise UsageError if bob cannot write the file."""
    target = path.resolve()  # if the path is a link, bob replaces its target, not the link
    special = target.exists() and not target.is_file()  # a pipe, or a device such as /dev/null
    part = target if special else target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
        if not special:
            part.replace(target)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint=f"name another file with {option}") from error
    finally:
        if not special:
            part.unlink(missing_ok=True)


def write_pages(folder: Path, pages: Iterable[tuple[PurePosixPath, str]], option: str) -> None:
    """Write ``pages`` into ``folder``, each at its path, and make the folders. Error messages name ``option``, the
    command-line option that gave the folder."""
    for place, text in pages:
        file = folder / place
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            hint = f"name another directory with {option}"
            raise UsageError(f"cannot create {file.parent}: {error.strerror}", hint=hint) from error
        write_text(file, text, option)


def is_stdout(path: Path | None) -> bool:
    return path == Path("-")


def _as_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replace the letters that the encoding of the output lacks. bob's own marks, such as –, become certain ASCII
    characters, and other letters become a ?. A mark must not become a ?, since ? itself is a mark with another
    meaning."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end].translate(_ASCII)
    return "".join(letter if letter.isascii() else "?" for letter in text), error.end


codecs.register_error("bob.ascii", _as_ascii)
