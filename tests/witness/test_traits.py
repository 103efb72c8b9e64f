"""What witnesses show, against what is read here from their documents, by other ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bob.witness import bundle, document
from bob.witness.traits import MORE, NOTHING, OTHER, REPLACE, WORDS, Trait, missing, traits_of

FOLDERS = [
    Path(__file__).parents[2] / "reports" / "reference" / name for name in ("osdi14-linux-6.1", "modern-linux-6.1")
]


def of_properties(folder: Path) -> Iterator[tuple[Path, Mapping[str, Any], Mapping[Trait, frozenset[str]]]]:
    for path in bundle.within(folder):
        found = bundle.load(path)
        if found["property"] is not None:
            shown = traits_of(document.read(path))
            assert shown is not None
            yield path, found, shown


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_what_the_time_line_says(folder: Path) -> None:
    for path, found, shown in of_properties(folder):
        assert set(shown) == set(Trait)
        assert all(shown[trait] and shown[trait] <= WORDS[trait] for trait in Trait), path
        assert all(len(words) == 1 for words in shown.values() if NOTHING in words), path
        events = found["crash"]["timeline"]["events"]
        fates: dict[str, set[str]] = {fate: set() for fate in ("lost", "kept", "torn", "durable")}
        for event in events:
            if event["event"] == "written" and not (event["fate"] == "durable" and event["seconds"] < 0):
                fates[event["fate"]].add(event["kind"])
        for trait, fate in ((Trait.KEPT, "kept"), (Trait.TORN, "torn"), (Trait.DURABLE, "durable")):
            assert shown[trait] == (fates[fate] or {NOTHING}), path
        assert shown[Trait.LOST] <= (fates["lost"] or {NOTHING}), path
        deciding = {one["kind"] for one in events if one.get("decides") and one["fate"] == "lost"}
        assert not deciding or shown[Trait.LOST] == deciding, path


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_what_the_operations_are(folder: Path) -> None:
    seen = 0
    for path, found, shown in of_properties(folder):
        evidence, later = found["evidence"], found["question"]["later"]
        assert (shown[Trait.LATER] == {NOTHING}) == (later is None), path
        if later is None:
            continue
        seen += 1
        text = evidence.partition(f"operation {later} (")[2].partition(")")[0].split()
        flags = {"direct", "sync", "dsync", "mmap", "trunc"}
        assert shown[Trait.LATER] & flags == set(text[-1:]) & flags, path
        if text[0] not in ("write", "append"):
            assert {text[0], REPLACE if text[0] == "rename" else text[0]} & shown[Trait.LATER], path
        assert (shown[Trait.BESIDE] == {NOTHING}) == (len(found["question"]["required"]) == 1), path
    assert seen > 40


def test_a_rename_to_a_free_name_is_another_thing_than_one_that_replaces() -> None:
    told = set()
    for path, found, shown in of_properties(FOLDERS[0]):
        operations = [line.split() for line in found["workload"]["operations"]]
        renames = [number for number in found["question"]["required"] if operations[number - 1][0] == "rename"]
        if len(renames) == 1:
            new, earlier = operations[renames[0] - 1][2], operations[: renames[0] - 1]
            assert not any(new in words for words in earlier), path
            word = REPLACE if new in found["inodes_before"] else "rename"
            assert (shown[Trait.OPERATION] | shown[Trait.BESIDE]) & {REPLACE, "rename"} == {word}, path
            told.add(word)
    assert told == {REPLACE, "rename"}


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ("operation 2 (create /a) survived; operation 1 (append /b 9), issued earlier, did not (the size of /b: 0 B "
         "instead of 9 B; bytes 0 to 9 of /b: zeros (9 B) instead of the data of operation 1)", {"size", "data"}),
        ("only a part of operation 1 (rename /a /b) is there (/a still exists)", {"names"}),
        ("only a part of operation 1 (rename /a /b) is there (/a still exists: it is a file)", {"names"}),
        ("x survived; y, issued earlier, did not (/a (1) still exists; /b does not exist)", {"names"}),
        ("only a part of operation 1 (unlink /a) is there (of the names, /b is the file first known as /a)", {"names"}),
        ("only a part of operation 1 (create /a) is there (the file /a: not there instead of there)", {"names"}),
        ("only a part of operation 1 (link /a /b) is there (the number of names of /a: 1 instead of 2)", {"names"}),
        ("only a part of operation 1 (chmod /a 600) is there (the mode of /a: 644 instead of 600)", {"attributes"}),
        ("only a part of operation 1 (setxattr /a x.b 9) is there (the attribute x.b of /a: absent instead of set)",
         {"attributes"}),
        ("only a part of operation 1 (append /a 9) is there (what can be read of /a: 0 B instead of 9 B)", {"data"}),
        ("operation 1 (rename /a /b) did more than it was to do, or not all (bytes 0 to 9 of /b: zeros (9 B), where no "
         "operation wrote)", {MORE}),
        ("a part of operation 2 (append /b 9) is there (the size of /b: 9 B; bytes 0 to 9 of /b: zeros (9 B) instead "
         "of the data of operation 2); only a part of operation 1 (rename /a /c), issued earlier, is there (the name "
         "/c: the file first known as /a; /a still exists)", {"names"}),
        ("only a part of operation 1 (append /b 9) is there (the size of /b: 9 B; bytes 0 to 9 of /b: zeros (9 B) "
         "instead of the data of operation 1)", {"data"}),
        ("only a part of operation 1 (append /b 9) is there (the size of /b (1: 9 B)", {OTHER}),
        ("what no operation was to change is damaged (of /d: 3 links instead of 2)", {OTHER}),
        ("something else", {OTHER}),
    ],
)  # fmt: skip
def test_what_is_missing(evidence: str, words: set[str]) -> None:
    assert missing(evidence) == words
