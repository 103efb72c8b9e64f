"""A comparison as a page in Markdown or HTML. The page has the conditions of the measurements (such as the kernel), a
grid of cells (a cell is one property of one configuration), and each difference with its reason. It also shows
commands. Their paths are relative to the directory that bob ran in when it wrote the page, so a user must run them in
that directory."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any

from jinja2 import Template

from bob.report.comparison import words
from bob.report.comparison.compare import CHANGES, Cell, Comparison, Kind
from bob.report.comparison.sides import Said, Side
from bob.report.escape import markdown, markdown_code
from bob.report.templating import environment, html
from bob.text import plural

_COLUMNS = 7  # configurations in one grid: more would be wider than a page

_SINCE = {
    Kind.NEWLY_FAILS: "Fails today, and was not found then",
    Kind.NO_LONGER_FAILS: "Was found then, and not today",
    Kind.UNDECIDED: "No verdict today",
}  # headings of kinds of differences if A is the published table

_TONES = {
    Kind.NEWLY_FAILS: "fails",
    Kind.NO_LONGER_FAILS: "holds",
    Kind.UNDECIDED: "unknown",
    Kind.EXPLORED: "skipped",
}  # classes in page.css; other kinds of differences lack a colour


def page(comparison: Comparison) -> str:
    """Return the page of ``comparison`` as Markdown with GitHub's tables."""
    text = _markdown().render(
        **_shared(comparison),
        again=_again(comparison),
        explained=_explained(comparison),
        run=comparison.b if comparison.a.published else comparison.a,
        facts=facts,
        measured=tuple(_measured(comparison)),
        lots=list(_side_by_side(comparison.configurations)),
        marked=_marked,
        blank_means=words.BLANK_MEANS if comparison.with_published else "",
        is_brief=lambda cell: cell.kind is Kind.EXPLORED,
    )
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def html_page(comparison: Comparison, home: str = "") -> str:
    """Return the page of ``comparison`` as self-contained HTML. ``home`` is the URL of the folder of bob's web site.
    Unless it is empty, the page has links to the site."""
    template = html().get_template("comparison.html.j2")
    return template.render(
        **_shared(comparison),
        home=home,
        anchors={place: f"cell-{number}" for number, place in enumerate(comparison.by_place, start=1)},
        tones=_TONES,
        mark_of=words.mark,
        facts=[(side.name, facts(side) or {"published": side.source}) for side in (comparison.a, comparison.b)],
    )


def _shared(comparison: Comparison) -> dict[str, Any]:
    since = _SINCE if comparison.with_published and comparison.a.published else {}
    kinds = groupby(comparison.groups(), key=lambda group: group.kind)
    sides = ((comparison.a, comparison.only_a), (comparison.b, comparison.only_b))
    return {
        "comparison": comparison,
        "title": title(comparison),
        "counts": words.counts(comparison),
        "cells": comparison.by_place,
        "families": comparison.families,
        "legend": tuple(words.legend(comparison)),
        "kinds": {since.get(kind) or words.HEADINGS[kind].capitalize(): list(groups) for kind, groups in kinds},
        "alone": [(side.name, ", ".join(only)) for side, only in sides if only],
        "reason_of": words.reason_of,
        "says": words.says,
        "evidence": words.evidence,
        "command_of": words.command,
    }


@cache
def _markdown() -> Template:
    made = environment()  # for Markdown, where the filter md escapes text
    made.filters |= {"md": markdown, "code": markdown_code}
    return made.get_template("comparison.md.j2")


def title(comparison: Comparison) -> str:
    if comparison.with_published:
        table, run = (comparison.a, comparison.b) if comparison.a.published else (comparison.b, comparison.a)
        kernel = f"Linux {run.result.environment.kernel}" if run.result is not None else run.name
        return f"{table.title} and {kernel}, compared"
    return f"{comparison.a.name} and {comparison.b.name}, compared"


def _again(comparison: Comparison) -> str:
    if not comparison.with_published:
        return ""
    pairs = [
        (cell.a, cell.b) if comparison.a.published else (cell.b, cell.a)
        for cell in comparison.cells
        if cell.kind not in (Kind.ONLY_A, Kind.ONLY_B)
    ]
    runs = [run for published, run in pairs if published is not None and published.said is Said.FAILS]
    if not runs:
        return "The paper does not report a violation in these cells."
    found = sum(run is not None and run.said is Said.FAILS for run in runs)
    these = "this configuration" if len(comparison.configurations) == 1 else "these configurations"
    return f"bob found {found} of {plural(len(runs), 'violation')} that the paper reports for {these}."


def _explained(comparison: Comparison) -> str:
    differing = comparison.of(*CHANGES)
    if not comparison.with_published or not differing:
        return ""
    known = sum(cell.reason is not None and not cell.reason.background for cell in differing)
    return f"The reason is known for {known} of {plural(len(differing), 'difference')}."


def _measured(comparison: Comparison) -> Iterator[tuple[str, str, str]]:
    old, new = facts(comparison.a), facts(comparison.b)
    for label in dict.fromkeys([*old, *new]):
        yield label, old.get(label, ""), new.get(label, "")
    for what, in_a, in_b in words.settings(comparison):
        if what.startswith(words.MOUNTED):
            yield what, in_a, in_b


def facts(side: Side) -> dict[str, str]:
    """Return the conditions of the measurement of ``side``, such as the kernel; the keys are labels for the page.
    Return an empty dictionary if ``side`` is a published table."""
    if side.result is None:
        return {}
    on, run = side.result.environment, side.result.run
    effort = f"budget {plural(run.budget, 'mount')} per workload, seed {run.seed}"
    return {
        "run": run.id,
        "kernel": on.kernel,
        "mkfs": on.mkfs_version,
        "guest": f"{on.image}, {on.accelerator.upper()}, {on.clock} clock",
        "device": side.result.model.words,
        "explored": effort + words.but_stopped(side.result),
        "when": run.started[:10],
        "bob": run.bob_version,
    }


def _side_by_side(configurations: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield ``configurations`` in groups. Each group is so small that the page can show its configurations as columns
    of one table. If possible, all configurations of a file system are in the same group."""
    lot: list[str] = []
    for _fs, same in groupby(configurations, key=lambda name: re.split("[- ]", name)[0]):
        more = list(same)
        if lot and len(lot) + len(more) > _COLUMNS:
            yield lot
            lot = []
        lot += more
        while len(lot) > _COLUMNS:
            yield lot[:_COLUMNS]
            lot = lot[_COLUMNS:]
    if lot:
        yield lot


def _marked(cell: Cell | None) -> str:
    if cell is None:
        return ""
    shown = words.mark(cell).replace("<", "&lt;").replace(">", "&gt;").replace("~", "\\~")
    return f"**{shown}**" if cell.kind in CHANGES else shown
