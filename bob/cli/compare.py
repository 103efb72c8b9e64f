"""``bob compare``: compares two runs, or a run and the published table, cell by cell. A cell is the verdict (such as
HOLDS or FAILS) on one property of one configuration."""

import shlex
from pathlib import Path

from bob.cli.commands import command
from bob.cli.output import console, is_stdout, write_json, write_text
from bob.errors import Exit, UsageError
from bob.options import option
from bob.report.comparison.compare import Comparison
from bob.report.comparison.compare import compare as compare_sides
from bob.report.comparison.document import to_document
from bob.report.comparison.sides import Side, known_reasons, named_side, paired
from bob.report.comparison.terminal import print_comparison
from bob.report.published import PUBLISHED
from bob.run import option_table as table
from bob.run.option_paths import OUTPUT
from bob.run.option_values import one_of


@command()
def compare(
    a: str = option("A", "", one_of(lambda: PUBLISHED)),
    b: str = option("B", "", one_of(lambda: PUBLISHED)),
    *,
    pairs: tuple[str, ...] = option("--as OLD=NEW", "Compare only A's configuration OLD with B's NEW."),
    strict: bool = option("--strict", "Also count cells that are differently explored, or that only one side has."),
    json_file: Path | None = table.JSON,
    markdown_file: Path | None = option("--markdown FILE", "Write a Markdown page into FILE; - is stdout.", OUTPUT),
    latex_file: Path | None = option(
        "--latex FILE", "Write the table of both sides in LaTeX into FILE; - is stdout.", OUTPUT
    ),
    html_file: Path | None = option("--html FILE", "Write a stand-alone page into FILE; - is stdout.", OUTPUT),
) -> Exit:
    """Compare two runs, or a run and a published table, cell by cell.

    A is the old one, or the reference; B is the new one. Each is a run directory, a result that --json wrote, or a
    published table. osdi14 is Table 1 of "All File Systems Are Not Created Equal" (2014). explode is Table 2 of
    "EXPLODE: a Lightweight, General System for Finding Serious Storage System Errors" (2006).

    For each cell that both have, bob says: the same; B newly fails; B no longer fails; differently explored (the same
    verdict from other workloads, or from another number of crash states); or undecided (one side lacks a verdict). For
    each difference it prints the evidence and how to replay it, or what was explored without a violation. Against a
    published table, it adds the reason if that is known. Configurations that only one side has are listed, not
    compared. With --as, bob compares two configurations with different names, such as two mount options of one file
    system. A and B can then be the same run.

    \b
    Examples:
      bob compare osdi14 bob-runs/20261121T230021-1f2e3d
      bob compare osdi14 bob-runs/matrix --markdown comparison.md
      bob compare osdi14 bob-runs/matrix --html then-and-now.html
      bob compare osdi14 bob-runs/matrix --latex then-and-now.tex
      bob compare --as ext4-ordered=ext4-writeback bob-runs/matrix bob-runs/matrix
      bob compare before/result.json after/result.json || echo "something changed"
      bob compare good bob-runs/new --json - | jq '.cells[] | select(.kind != "same")'

    \b
    To bisect a kernel, with the script in docs/results.md:
      git bisect run ./bisect-step good-run
    It builds a guest image, probes, and compares. It exits with 0 (good) or 1 (bad) as `bob compare` does,
    with 125 (skip this commit) instead of 3, and with 128 (stop) after any other error.

    \b
    Exit codes:
      0   no verdict differs
      1   some cell newly fails or no longer fails (see also --strict)
      2   invalid usage, or A and B share no cell
      3   no known difference, but some cell is unknown or skipped on one side
      8   a file is not a valid result
      9   a run has no result, or cannot be read
    """
    files = {"--json": json_file, "--markdown": markdown_file, "--latex": latex_file, "--html": html_file}
    if len(there := [option for option, file in files.items() if is_stdout(file)]) > 1:
        raise UsageError(f"{' and '.join(there)} cannot both go to stdout", hint="name a file for one of them")
    old, new = named_side(a), named_side(b)
    if pairs:
        old, new = paired(old, new, [_pair(text, old, new) for text in pairs])
    comparison = compare_sides(old, new, known_reasons(old, new))
    if not comparison.compared:
        raise UsageError(f"{a} and {b} share no cell", hint=_hint(comparison))
    if json_file is not None:
        write_json(json_file, to_document(comparison))
    if markdown_file is not None:
        from bob.report.comparison.page import page  # imported only now, since jinja2 takes a while to load

        write_text(markdown_file, page(comparison), "--markdown")
    if latex_file is not None:
        from bob.report.comparison.latex import to_latex

        write_text(latex_file, to_latex(comparison), "--latex")
    if html_file is not None:
        from bob.report.comparison.page import html_page

        write_text(html_file, html_page(comparison), "--html")
    if not there:
        print_comparison(console(), comparison)
    if comparison.differs(strict=strict):
        return Exit.DIFFERENT
    return Exit.UNKNOWN_CELLS if comparison.is_undecided else Exit.DONE


def _pair(text: str, a: Side, b: Side) -> tuple[str, str]:
    """Split OLD=NEW of ``--as`` into two configurations. A name may itself contain ``=`` (ext4 -O quota
    data=journal)."""
    halves = text.split("=")
    splits = [("=".join(halves[:at]), "=".join(halves[at:])) for at in range(1, len(halves))]
    if not splits:
        raise UsageError(f"invalid --as {text!r}; expected OLD=NEW", hint="for example ext4-ordered=ext4-writeback")
    there = [(old, new) for old, new in splits if old in a.columns and new in b.columns]
    return there[0] if there else splits[0]


def _hint(comparison: Comparison) -> str:
    if comparison.configurations:
        return "they are about different properties"
    a, b = comparison.only_a, comparison.only_b
    if a and b:
        pair = shlex.quote(f"{a[0]}={b[0]}")
        return f"A has {', '.join(a)}; B has {', '.join(b)}; compare two of them with --as {pair}"
    return f"A has {', '.join(a) or 'none'}; B has {', '.join(b) or 'none'}"
