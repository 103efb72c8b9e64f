"""The jinja2 environments for bob's documents."""

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bob.report import drawing
from bob.report.counts import explored, torn_states, whole_states
from bob.report.escape import clean
from bob.report.rows import MARKS_IN_GRID, title
from bob.report.table import foot, tally
from bob.story.timeline import Fate
from bob.text import compact, plural
from bob.version import __version__

TEX_DELIMITERS = {
    "block_start_string": "<%",
    "block_end_string": "%>",
    "variable_start_string": "<<",
    "variable_end_string": ">>",
    "comment_start_string": "<#",
    "comment_end_string": "#>",
}  # delimiters of code in templates for LaTeX, which needs braces itself


def environment(**more: Any) -> Environment:
    """Return an environment with bob's templates and version, and the further options ``more``. An undefined name is an
    error."""
    made = Environment(
        loader=PackageLoader("bob.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **more,
    )
    made.globals["bob"] = __version__
    return made


@cache
def html() -> Environment:
    """Return the environment for HTML pages. It escapes every value, and has the filters that the pages use."""
    made = environment(autoescape=True, finalize=_finalize)
    made.filters.update(
        mark=MARKS_IN_GRID.__getitem__, plural=plural, compact=compact, states=explored, whole_states=whole_states,
        torn_states=torn_states, title=title, tally=tally, foot=foot, sentence=_sentence,
    )  # fmt: skip
    made.globals["fates"] = [(Markup(drawing.mark(fate)), fate.value, drawing.LEGEND[fate]) for fate in Fate]
    return made


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def raised(text: str) -> str:
    """Return ``text`` with the exponents of powers of two as superscript characters, such as 2²⁰ for 2^20. A <sup>
    element would not do, since an attribute of HTML must not contain an element."""
    return re.sub(r"(?<![\w.])2\^(\d+)", lambda found: "2" + found[1].translate(_RAISED), text)


def _finalize(value: Any) -> Any:
    return raised(clean(value)) if isinstance(value, str) and not isinstance(value, Markup) else value
