"""bob witness show: the story in the terminal, as a picture and as a page."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from bob.report.drawing import svg
from bob.report.witness_page import to_html
from bob.witness.document import Size, read
from report.witnesses import documents

from .stand_in import Bob, Ended

PATH = Path("a witness.json")


@pytest.fixture
def found(bob: Bob) -> Path:
    """The file of a witness, in the directory where bob is run."""
    PATH.write_text(json.dumps(documents()["overwrite-any"]))
    return PATH


def test_the_story(bob: Bob, found: Path) -> None:
    ended = bob("witness", "show", found)

    assert (ended.code, ended.err) == (0, "")
    assert "overwrite-any on ext4-ordered (data=ordered)\n" in ended.out
    assert "  1 write /a 0 512 <- must come before operation 2\n" in ended.out
    assert "  2 create /n <- is there too early\n" in ended.out
    assert ended.out.endswith("bob replay 'a witness.json'\n")


def test_the_picture_and_the_page(bob: Bob, found: Path) -> None:
    told = bob("witness", "show", found)

    assert bob("witness", "show", found, "--svg", "a.svg", "--html", "a.html") == told

    witness = read(found)
    drawn = svg(witness.timeline, witness.workload.operations, witness.claim.role, witness.evidence)
    assert Path("a.svg").read_text() == drawn + "\n"
    page = Path("a.html").read_text()
    begins, ends = 'href="data:application/json;base64,', '" download="ext4-ordered-overwrite-any.json"'
    [offered] = re.findall(f'{re.escape(begins)}([^"]*){re.escape(ends)}', page)
    assert json.loads(base64.b64decode(offered)) == json.loads(found.read_text())
    assert page == to_html(witness, found, download=f"data:application/json;base64,{offered}")
    assert "bob replay &#39;a witness.json&#39;" in Path("a.html").read_text()


def test_the_witness_itself(bob: Bob, found: Path) -> None:
    ended = bob("witness", "show", found, "--json", "-")

    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out) == json.loads(found.read_text())


def test_a_property_of_the_users_own_is_told_from_the_witness_alone(bob: Bob, found: Path) -> None:
    document = documents()["overwrite-any"]
    declared = {**document["probe"], "name": "mine", "meaning": "Mine asks for it"}
    found.write_text(json.dumps({**document, "property": "mine", "probe": declared}))

    ended = bob("witness", "show", found, "--html", "a.html")

    assert (ended.code, ended.err) == (0, "")
    assert "Mine asks for it" in ended.out
    assert "Mine asks for it" in Path("a.html").read_text()


def test_a_property_that_bob_does_not_ship(bob: Bob, found: Path) -> None:
    found.write_text(json.dumps({**documents()["overwrite-any"], "property": "mine", "probe": None}))

    assert bob("witness", "show", found, "--html", "a.html").code == 0


def test_what_cannot_be(bob: Bob, found: Path) -> None:
    assert bob("witness", "show", found, "--html", "gone/a.html") == Ended(
        2, "", "bob: --html: there is no directory gone\nhint: mkdir -p gone\n"
    )
    found.write_text("{}")
    assert bob("witness", "show", found, "--html", "a.html").code == 8
    assert not Path("a.html").exists()


def test_where_a_smaller_witness_goes(bob: Bob, found: Path) -> None:
    either = "bob: say where the smaller witness goes\nhint: either --output FILE or --in-place\n"
    assert bob("witness", "shrink", found) == Ended(2, "", either)
    assert bob("witness", "shrink", found, "--in-place", "--output", "b.json") == Ended(2, "", either)
    one = "bob: --output is for one witness\nhint: name the file of one, or use --in-place\n"
    assert bob("witness", "shrink", found, found, "--output", "b.json") == Ended(2, "", one)


def test_what_became_smaller_as_json(bob: Bob, found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two one does not show any more; with the witness on stdout, nothing else is there."""
    before, after = Size(5, 2, 9), Size(2, 1, 1)
    made = {found: documents()["single-sector-overwrite"], Path("other.json"): None}

    def shrink(files: Sequence[Path], **_more: object) -> Iterator[SimpleNamespace]:
        yield from (SimpleNamespace(path=path, document=made[path], before=before, after=after) for path in files)

    module = SimpleNamespace(shrink=shrink, tell_results=lambda _path: None)
    monkeypatch.setitem(sys.modules, "bob.run.shrink", module)
    Path("other.json").write_text(found.read_text())

    ended = bob("witness", "shrink", "--in-place", found, "other.json", "--quiet", "--json", "-")

    assert (ended.code, ended.err) == (1, "")
    assert json.loads(ended.out)["witnesses"] == [
        {"witness": str(path), "shows": shows, "before": asdict(before), "after": asdict(after)}
        for path, shows in ((found, True), (Path("other.json"), False))
    ]
    found.write_text(json.dumps(documents()["overwrite-any"]))
    assert json.loads(bob("witness", "shrink", found, "--output", "-", "--quiet").out) == made[found]
    ended = bob("witness", "shrink", found, "--output", "-", "--json", "-")
    assert (ended.code, ended.err.splitlines()[0]) == (2, "bob: two documents cannot both go to stdout")
