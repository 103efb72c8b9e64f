"""``python tests/readme_sample.py`` writes the samples of output in README.md and docs/apps.md, from reports/."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

from bob.cli.output import paper
from bob.report.programs import print_programs
from bob.report.saved import load_every, load_table
from bob.report.table import print_result

REFERENCE = Path("reports/reference/osdi14-linux-6.1")  # below the project's root
CONFIGURATION = "ext4-ordered"
SHOWN = ("single-block-append", "directory-op-any")  # violations whose evidence is in the sample
PROGRAMS = Path("reports/reference/apps-linux-6.1")
PROGRAM, FILE_SYSTEM = "replace-rename", "ext4"
LEFT_OUT = "[...]"
_VIOLATION = re.compile(r"^× (\S+) .*\n(?:    .*\n)+", re.MULTILINE)


def sample(root: Path) -> str:
    """Return bob's output for one configuration, with the evidence of some rows."""
    result = load_table(root / REFERENCE).result
    [column] = (one for one in result.subjects if one.name == CONFIGURATION)
    alone = replace(result, run=replace(result.run, started=""), subjects=(column,))  # its time is that of all columns
    printed = io.StringIO()
    print_result(paper(printed, 80), alone, REFERENCE)
    text = printed.getvalue()
    found = list(_VIOLATION.finditer(text))
    kept = "".join(violation[0] for violation in found if violation[1] in SHOWN)
    return f"{text[: found[0].start()]}{kept}{LEFT_OUT}\n{text[found[-1].end() :]}"


def answer(root: Path) -> str:
    """Return bob's answer for a program on one file system, without its notes."""
    every = (one.result for one in load_every(root / PROGRAMS / "apps.json.xz"))
    [result] = (one for one in every if one.program is not None and one.program.name == PROGRAM)
    subjects = tuple(one for one in result.subjects if one.name == FILE_SYSTEM)
    printed = io.StringIO()
    print_programs(paper(printed, 80), replace(result, subjects=subjects), PROGRAMS)
    text, _note, _notes = printed.getvalue().partition("  note:")
    return f"{text}{LEFT_OUT}\n"


SAMPLES = {Path("README.md"): ("table", sample), Path("docs/apps.md"): ("answer", answer)}
"""By page the marks around its sample, and what makes it."""


def written(page: Path, root: Path) -> str:
    """Return the text of ``page`` with its sample as it is now."""
    marker, made = SAMPLES[page]
    text = made(root)
    place = rf"(?<=<!-- {marker} -->\n```text\n).*?(?=```\n<!-- /{marker} -->)"
    return re.sub(place, lambda _: text, (root / page).read_text(), count=1, flags=re.DOTALL)


if __name__ == "__main__":
    for page in SAMPLES:
        page.write_text(written(page, Path()))
