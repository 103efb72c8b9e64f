"""``python tests/readme_sample.py`` writes the sample of output in README.md, from a result in reports/."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

from bob.cli.output import paper
from bob.report.saved import load_table
from bob.report.table import print_result

REFERENCE = Path("reports/reference/osdi14-linux-6.1")  # below the project's root
CONFIGURATION = "ext4-ordered"
SHOWN = ("single-block-append", "directory-op-any")  # violations whose evidence is in the sample
LEFT_OUT = "[...]"
_SAMPLE = re.compile(r"(?<=<!-- table -->\n```text\n).*?(?=```\n<!-- /table -->)", re.DOTALL)
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


def written(readme: str, root: Path) -> str:
    return _SAMPLE.sub(lambda _: sample(root), readme, count=1)


if __name__ == "__main__":
    page = Path("README.md")
    page.write_text(written(page.read_text(), Path()))
