"""The table of programs × file systems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bob.report.programs_document import page
from bob.witness import bundle

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "reports" / "reference" / "apps-linux-6.1"
COLUMNS = ["ext4", "ext4-writeback", "ext4-journal", "xfs", "btrfs", "f2fs"]


def kept() -> list[dict[str, Any]]:
    programs: list[dict[str, Any]] = json.loads((KEPT / "apps.json").read_text())["programs"]
    return programs


def test_the_page_is_what_is_made_of_the_results() -> None:
    assert (KEPT / "README.md").read_text() == page(kept(), COLUMNS, KEPT.relative_to(ROOT).as_posix())


def test_every_violation_has_its_witness_and_every_witness_a_violation() -> None:
    named = {
        KEPT / one["witness"]
        for program in kept()
        for answer in program["configurations"]
        for one in answer["vulnerabilities"]
    }
    assert named == set(bundle.within(KEPT))


def test_what_is_not_known_is_not_safe_and_what_was_not_asked_is_empty() -> None:
    [program] = kept()[:1]
    unknown = {**program["configurations"][0], "safety": "unknown", "reason": "a guest was lost", "vulnerabilities": []}
    made = page([{**program, "configurations": [unknown]}], COLUMNS, "x")
    row = next(line for line in made.splitlines() if line.startswith("| ["))
    assert row.endswith("| ? | – | – | – | – | – |")
    assert "?: a guest was lost" in made
