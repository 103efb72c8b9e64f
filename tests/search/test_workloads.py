"""The workloads within bounds, held against all sequences of operations, which are grouped by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import cycle, islice, permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.catalogue.probe_files import shipped_probes
from bob.claim.property.declaration import PropertyDocument
from bob.claim.property.rules import questions
from bob.schema import decode
from bob.search.bounds import Bounds, BoundsDeclaration, load, shipped_bounds
from bob.search.space import MOST_PASSED, Part, is_asked, possible, probes, still_asking
from bob.search.within import Within
from bob.workload import operations as ops
from bob.workload.lacking import LACKABLE
from bob.workload.language import parse, write_one
from bob.workload.operations import At, Finish, Workload
from bob.workload.simulation import RefusedError, simulate

NAMES = ["/a/x", "/a/y", "/b/x", "/b/y", "/z"]
SETUPS = [
    ["mkdir /a", "mkdir /b"],
    ["mkdir /a", "mkdir /b", "write /a/x 0 100"],
    ["mkdir /a", "mkdir /b", "write /a/x 0 100", "write /b/x 0 100"],
    ["mkdir /a", "mkdir /b", "write /a/x 0 100", "write /b/y 0 100", "create /z"],
]
OPERATIONS = [
    "create FILE", "append FILE 100", "unlink FILE", "rename FILE FILE", "link FILE FILE", "truncate FILE 50",
    "create FILE; append FILE 100",
]  # fmt: skip
OPEN = ["append f 100", "unlink FILE; append f 100", "link f FILE"]


def read(name: str, document: Any) -> Bounds:
    return decode(BoundsDeclaration, document).bounds(name)


def bounds(
    setup: list[str], files: list[str], operations: list[str], between: list[str], begin: Sequence[str] = ()
) -> Bounds:
    document: dict[str, Any] = {
        "about": "made up",
        "setup": setup,
        "begin": list(begin),
        "files": files,
        "directories": ["/a", "/b"],
        "operations": operations,
        "calls": ["fsync FILE", "fsync DIRECTORY", "sync"],
        "between": between,
        "promises": ["fsync-file.size", "fsync-file.entry", "fsync-directory.new-entries", "sync.names", "sync.size"],
    }
    return read("made-up", document)


@st.composite
def made_up(draw: st.DrawFn) -> Bounds:
    files = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    operations = draw(st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=3, unique=True))
    if len(files) == 1:  # then there is none of those with two names
        operations = [*operations, "create FILE"]
    setup, begin = draw(st.sampled_from(SETUPS)), ()
    if "write /a/x 0 100" in setup and draw(st.booleans()):
        begin = ("open /a/x as f",)
        operations = [*operations, draw(st.sampled_from(OPEN))]
    return bounds(setup, files, operations, draw(st.sampled_from([[], ["sync"]])), begin)


def asks(made: Bounds, text: str) -> bool:
    """Whether a workload can be done, and something is promised of it."""
    natural = Finish("natural", natural=True)
    try:
        history = simulate(Workload("w", made.setup, parse(text), natural, At.END))[0]
    except RefusedError:
        return False
    return any(questions(one, history) for one in Within(made).asked)


def all_texts(made: Bounds, length: int) -> set[str]:
    """All texts, whether alike or not."""
    menu, calls = ["; ".join(map(write_one, entry)) for entry in made.operations], [*map(write_one, made.calls)]
    pauses = ["", *map(write_one, made.between)]
    found = set()
    for chosen in product(menu, repeat=length):
        for waits in product(pauses, repeat=length - 1):
            for call in calls:
                words = [*map(write_one, made.begin), chosen[0]]
                for pause, operation in zip(waits, chosen[1:], strict=True):
                    words += [pause, operation] if pause else [operation]
                found.add("; ".join([*words, call]))
    return {text for text in found if asks(made, text)}


def renamings(made: Bounds) -> list[dict[str, str]]:
    """By brute force over all names at once: those that move each name with the directory above it, and leave the tree
    and the bounds as they are."""
    menu = ["; ".join(map(write_one, entry)) for entry in made.operations]
    texts = "; ".join([*map(write_one, (*made.setup, *made.calls)), *menu])
    paths = {word.strip(";") for word in texts.split() if word.startswith("/")}
    names = sorted({*paths, *(path.rpartition("/")[0] for path in paths)} - {""})
    parts = [sorted(map(write_one, part)) for part in (made.setup, made.begin, made.calls, made.between)]
    parts.append(sorted(menu))
    found = []
    for images in permutations(names):
        renaming = dict(zip(names, images, strict=True))
        above = {path: path.rpartition("/")[0] for path in names}
        if all(renaming.get(above[path], "") == above[new] for path, new in renaming.items()) and parts == [
            sorted(changed(text, renaming) for text in part) for part in parts
        ]:
            found.append(renaming)
    return found


def changed(text: str, renaming: dict[str, str]) -> str:
    return "; ".join(" ".join(renaming.get(word, word) for word in one.split()) for one in text.split("; "))


@settings(deadline=None, max_examples=30)
@given(made_up(), st.sampled_from([1, 1, 2]))
def test_of_all_that_are_alike_just_one_is_there(made: Bounds, length: int) -> None:
    found = [workload.name for workload in Within(made).every(length)]
    assert len(found) == len(set(found))
    left = all_texts(made, length)
    assert set(found) <= left
    known = renamings(made)
    for text in found:
        alike = {changed(text, renaming) for renaming in known}
        assert alike <= left, "another one that is alike was found, too"
        left -= alike
    assert not left


@pytest.mark.parametrize(
    ("name", "count"), [("small", 83), ("every", 339), ("odd", 130), ("shapes", 188), ("full", 58)]
)
def test_what_is_shipped_makes_workloads(name: str, count: int) -> None:
    """A tree of many names that no workload speaks of, as in odd, costs nothing."""
    assert set(shipped_bounds()) == {"small", "every", "odd", "full", "shapes"}
    assert len([*Within(load(name)).every(1)]) == count


def test_names_that_no_workload_speaks_of_may_be_others_in_another_directory() -> None:
    """/a/x and /b/y are made alike, so what is done in /a is what is done in /b: hypothesis found it."""
    made = read(
        "crossed",
        {
            "about": "two directories with the same in them by other names",
            "setup": ["mkdir /a", "mkdir /b", "write /a/x 0 100", "write /b/y 0 100"],
            "files": ["/a/y", "/b/x"],
            "directories": [],
            "operations": ["create FILE"],
            "calls": ["fsync FILE"],
            "promises": ["fsync-file.entry"],
        },
    )
    assert len([*Within(made).every(1)]) == 1


@pytest.mark.parametrize(("name", "count"), [("y", 1), ("y" * 200, 2)])
def test_a_name_of_another_length_is_tried_too(name: str, count: int) -> None:
    """How long names are decides how much of a directory they fill, and how a file system stores them."""
    made = read(
        "long",
        {
            "about": "names of some length",
            "setup": ["mkdir /a"],
            "files": ["/a/x", f"/a/{name}"],
            "directories": [],
            "operations": ["create FILE"],
            "calls": ["fsync FILE"],
            "promises": ["fsync-file.entry"],
        },
    )
    assert len([*Within(made).every(1)]) == count


def test_names_in_a_directory_that_moves_are_not_exchanged_in_it_alone() -> None:
    """/d/a and /d/b differ, so after the rename /e/a and /e/b do."""
    made = read(
        "moved",
        {
            "about": "a directory that is moved",
            "setup": ["mkdir /d", "write /d/a 0 8192", "write /d/b 0 100"],
            "files": ["/e/a", "/e/b"],
            "directories": ["/d"],
            "operations": ["rename DIRECTORY /e", "unlink FILE"],
            "calls": ["sync"],
            "promises": ["sync.names"],
        },
    )
    found = [workload.name for workload in Within(made).every(2)]
    assert found == ["rename /d /e; unlink /e/a; sync", "rename /d /e; unlink /e/b; sync"]


def test_the_crash_comes_after_the_last_call_has_returned() -> None:
    small = load("small")
    for workload in Within(small).every(1):
        assert workload.at is At.END and workload.finish.natural and len(workload.operations) == 2


@pytest.mark.parametrize("length", [1, 2])
def test_each_promise_has_the_workloads_that_ask_for_it_the_shorter_ones_first(length: int) -> None:
    space = Within(bounds(SETUPS[2], ["/a/x", "/a/y", "/b/y"], OPERATIONS[:-1], ["sync"]))
    found = probes(space, [*Part().of(space, length)])
    assert found[-1].property.name == "collateral"
    every_one = found[-1].workloads
    assert len({workload.name for workload in every_one}) == len(every_one)
    for probe in found[:-1]:
        asking = [one for one in every_one if questions(probe.property, simulate(one)[0])]
        assert list(probe.workloads) == asking != []
        sizes = [len(workload.operations) for workload in probe.workloads]
        assert min(sizes) == sizes[0]
        assert sizes[0] == 2 or probe.property.several, "what is on a new file takes its making, too"
    lengths = [sum(not write_one(one).startswith(("sync", "fsync")) for one in each.operations) for each in every_one]
    assert lengths == sorted(lengths) and lengths[-1] == length


@settings(deadline=None, max_examples=15)
@given(made_up(), st.sampled_from([1, 1, 2]), st.integers(1, 3), st.integers(0, 3))
def test_shards_together_are_the_whole(made: Bounds, length: int, shards: int, seed: int) -> None:
    space = Within(made)
    whole = [workload for number in range(1, length + 1) for workload in space.every(number)]
    parts = [[*Part(shard, shards).of(space, length)] for shard in range(1, shards + 1)]
    assert sorted(one.name for part in parts for one in part) == sorted(one.name for one in whole)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    some = [Part(shard, shards, sample=3, seed=seed).of(space, length) for shard in range(1, shards + 1)]
    drawn_ones = [one.name for part in some for one in part]
    assert len(set(drawn_ones)) == len(drawn_ones)
    assert set(drawn_ones) <= {one.name for one in space.every(length)}


def test_what_is_drawn_is_drawn_again_by_the_same_seed_and_each_is_new() -> None:
    small = load("small")
    first, again, other = (
        [workload.title for workload in Part(sample=40, seed=seed).of(Within(small), 3)] for seed in (7, 7, 8)
    )
    assert first == again != other
    assert len(set(first)) == len(first) == 40


def test_drawing_ends_where_there_are_no_more() -> None:
    made = bounds(SETUPS[1], ["/a/x"], ["append FILE 100"], [])
    assert sorted(one.name for one in Within(made).drawn(1, 1)) == [
        *("append /a/x 100; fsync /a/x", "append /a/x 100; sync")
    ]


@pytest.mark.parametrize("name", ["single-block-overwrite", "directory-op", "overwrite-any"])
def test_workloads_that_ask_for_a_property(name: str) -> None:
    [shipped] = shipped_probes((name,))
    prop, shapes = shipped.property, load("shapes")
    length, space = 2 if name == "overwrite-any" else 1, Within(shapes, (prop,))
    probe, beside = probes(space, [*Part(sample=30).of(space, length)])
    assert probe.property == prop and beside.property.name == "collateral"
    assert 0 < len(probe.workloads) <= 30
    for workload in probe.workloads:
        assert workload.at is At.ANY and questions(prop, simulate(workload)[0])
    finishes = {
        workload.finish.name for workload in Within(shapes, (shipped_probes(("directory-op",))[0].property,)).every(1)
    }
    assert {"natural", "sync", "fsync /e/new", "fsync /d"} <= finishes


@pytest.mark.parametrize("lacks", [("setxattr",), ("link", "symlink"), ("link", "symlink", "setxattr")])
def test_where_a_file_system_lacks_operations_workloads_go_without_them_and_each_promise_is_asked(
    lacks: tuple[str, ...],
) -> None:
    space = Within(load("small"))
    every = [*space.every(1)]
    skipped = Counter[str]()
    kept = [*possible(every, space, lacks, skipped)]
    assert [*possible(every, space, ())] == every
    for word in lacks:
        having = [one for one in every if any(map(LACKABLE[word], one.operations))]
        assert len(having) <= skipped[word] < len(every), (
            "a workload that only begins with such a thing goes on without"
        )
    found = probes(space, kept)
    names = {probe.property.name for probe in found}
    assert names < {probe.property.name for probe in probes(space, every)} or "setxattr" not in lacks
    assert ("sync.attributes" in names) == ("setxattr" not in lacks)
    assert "sync.names" in names
    verbs = {
        word.split()[0]
        for probe in found
        for one in probe.workloads
        for word in map(write_one, (*one.setup, *one.operations))
    }
    assert not verbs & {*lacks, "removexattr"} or "setxattr" not in lacks
    for probe in found:
        assert all(questions(probe.property, simulate(one)[0]) for one in probe.workloads)
    assert len({(one.operations, one.finish.name) for one in kept}) == len(kept)


def test_operations_of_several_changes_are_asked_for_where_all_of_it_is_promised() -> None:
    """A write across the end of a file, and one that makes its file."""
    both = {"promises": ["fsync-file.size", "fsync-file.data", "fsync-file.entry", "sync.size"]}
    document: dict[str, Any] = {
        "about": "made up",
        "setup": ["write /f 0 100"],
        "files": ["/f", "/n"],
        "operations": ["write /f 50 100", "append FILE 100"],
        "calls": ["fsync FILE", "sync"],
    }
    space = Within(read("made-up", {**document, **both}))
    [several] = [one for one in space.asked if one.several]
    assert several.name == "fsync-file.several", "of sync one thing is promised only"
    asking = [one.name for one in space.every(1) if is_asked([several], one)]
    assert asking == ["write /f 50 100; fsync /f", "append /n 100; fsync /n"]
    less = Within(read("made-up", {**document, "promises": ["fsync-file.size"]}))
    assert [one.name for one in less.every(1)] == ["append /f 100; fsync /f"]
    assert PropertyDocument.of(several).declared == several
    no_data = Within(read("made-up", {**document, "promises": ["fsync-file.size", "fsync-file.entry"]}))
    [several] = [one for one in no_data.asked if one.several]
    assert [one.name for one in no_data.every(1) if is_asked([several], one)] == ["append /n 100; fsync /n"]


def test_the_kernel_writes_when_it_wants_to_after_half_of_what_is_drawn() -> None:
    [probe] = shipped_probes(("append-any",))
    drawn = [*Part(sample=100).of(Within(load("shapes"), (probe.property,)), 2)]
    natural = [one.finish.name for one in drawn if one.finish.natural]
    assert 30 <= len(natural) <= 70 and {"natural", "natural 2.5", "natural 4.5"} == {*natural}


def test_each_sort_of_call_ends_as_many_of_the_workloads_that_are_drawn() -> None:
    """Where an operation gives a name: of everything, of the directory that got it, of a file or the other one."""
    [probe] = shipped_probes(("append-any",))
    drawn = [*Part(sample=300).of(Within(load("shapes"), (probe.property,)), 2)]
    ends: Counter[str] = Counter()
    for one in drawn:
        got = {new.new.rpartition("/")[0] for new in one.operations if isinstance(new, ops.Rename | ops.Link)}
        if not one.finish.natural and got:
            [call] = one.finish.operations
            ends["all" if isinstance(call, ops.Sync) else "got" if call in map(ops.Fsync, got) else "other"] += 1
    assert all(ends.total() / 6 < many < ends.total() / 2 for many in ends.values()) and len(ends) == 3


def test_a_file_that_may_be_freed_is_the_last_one_that_shapes_writes() -> None:
    """Free space lies behind it, so its blocks are the first to be used again."""
    made = load("shapes")
    last = [one.path for one in made.setup if isinstance(one, ops.Write)][-1]
    assert last not in {one.old for one in made.setup if isinstance(one, ops.Link)}
    assert {(ops.Unlink(last),), (ops.Rename("/d/f", last),)} <= {*made.operations}


def test_what_is_drawn_asks_for_what_is_not_broken_yet() -> None:
    appended, renamed = (probe.property for probe in shipped_probes(("append-any", "append-rename-any")))
    space = Within(load("shapes"), (appended, renamed))
    drawn = Part(sample=100).of(space, 3)
    for workload in islice(still_asking(drawn, (renamed,)), 3):
        assert questions(renamed, simulate(workload)[0])
    assert next(drawn, None) is not None  # no more was drawn than was needed
    assert [*still_asking([workload] * (MOST_PASSED + 1), ())] == []
    # A rare one has its turn as often as a frequent one; one that none asks for costs the others nothing.
    [nobody] = (probe.property for probe in shipped_probes(("single-sector-overwrite",)))
    only_renames = [one for one in islice(Part().of(space, 3, is_drawn=True), 300) if not is_asked([nobody], one)]
    turns = [*islice(still_asking(cycle(only_renames), (appended, nobody, renamed)), 20)]
    assert sum(is_asked([renamed], one) for one in turns) >= 10
    endless = still_asking(cycle([workload]), ())
    assert next(endless, None) is None
