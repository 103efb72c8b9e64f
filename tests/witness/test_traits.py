"""What witnesses show, against what is read here from their documents, by other ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bob.catalogue.probe_files import shipped_probes
from bob.claim.claim import Claim
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import questions
from bob.observe.observation import Observation
from bob.witness import bundle, document
from bob.witness.document import Witness
from bob.witness.traits import MORE, NOTHING, OTHER, REPLACE, WORDS, Trait, Traits, traits_of
from bob.workload.language import parse
from bob.workload.operations import Workload
from claim.worlds import World

FOLDERS = [
    Path(__file__).parents[2] / "reports" / "reference" / name for name in ("osdi14-linux-6.1", "modern-linux-6.1")
]


@cache
def of_properties(folder: Path) -> Sequence[tuple[Path, Mapping[str, Any], Traits]]:
    """The witnesses of properties: their documents, and what they show."""
    loaded = [(path, bundle.load(path)) for path in bundle.within(folder)]
    shown = [(path, found, traits_of(document.read(path))) for path, found in loaded if found["property"] is not None]
    assert all(traits is not None for _path, _found, traits in shown)
    return [(path, found, traits) for path, found, traits in shown if traits is not None]


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
        assert (shown[Trait.EXTENT] == {"whole"}) == (") survived; " in evidence), path
        assert (shown[Trait.EXTENT] == {"part"}) == evidence.startswith("a part of "), path
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


def test_no_wording_of_the_evidence_is_read() -> None:
    told = set()
    for path, _found, shown in of_properties(FOLDERS[0])[::12]:
        witness = replace(document.read(path), evidence="operation 1 (chmod /a 600) (the mode of /a: 6 instead of 7)")
        assert traits_of(witness) == shown, path
        told |= shown[Trait.MISSING]
    assert len(told) > 2


def test_a_witness_without_a_tree_that_breaks_its_property_shows_nothing() -> None:
    path, _found, _shown = of_properties(FOLDERS[0])[0]
    witness = document.read(path)
    assert witness.found is not None
    assert traits_of(replace(witness, found=None)) is None
    assert traits_of(replace(witness, found=replace(witness.found, mounted=False))) is None
    world = World.of(witness.workload)
    assert traits_of(of_world(witness, witness.claim, world, witness.workload, world.crash(world.all))) is None


SETUP = "mkdir /d; write /d/f 0 8192; write /d/g 0 300"


@pytest.mark.parametrize(
    ("operations", "name", "there", "changes", "words"),
    [
        ("append /d/f 4096; create /x", "append-any", (2,), {}, {"size"}),
        ("append /d/f 4096; create /x", "append-any", (1, 2), {"/d/f": {"content": bytes(12288)}}, {"data"}),
        ("append /d/f 4096; create /x", "append-any", (1, 2), {"/d/f": {"content": b""}}, {"data"}),
        ("append /d/f 4096; create /x", "append-any", (1, 2), {"/d/f": None}, {"names"}),
        ("append /d/f 4096; create /x", "append-any", (1, 2), {"/d/f": {"fault": "torn"}}, {"names"}),
        ("rename /d/f /d/h; create /x", "directory-op-any", (2,), {}, {"names"}),
        ("rename /d/f /d/h", "directory-op", (), {"/d/f": None}, {"names"}),
        ("link /d/f /d/h", "directory-op", (1,), {"/d/f": {"links": 1}, "/d/h": {"links": 1}}, {"names"}),
        ("rename /d/f /d/h; create /d/f", "directory-op", (1, 2), {"/d/h": None}, {"names"}),
        ("create /d/n", "directory-op", (1,), {"/d/n": {"content": b"more", "size": 4}}, {"size"}),
        ("rename /d/f /d/h", "directory-op", (1,), {"/d/h": {"content": bytes(8192)}}, {MORE}),
        ("append /d/f 4096", "collateral", (1,), {"/d/g": {"content": bytes(300)}}, {OTHER}),
    ],
)  # fmt: skip
def test_what_is_missing(
    operations: str, name: str, there: tuple[int, ...], changes: dict[str, dict[str, Any] | None], words: set[str]
) -> None:
    workload = Workload("w", parse(SETUP), parse(operations))
    world = World.of(workload)
    tree = dict(world.crash(there).tree or {})
    for path, change in changes.items():
        if change is None:
            del tree[path]
        else:
            tree[path] = replace(tree[path], **change)
    [probe] = shipped_probes((name,))
    asked = questions(probe.property, world.history)
    seen = Observation(True, None, tree)
    template = document.read(bundle.within(FOLDERS[1])[0])
    shown = [
        traits
        for question in asked
        if (traits := traits_of(of_world(template, OfProperty(name, question, probe.property), world, workload, seen)))
    ]
    assert {traits[Trait.MISSING] for traits in shown} == {frozenset(words)}


def of_world(template: Witness, claim: Claim, world: World, workload: Workload, seen: Observation) -> Witness:
    """The witness that ``seen`` is, of what was recorded of ``world``."""
    first, last = world.known
    return replace(template, claim=claim, work=workload, inodes=(first, last), statuses=({}, {}), found=seen)
