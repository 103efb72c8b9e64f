"""docs/formats.md is that of the types; how its tables are made."""

from __future__ import annotations

import re

from bob.crash.state import CrashState
from bob.schema import Document, encode, field, older
from formats_page import PAGE, PARTS, documents, fields_in, fields_of, rewritten, tagged


class Inner(Document, frozen=True):
    """Something."""

    state: CrashState
    words: tuple[str, ...] = ()


class Outer(Document, frozen=True, kw_only=True, tag_field="schema", tag="bob.sample/1"):
    """Something with something in it."""

    name: str
    folder: str
    inner: dict[str, Inner]
    least: int = 5
    data: bytes | None = None
    was: bool = field(default_factory=older(False))


def test_the_page_is_that_of_the_types() -> None:
    """After a change that is meant: ``python tests/formats_page.py``, and words for what is new."""
    page = PAGE.read_text()
    assert rewritten(page) == page


def test_every_document_with_a_schema_is_described() -> None:
    page = PAGE.read_text()
    described = set(re.findall(r"^(?:\| |#.*)`(bob\.[a-z.-]+/\d+)`", page, flags=re.MULTILINE))
    assert {tag for tag, kind in tagged().items() if tag.startswith("bob.") and kind is not Outer} <= described
    assert "`bob.sample/1`" not in page


def test_a_table_of_fields() -> None:
    table = """\
| field | type | meaning |
|---|---|---|
| `name`, `folder` | number | what it is called |
| `inner` | text | by path |
| `gone` | text | a field of before |"""
    assert (
        fields_of(Outer, table, {"CrashState": "#states"})
        == """\
| field | type | meaning |
|---|---|---|
| `name`, `folder` | text | what it is called |
| `inner` | by name: {`state`: [crash state](#states); `words`: [text ...] ?} | by path |
| `least` | integer [5] | |
| `data` | Base64 ? | |
| `was` | true or false ? | |"""
    )


def test_fields_of_two_types_that_had_one_meaning_have_it_both() -> None:
    table = "| field | type | meaning |\n|---|---|---|\n| `name`, `least` | text | two \\| one |"
    rows = fields_of(Outer, table, {}).splitlines()
    assert rows[2] == "| `name` | text | two \\| one |" and "| `least` | integer [5] | two \\| one |" in rows


def test_a_table_of_documents() -> None:
    table = """\
| schema | by | fields | more |
|---|---|---|---|
| `bob.sample/1` | me | old | `name`: its name |
| `bob.other/1` | you | `by hand` | |"""
    assert (
        documents(table, {"bob.sample/1": Outer}, {"Inner": "#inner"})
        == """\
| schema | by | fields | more |
|---|---|---|---|
| `bob.sample/1` | me | `name`, `folder`; `inner`: by name: [inner](#inner); `least`: integer [5]; `data`: Base64 ?; \
`was`: true or false ? | `name`: its name |
| `bob.other/1` | you | `by hand` | |"""
    )


def test_a_dataclass_may_lack_what_older_ones_lack_alone() -> None:
    assert dict(fields_in(CrashState, {}))["kept"] == "[integer ...]"
    assert encode(CrashState(1)) == {"point": 1, "kept": (), "torn": ()}


def test_every_part_stands_in_a_table() -> None:
    page = PAGE.read_text()
    assert all(f"\n| `{part}`" in page for part in PARTS)
