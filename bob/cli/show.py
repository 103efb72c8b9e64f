"""``bob show``: a finished run again, or several side by side, as a table on the terminal or as a document."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from bob.claim.verdict import Verdict
from bob.cli.ci import programs_exit
from bob.cli.commands import Command
from bob.cli.options import takes_options
from bob.cli.output import console, is_stdout, paper, write_json, write_pages, write_text
from bob.errors import BobError, Exit, MalformedError, StoreError, UsageError
from bob.judge.program_result import Programs
from bob.judge.tried import Tried
from bob.judge.tried import to_json as tried_to_json
from bob.options import Choice, option
from bob.report.answers import print_answers
from bob.report.columns import Column, columns_of
from bob.report.junit import to_junit
from bob.report.nearby import nearby
from bob.report.points import suites_of, suites_of_programs, suites_of_tried
from bob.report.programs import print_programs
from bob.report.saved import Saved, document_of, load, programs, result_file, several_programs, tried
from bob.report.table import print_result
from bob.result import to_json
from bob.run import option_table as table
from bob.run.option_values import DESTINATION, EXISTING, Destination
from bob.store.kept_runs import RunKind, kept_run
from bob.store.new_folder import check_folder

STDOUT = Path("-")
ENDINGS = {
    "table": (".txt",),
    "markdown": (".md", ".markdown"),
    "latex": (".tex",),
    "csv": (".csv",),
    "json": (".json",),
    "html": (".html", ".htm"),
    "junit": (".xml",),
}
"""The formats of one file, and how it ends."""
SITE = "site"
"""The format of several files."""
PICTURES = {"svg": (".svg",), "dot": (".dot", ".gv")}
"""The formats of the update protocol that a run of bob app has."""


_ENDINGS = {**ENDINGS, **PICTURES}
_OTHERS = {".pdf", ".png", ".xls", ".xlsx", ".ods", ".docx", ".odt", ".ps", ".parquet", ".db"}
"""Endings that promise something else than text."""
_WORST = (Exit.DONE, Exit.UNKNOWN_CELLS, Exit.DIFFERENT, Exit.CONTRADICTED)
"""How an answer for a program ends the command, the one that wins last."""


@click.command(cls=Command)
@takes_options
def show(
    runs: tuple[Path, ...] = option("RUN...", "", EXISTING),
    *,
    wanted: str | None = option(
        "--format",
        "What to write.",
        Choice((*ENDINGS, *PICTURES, SITE)),
        words="what FILE ends with, else table; for a directory site",
    ),
    output: Destination | None = option(
        "--output FILE|DIR/",
        "Write it into FILE; - is stdout, the default. Into DIR/: a page for the table, and one for each witness.",
        DESTINATION,
    ),
    json_file: Path | None = table.JSON,
) -> Exit:
    """Print the table of RUN again: a run directory, or a result that --json wrote.

    Several runs are shown side by side, a column for each configuration; those without a table, such as a stopped one
    or that of a question to `bob try`, are left out and named. Of a run of `bob try` or `bob app`,
    shown alone, the answers are printed again, or become pages; and the update protocol of the latter a picture: SVG,
    or DOT for Graphviz. Of several runs of `bob app` it prints how many vulnerabilities the programs
    have, by type, by consequence, and by file system and model, beside what OSDI'14 published.

    The formats: Markdown for a forge; LaTeX in the layout of the paper's Table 1, with booktabs; CSV with a line for
    each cell; JSON, the result document; HTML, one page that stands alone, where each cell leads to its evidence and
    to what was run; JUnit XML for a CI (docs/ci.md). A directory, one that is there or whose name ends in a slash,
    becomes a site: index.html has the table, and each × leads to a page of its own, with the story of its witness and a
    picture of the time line.

    \b
    Examples:
      bob show bob-runs/20261121T230021-1f2e3d
      bob show bob-runs/*
      bob show bob-runs/20261121T230021-1f2e3d --output table1.html
      bob show bob-runs/20261121T230021-1f2e3d --output pages/
      bob show bob-runs/* --format latex --output table1.tex
      bob show bob-runs/20261121T230021-1f2e3d --output report.xml
      bob show bob-runs/20261121T230021-1f2e3d --output protocol.dot
      bob show bob-runs/20261121T231530-9a8b7c --output answers.html
      bob show --json - bob-runs/20261121T230021-1f2e3d | jq .environment

    \b
    Exit codes:
      0   every cell has a verdict, or every expectation an answer
      1   a program is vulnerable
      10  a model forbids what the file system that it was derived of has left: the model is wrong, or bob
      3   some cell is unknown, or of an expectation it is not known
      8   a file is no result
      9   a run has no result
    """
    if len(runs) == 1 and (answers := tried(runs[0])) is not None:
        return _show_answers(answers, runs[0], wanted, output, json_file)
    if len(runs) == 1 and (found := programs(runs[0])) is not None:
        return _show_programs(found, runs[0], wanted, output, json_file)
    if (found_of := _of_programs(runs)) is not None:
        return _show_tables(found_of, wanted, output, json_file)
    asked, wanted = wanted, wanted or format_of(output)
    if wanted in PICTURES:
        raise UsageError(f"{runs[0]} has no update protocol to be drawn as {wanted}", hint="a run of bob app has one")
    shown = output.path if output else STDOUT
    _check(wanted, output)
    if is_stdout(json_file) and (output or asked) and is_stdout(shown):
        raise UsageError("two documents cannot both go to stdout", hint="name a file with --output or with --json")
    runs, saved = _load(runs)
    if json_file is not None:
        write_json(json_file, _documents(saved))
    if not (is_stdout(json_file) and is_stdout(shown)):
        _write(wanted, saved, runs, shown)
    return Exit.UNKNOWN_CELLS if any(one.result.has_unknown for one in saved) else Exit.DONE


def _of_programs(runs: tuple[Path, ...]) -> list[Programs] | None:
    """The answers of several ``runs`` of bob app; those that have no result yet are left out, and named. None where one
    is something else, or none has a result."""
    found = {run: several_programs(run) for run in runs}
    unfinished = [run for run in runs if run.is_dir() and not result_file(run).exists()]
    every = [some for run, some in found.items() if run not in unfinished]
    if not every or None in every:
        return None
    for run in unfinished:
        console(stderr=True).print(Text(f"left out: {run} has no result", "bob.dim"), soft_wrap=True)
    return [one for some in every for one in some or ()]


def _load(runs: tuple[Path, ...]) -> tuple[tuple[Path, ...], list[Saved]]:
    """What was saved of ``runs``, and of which; of several, those are left out, and named, that have no table."""
    saved: dict[Path, Saved] = {}
    failures: dict[Path, BobError] = {}
    for run in runs:
        try:
            saved[run] = load(run)
        except (StoreError, MalformedError) as error:
            if len(runs) == 1 or not run.is_dir():
                raise
            failures[run] = error
    if not saved:
        raise next(iter(failures.values()))
    for run, failure in failures.items():
        kind = kept_run(run).kind
        alone = f"{run} is a run of bob {kind.value}, which has no table" if kind in (RunKind.TRY, RunKind.APP) else ""
        console(stderr=True).print(Text(f"left out: {alone or failure.message}", "bob.dim"), soft_wrap=True)
    return tuple(saved), list(saved.values())


def _show_answers(
    answers: Tried, run: Path, wanted: str | None, output: Destination | None, json_file: Path | None
) -> Exit:
    """Print the answers to a quick question again."""
    wanted, folder = wanted or format_of(output), run if run.is_dir() else run.parent
    check_answers(wanted, output, str(run))
    shown = output.path if output else STDOUT
    if wanted != "table" and is_stdout(json_file) and is_stdout(shown):
        raise UsageError("two documents cannot both go to stdout", hint="name a file with --output or with --json")
    if json_file is not None:
        write_json(json_file, tried_to_json(answers))
    if not (is_stdout(json_file) and is_stdout(shown)):
        write_answers(wanted, shown, answers, folder)
    is_unknown = any(answer.verdict is Verdict.UNKNOWN for answer in answers.answers)
    return Exit.UNKNOWN_CELLS if is_unknown else Exit.DONE


def check_answers(wanted: str, output: Destination | None, run: str = "it") -> None:
    """Raise UsageError where the answers to a quick question, of ``run``, are not made what is ``wanted``, or cannot go
    there."""
    if wanted not in ("table", "html", "junit", SITE):
        raise UsageError(
            f"{run} is the run of a quick question, whose answers are no table",
            hint="bob show prints them, and --json; --output FILE.html and DIR/ make pages, FILE.xml is for a CI",
        )
    _check(wanted, output)


def write_answers(wanted: str, shown: Path, answers: Tried, folder: Path) -> None:
    """Write the answers to a quick question, whose witnesses are in ``folder``, in the format that is ``wanted``."""
    match wanted:
        case "table" if is_stdout(shown):
            print_answers(console(), answers, folder)
        case "table":
            text = io.StringIO()
            print_answers(paper(text), answers, folder)
            write_text(shown, text.getvalue(), "--output")
        case "junit":
            write_text(shown, to_junit(suites_of_tried(answers, folder)), "--output")
        case "html":
            from bob.report.answers_page import to_html

            write_text(shown, to_html(answers, folder), "--output")
        case _:
            from bob.report.answers_page import pages

            write_pages(shown, pages(answers, folder), "--output")


def _show_programs(
    found: Programs, run: Path, wanted: str | None, output: Destination | None, json_file: Path | None
) -> Exit:
    """Print the answers for a program again; as a table where a document of tables is wanted."""
    wanted, folder = wanted or format_of(output), run if run.is_dir() else run.parent
    if wanted in ("markdown", "latex", "csv"):
        return _show_tables([found], wanted, output, json_file)
    if wanted not in ("table", "html", "junit", SITE, *PICTURES):
        raise UsageError(
            f"{run} is a run of bob app, whose answers are not made {wanted}",
            hint="bob show prints them, and --json; --output FILE.html and DIR/ make pages, FILE.svg a picture",
        )
    shown = output.path if output else STDOUT
    _check(wanted, output)
    if wanted != "table" and is_stdout(json_file) and is_stdout(shown):
        raise UsageError("two documents cannot both go to stdout", hint="name a file with --output or with --json")
    if json_file is not None:
        write_json(json_file, document_of(result_file(run)))
    match wanted:
        case "table" if is_stdout(shown):
            if not is_stdout(json_file):
                print_programs(console(), found, folder)
        case "table":
            text = io.StringIO()
            print_programs(paper(text), found, folder)
            write_text(shown, text.getvalue(), "--output")
        case "junit":
            write_text(shown, to_junit(suites_of_programs(found, folder)), "--output")
        case "svg" | "dot":
            from bob.report.protocol_drawing import picture

            write_text(shown, picture(found, is_dot=wanted == "dot"), "--output")
        case "html":
            from bob.report.programs_page import to_html

            write_text(shown, to_html(found, folder), "--output")
        case _:
            from bob.report.programs_page import pages

            write_pages(shown, pages(found, folder), "--output")
    return programs_exit(found)


def _show_tables(found: list[Programs], wanted: str | None, output: Destination | None, json_file: Path | None) -> Exit:
    """Print the vulnerabilities of several programs: by type and consequence, and by file system."""
    from bob.report import vulnerability_tables as tables

    wanted = wanted or format_of(output)
    writers: dict[str, Callable[[], str]] = {
        "markdown": lambda: tables.to_markdown(sheets),
        "latex": lambda: tables.to_latex(sheets),
        "html": lambda: tables.to_html(sheets),
        "csv": lambda: tables.to_csv(found),
    }
    if wanted != "table" and wanted not in writers:
        hint = f"{', '.join(('table', *writers))}; of one run alone more"
        raise UsageError(f"of several runs of bob app no {wanted} is made", hint=hint)
    shown = output.path if output else STDOUT
    _check(wanted, output)
    if is_stdout(json_file) and (output or wanted != "table") and is_stdout(shown):
        raise UsageError("two documents cannot both go to stdout", hint="name a file with --output or with --json")
    sheets = [tables.by_type(found), tables.by_consequence(found), tables.by_file_system(found)]
    if any(one.cross for run in found for model in run.models for one in model.vulnerabilities):
        sheets.append(tables.by_cross_check(found))
    if json_file is not None:
        write_json(json_file, tables.to_json(sheets))
    if wanted != "table":
        write_text(shown, writers[wanted](), "--output")
    elif not is_stdout(shown):
        text = io.StringIO()
        tables.print_sheets(paper(text), sheets)
        write_text(shown, text.getvalue(), "--output")
    elif not is_stdout(json_file):
        tables.print_sheets(console(), sheets)
    return max((programs_exit(one) for one in found), key=_WORST.index)


def _check(wanted: str, output: Destination | None) -> None:
    """Raise UsageError if a site has no directory to go to, or something else has."""
    if wanted != SITE:
        if output and output.is_folder:
            hint = f"for example {output.path / 'table'}{_ENDINGS[wanted][0]}"
            raise UsageError(f"--output: {output.path} is a directory", hint=hint)
        return
    if output is None or is_stdout(output.path):
        raise UsageError("a site is several files", hint="name a directory for them, for example --output pages/")
    check_folder(output.path, "--output")
    if result_file(output.path).exists():
        hint = f"for example --output {output.path / 'pages'}/"
        raise UsageError(f"--output: {output.path} is the directory of a run", hint=hint)


def format_of(output: Destination | None) -> str:
    """The format that the name of the file speaks of; raises UsageError for one that bob does not have."""
    if output and output.is_folder:
        return SITE
    ending = output.path.suffix.lower() if output else ""
    wanted = next((name for name, endings in _ENDINGS.items() if ending in endings), "")
    if ending in _OTHERS:
        known = ", ".join(endings[0] for endings in ENDINGS.values())
        raise UsageError(f"--output: bob writes no {ending}", hint=f"it writes {known}; --format makes any file one")
    return wanted or "table"


def _write(wanted: str, saved: list[Saved], runs: tuple[Path, ...], output: Path) -> None:
    match wanted:
        case "table" if is_stdout(output):
            _print(console(), saved, runs)
        case "table":
            file = io.StringIO()
            _print(paper(file), saved, runs)
            write_text(output, file.getvalue(), "--output")
        case "json":
            write_json(output, _documents(saved), "--output")
        case "junit":
            suites = [suite for one in saved for suite in suites_of(one.result, one.folder)]
            write_text(output, to_junit(suites), "--output")
        case _ if wanted == SITE:
            from bob.report.site import pages

            write_pages(output, pages(columns_of((one.result, one.folder) for one in saved)), "--output")
        case _:
            columns = columns_of((one.result, one.folder) for one in saved)
            write_text(output, _writer(wanted)(columns), "--output")


def _writer(wanted: str) -> Callable[[Sequence[Column]], str]:
    """What makes the document. pandas and jinja2 take a while to load, so only now."""
    if wanted == "html":
        from bob.report.page import to_html

        return to_html
    from bob.report.documents import to_csv, to_latex, to_markdown

    return {"csv": to_csv, "latex": to_latex, "markdown": to_markdown}[wanted]


def _documents(saved: list[Saved]) -> object:
    """The result document, or an array of them where there are several."""
    return to_json(saved[0].result) if len(saved) == 1 else [to_json(one.result) for one in saved]


def _print(screen: Console, saved: list[Saved], runs: tuple[Path, ...]) -> None:
    if len(saved) == 1:
        print_result(screen, saved[0].result, saved[0].folder)
        return
    from bob.report.overview import print_overview

    print_overview(screen, [one.result for one in saved])
    screen.print()
    for one, run in zip(saved, runs, strict=True):
        names = ", ".join(column.name for column in one.result.configurations)
        screen.print(f"{names}: bob show {nearby(run)}", style="bob.dim", soft_wrap=True)
