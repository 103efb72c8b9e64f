"""The published table and the reasons are about configurations and properties that exist."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from bob.errors import MalformedError
from bob.report.published import Direction, load_reasons, osdi14, osdi14_reasons, reason_for
from bob.report.rows import FAMILIES

ROWS = [name for names in FAMILIES.values() for name in names]

GOOD = """
[[reason]]
title = "t"
direction = "found"
configurations = ["ext2"]
properties = ["append-any"]
because = "b"
"""


def test_the_table_has_the_published_shape() -> None:
    table = osdi14()
    assert len(table.configurations) == len(set(table.configurations)) == 16
    assert list(table.fails) == ROWS
    for configurations in table.fails.values():
        assert configurations <= set(table.configurations)


def test_some_cells_as_they_are_printed() -> None:
    fails = osdi14().fails
    assert fails["single-sector-overwrite"] == frozenset()
    assert fails["multi-block-append"] == set(osdi14().configurations)
    assert fails["directory-op-any"] == {"ext2", "btrfs", "reiserfs-nolog"}
    assert sum(map(len, fails.values())) == 84


def test_every_reason_is_about_known_cells() -> None:
    assert len(osdi14_reasons()) >= 6
    for reason in osdi14_reasons():
        assert reason.title and reason.because
        for glob in reason.configurations:
            assert any(fnmatchcase(name, glob) for name in osdi14().configurations), glob
        for glob in reason.properties:
            assert any(fnmatchcase(name, glob) for name in ROWS), glob


def test_every_reason_explains_some_cell_that_can_differ_so() -> None:
    """A reason for a × where the paper has one already, or for a blank where it has none, can never be told."""
    fails = osdi14().fails
    for reason in osdi14_reasons():
        cells = [
            (configuration, name, Direction.NOT_FOUND if configuration in fails[name] else Direction.FOUND)
            for configuration in osdi14().configurations
            for name in ROWS
        ]
        told = [cell for cell in cells if reason_for(osdi14_reasons(), *cell) is reason]
        assert told, reason.title
        if not any("*" in glob for glob in (*reason.configurations, *reason.properties)):
            assert len(told) == len(reason.configurations) * len(reason.properties), reason.title


def test_what_is_known_of_ext4_ordered() -> None:
    found = [name for name in ROWS if "ext4-ordered" not in osdi14().fails[name]]
    explained = [name for name in found if reason_for(osdi14_reasons(), "ext4-ordered", name, Direction.FOUND)]
    assert set(found) - set(explained) == {"single-sector-overwrite", "directory-op"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "t"', "", "lacks title"),
        ('title = "t"', 'title = "t"\nurl = "u"', "has unknown keys: url"),
        ('"found"', '"lost"', "unknown direction 'lost'"),
        ('["append-any"]', '["append-all"]', "no property is called 'append-all'"),
        ('["append-any"]', '"append-any"', "properties must be a list of texts"),
        ('["ext2"]', "[]", "configurations must be a list of texts"),
        ("[[reason]]", "[reason]", r"not an array of \[\[reason\]\] tables"),
        ("[[reason]]", "[[cause]]", r"not an array of \[\[reason\]\] tables"),
        ("[[reason]]", "[[reason", "reasons.toml: "),
    ],
)
def test_damaged_reasons(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "reasons.toml"
    path.write_text(GOOD)
    (good,) = load_reasons(path)
    assert (good.direction, good.background, good.measured) == (Direction.FOUND, False, ())
    assert old in GOOD
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(MalformedError, match=message):
        load_reasons(path)
