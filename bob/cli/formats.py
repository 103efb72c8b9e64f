"""The output formats of results: the terminal, one file, or a folder of pages."""

import io
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from rich.console import Console

from bob.cli.output import console, document, is_stdout, paper, print_one, write_json, write_pages, write_text
from bob.errors import UsageError
from bob.report.columns import ShownColumn, columns_of
from bob.report.junit import to_junit
from bob.report.ktap import to_ktap
from bob.report.marks import print_overview
from bob.report.nearby import nearby
from bob.report.points import suites_of
from bob.report.saved import Saved, result_file
from bob.run.option_paths import Destination
from bob.store.new_folder import check_folder

ENDINGS = {
    "table": (".txt",),
    "markdown": (".md", ".markdown"),
    "latex": (".tex",),
    "csv": (".csv",),
    "json": (".json",),
    "html": (".html", ".htm"),
    "junit": (".xml",),
    "ktap": (".ktap",),
}  # formats of one file, each with its endings
CI_FORMATS = {"junit": to_junit, "ktap": to_ktap}
PICTURES = {"svg": (".svg",), "dot": (".dot", ".gv")}  # formats of the update protocol of a run of bob app
SITE = "site"  # the format of several files in a folder
FORMATS = (*ENDINGS, *PICTURES, SITE)
_ENDINGS = {**ENDINGS, **PICTURES}
# Endings of formats that are not text, which bob cannot write.
_OTHERS = {".pdf", ".png", ".xls", ".xlsx", ".ods", ".docx", ".odt", ".ps", ".parquet", ".db"}


class ResultKind(Enum):
    """A kind of result. The value of each member lists the formats that bob can write such results in."""

    TABLES = (*ENDINGS, SITE)
    QUESTION = ("table", "json", "html", *CI_FORMATS, SITE)
    PROGRAM = FORMATS
    PROGRAMS = ("table", "markdown", "latex", "csv", "json", "html")


def kind_of(saved: Sequence[Saved]) -> ResultKind:
    """Return the kind of the results ``saved``: tables of properties, answers to a quick question (`bob try`), or
    results of one program or of several programs."""
    first = saved[0].result
    if first.program is not None:
        return ResultKind.PROGRAM if len(saved) == 1 else ResultKind.PROGRAMS
    return ResultKind.TABLES if first.workload is None else ResultKind.QUESTION


def format_of(output: Destination | None) -> str:
    """Return the format that belongs to the ending of ``output``: SITE for a directory, and "table" for an unknown
    ending or for None. Raise UsageError for an ending such as ``.pdf``, which bob knows but cannot write."""
    if output and output.is_folder:
        return SITE
    ending = output.path.suffix.lower() if output else ""
    wanted = next((name for name, endings in _ENDINGS.items() if ending in endings), "")
    if ending in _OTHERS:
        known = ", ".join(endings[0] for endings in ENDINGS.values())
        hint = f"it writes {known}; with --format, FILE may have any ending"
        raise UsageError(f"--output: cannot write {ending}", hint=hint)
    return wanted or "table"


def check_output(wanted: str, output: Destination | None) -> None:
    """Raise UsageError if the format with the name ``wanted`` does not fit ``output``. The format ``site`` consists of
    several pages, so ``output`` must be a directory, but not a run directory. For any other format, ``output`` must not
    be a directory."""
    if wanted != SITE:
        if output and output.is_folder:
            hint = f"for example {output.path / 'table'}{_ENDINGS[wanted][0]}"
            raise UsageError(f"--output: {output.path} is a directory", hint=hint)
        return
    if output is None or is_stdout(output.path):
        raise UsageError("a site needs a directory", hint="for example --output pages/")
    check_folder(output.path, "--output")
    if result_file(output.path).exists():
        hint = f"for example --output {output.path / 'pages'}/"
        raise UsageError(f"--output: {output.path} is a run directory", hint=hint)


def check_format(kind: ResultKind, wanted: str, run: str = "the result") -> None:
    """Raise UsageError if a result of this ``kind`` cannot have the format ``wanted``. ``run`` is the text that
    stands for the result in the message."""
    if wanted in kind.value:
        return
    message = f"cannot write several runs of bob app as {wanted}"
    hint = f"it writes {', '.join(kind.value)}; a single run has more formats"
    if kind is ResultKind.TABLES:
        message, hint = f"cannot draw {run} as {wanted}: it has no update protocol", "a run of bob app has one"
    elif kind is ResultKind.QUESTION:
        message = f"cannot write {run} as {wanted}: a quick question has answers, not a table"
        hint = "use --json FILE, or --output with FILE.txt, FILE.html, DIR/ for pages, or FILE.xml for a CI"
    raise UsageError(message, hint=hint)


def document_of(kind: ResultKind, saved: Sequence[Saved]) -> Any:
    """Return the document that --json writes. For several programs, it has tables that compare the programs. Otherwise
    it is a result document, or an array of result documents."""
    if kind is ResultKind.PROGRAMS:
        from bob.report import vulnerability_tables as sheets

        return sheets.to_json(sheets.sheets_of([one.result for one in saved]))
    documents = [document(one.result, one.folder) for one in saved]
    return documents[0] if len(documents) == 1 else documents


def write(kind: ResultKind, wanted: str, saved: Sequence[Saved], target: Path) -> None:
    """Write the results ``saved`` in the format ``wanted`` to ``target``, which is a file, a directory or stdout."""
    match wanted:
        case "table" if is_stdout(target):
            _print(console(), kind, saved)
        case "table":
            text = io.StringIO()
            _print(paper(text), kind, saved)
            write_text(target, text.getvalue(), "--output")
        case "json":
            write_json(target, document_of(kind, saved), "--output")
        case "junit" | "ktap":
            suites = [suite for one in saved for suite in suites_of(one.result, one.folder)]
            write_text(target, CI_FORMATS[wanted](suites), "--output")
        case "site":
            write_pages(target, _pages(kind, saved), "--output")
        case _:
            write_text(target, _text(kind, wanted, saved), "--output")


def _print(screen: Console, kind: ResultKind, saved: Sequence[Saved]) -> None:
    if kind is ResultKind.PROGRAMS:
        from bob.report import vulnerability_tables as sheets

        sheets.print_sheets(screen, sheets.sheets_of([one.result for one in saved]))
        return
    if len(saved) == 1:
        print_one(screen, saved[0].result, saved[0].folder)
        return
    print_overview(screen, _columns(saved))
    screen.print()
    for one in saved:
        names = ", ".join(column.name for column in one.result.subjects)
        screen.print(f"{names}: bob show {nearby(one.path or one.folder)}", style="bob.dim", soft_wrap=True)


def _pages(kind: ResultKind, saved: Sequence[Saved]) -> Any:
    from bob.report import answer_pages, page

    if kind is ResultKind.TABLES:
        return page.pages(page.shown_apart(_columns(saved)))
    return answer_pages.pages(saved[0].result, saved[0].folder)


def _text(kind: ResultKind, wanted: str, saved: Sequence[Saved]) -> str:
    """Return the results as a text in the format ``wanted``. The function imports pandas and jinja2 only when it is
    called, since they take a while to load."""
    from bob.report import answer_pages, documents, page, protocol_drawing
    from bob.report import vulnerability_tables as sheets
    from bob.report.programs_document import page_of_one

    one, results = saved[0], [each.result for each in saved]
    if wanted in PICTURES:
        return protocol_drawing.picture(one.result, is_dot=wanted == "dot")
    if kind is ResultKind.QUESTION or (kind is ResultKind.PROGRAM and wanted == "html"):
        return answer_pages.to_html(one.result, one.folder)
    if kind is ResultKind.TABLES:
        of_tables = {"csv": documents.to_csv, "latex": documents.to_latex, "markdown": documents.to_markdown}
        return page.to_html(_columns(saved)) if wanted == "html" else of_tables[wanted](_columns(saved))
    if wanted == "csv":
        return sheets.to_csv(results)
    if kind is ResultKind.PROGRAM and wanted == "markdown":
        return f"{page_of_one(one.result, one.folder)}\n{sheets.to_markdown(sheets.sheets_of(results))}"
    of_programs = {"markdown": sheets.to_markdown, "latex": sheets.to_latex, "html": sheets.to_html}
    return of_programs[wanted](sheets.sheets_of(results))


def _columns(saved: Sequence[Saved]) -> list[ShownColumn]:
    return columns_of((one.result, one.folder) for one in saved)
