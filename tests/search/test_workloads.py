"""The workloads within bounds, held against all sequences of operations, which are grouped by hand."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.claim.property.rules import questions
from bob.search.bounds import Bounds, load, read
from bob.search.workloads import probes, workloads
from bob.workload.history import RefusedError, simulate
from bob.workload.language import parse, write_one
from bob.workload.operations import At, Finish, Workload

NAMES = ["/a/x", "/a/y", "/b/x", "/b/y", "/z"]
SETUPS = [
    ["mkdir /a", "mkdir /b"],
    ["mkdir /a", "mkdir /b", "write /a/x 0 100"],
    ["mkdir /a", "mkdir /b", "write /a/x 0 100", "write /b/x 0 100"],
    ["mkdir /a", "mkdir /b", "write /a/x 0 100", "write /b/y 0 100", "create /z"],
]
OPERATIONS = [
    "create FILE", "append FILE 100", "unlink FILE", "rename FILE FILE", "link FILE FILE", "truncate FILE 50",
]  # fmt: skip


def bounds(setup: list[str], files: list[str], operations: list[str], between: list[str]) -> Bounds:
    document: dict[str, Any] = {
        "about": "made up",
        "setup": setup,
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
    return bounds(draw(st.sampled_from(SETUPS)), files, operations, draw(st.sampled_from([[], ["sync"]])))


def asks(made: Bounds, text: str) -> bool:
    """Whether a workload can be done, and something is promised of it."""
    natural = Finish("natural", natural=True)
    try:
        history = simulate(Workload("w", made.setup, parse(text), natural, At.END))[0]
    except RefusedError:
        return False
    return any(questions(one, history) for one in made.promises)


def every(made: Bounds, length: int) -> set[str]:
    """All texts, whether alike or not."""
    menu, calls = [*map(write_one, made.operations)], [*map(write_one, made.calls)]
    pauses = ["", *map(write_one, made.between)]
    found = set()
    for chosen in product(menu, repeat=length):
        for waits in product(pauses, repeat=length - 1):
            for call in calls:
                words = [chosen[0]]
                for pause, operation in zip(waits, chosen[1:], strict=True):
                    words += [pause, operation] if pause else [operation]
                found.add("; ".join([*words, call]))
    return {text for text in found if asks(made, text)}


def renamings(made: Bounds) -> list[dict[str, str]]:
    """By brute force over all names at once: those that move each name with the directory above it, and leave the tree
    and the bounds as they are."""
    texts = "; ".join(map(write_one, (*made.setup, *made.operations, *made.calls)))
    paths = {word.strip(";") for word in texts.split() if word.startswith("/")}
    names = sorted({*paths, *(path.rpartition("/")[0] for path in paths)} - {""})
    parts = [sorted(map(write_one, part)) for part in (made.setup, made.operations, made.calls, made.between)]
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


@settings(deadline=None, max_examples=60)
@given(made_up(), st.sampled_from([1, 1, 2]))
def test_of_all_that_are_alike_just_one_is_there(made: Bounds, length: int) -> None:
    found = [workload.name for workload in workloads(made, length)]
    assert len(found) == len(set(found))
    left = every(made, length)
    assert set(found) <= left
    known = renamings(made)
    for text in found:
        alike = {changed(text, renaming) for renaming in known}
        assert alike <= left, "another one that is alike was found, too"
        left -= alike
    assert not left


def test_the_crash_comes_after_the_last_call_has_returned() -> None:
    for workload in workloads(load("small"), 1):
        assert workload.at is At.END and workload.finish.natural and len(workload.operations) == 2


@pytest.mark.parametrize("length", [1, 2])
def test_each_promise_has_the_workloads_that_ask_for_it_the_shorter_ones_first(length: int) -> None:
    made = bounds(SETUPS[2], ["/a/x", "/a/y", "/b/y"], OPERATIONS, ["sync"])
    found = probes(made, length)
    assert found[-1].property.name == "collateral"
    every_one = found[-1].workloads
    assert len({workload.name for workload in every_one}) == len(every_one)
    for probe in found[:-1]:
        asking = [one for one in every_one if questions(probe.property, simulate(one)[0])]
        assert list(probe.workloads) == asking != []
        sizes = [len(workload.operations) for workload in probe.workloads]
        assert min(sizes) == sizes[0] == 2
    lengths = [sum(not write_one(one).startswith(("sync", "fsync")) for one in each.operations) for each in every_one]
    assert lengths == sorted(lengths) and lengths[-1] == length
