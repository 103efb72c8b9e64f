"""Workloads in Python: every sequence of choices, once; no workload lost where nothing says so; mistakes in a line."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Hashable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.claim.property.rules import questions
from bob.errors import UsageError
from bob.schema import encode
from bob.search.choices import MOST_SEQUENCES, Choose, Place, following, value_of
from bob.search.python_file import Choosing, PythonFile
from bob.search.space import Part, probes
from bob.search.spaces import Search, search_in, search_of_file
from bob.workload.language import GRAMMAR, parse, write_one
from bob.workload.operations import At, Operation, Workload
from bob.workload.python_calls import QUESTIONS, RefusedCall, SimulatedFileSystem, Stopped
from bob.workload.simulation import RefusedError, simulate
from tests.workload.test_language import OPERATIONS
from wording import line_with, text_with

Tree = list[tuple[str, Any]]
"""What is chosen at a place: for each option what is done, and what is chosen next (nothing: the end)."""
SETUP = "write /f 0 8192; write /g 0 8192"
LINES = ["append /f 100", "append /g 100", "write /n 0 100", "rename /f /n", "unlink /g", "create /m", "fsync /f",
         "fsync /g", "fsync /n", "sync", ""]  # fmt: skip
NAMES = ["f", "g", "m", "n"]
PROMISES = ["fsync-file.size", "fsync-file.entry", "sync.size", "sync.entry", "sync.names"]


def trees(lines: list[str], most: int = 3) -> st.SearchStrategy[Tree]:
    return st.recursive(
        st.just([]),
        lambda below: st.lists(st.tuples(st.sampled_from(lines), below), min_size=1, max_size=most),
        max_leaves=12,
    )


def paths(tree: Tree) -> list[list[int]]:
    """Every sequence of choices, by what the options are called: depth first, the first option first."""
    if not tree:
        return [[]]
    return [[number, *rest] for number, (_line, below) in enumerate(tree) for rest in paths(below)]


def program(tree: Tree, *more: str) -> str:
    """A file that goes through ``tree``: it does what it has chosen, and goes on where that leads."""
    return "\n".join(
        [
            *more,
            f"promises = {PROMISES!r}",
            f"TREE = {tree!r}",
            "def setup(fs):",
            f"    fs({SETUP!r})",
            "def workload(fs, choose):",
            "    at = TREE",
            "    while at:",
            "        line, at = choose(at)",
            "        fs(line)",
        ]
    )


def performed(tree: Tree) -> Iterator[tuple[str, ...]]:
    """By brute force: the operations of each sequence, up to the first that a file system refuses."""
    for path in paths(tree):
        done, at = [], tree
        for number in path:
            line, at = at[number]
            if line and not possible([*done, line]):
                break
            done += [line] if line else []
        yield tuple(done)


def workload(done: list[str] | tuple[str, ...]) -> Workload:
    return Workload("w", parse(SETUP), parse("; ".join(done)), at=At.END)


def possible(done: list[str]) -> bool:
    try:
        simulate(workload(done))
    except RefusedError:
        return False
    return True


def asking(tree: Tree) -> set[str]:
    """By brute force: what was done up to each operation, where something of it is promised."""
    space = Choosing("tree.py", program(tree))
    begun = {done[:count] for done in performed(tree) for count in range(1, len(done) + 1)}
    histories = {"; ".join(done): simulate(workload(done))[0] for done in begun}
    return {text for text, history in histories.items() if any(questions(one, history) for one in space.asked)}


def renamed(text: str, names: dict[str, str]) -> str:
    return re.sub(r"/(\w)\b", lambda found: "/" + names[found[1]], text)


RENAMINGS = [
    names
    for images in permutations(NAMES)
    for names in [dict(zip(NAMES, images, strict=True))]
    if sorted(renamed(SETUP, names).split("; ")) == sorted(SETUP.split("; "))
]


def texts(space: Choosing) -> list[str]:
    return [workload.name for workload in space.every(1)]


def mistake(text: str) -> str:
    """What is said of a file with a mistake: one line, and there is a hint."""
    with pytest.raises(UsageError) as caught:
        space = Choosing("my.py", text)
        assert space.asked
        list(space.every(1))
    assert "\n" not in caught.value.message and caught.value.hint
    return caught.value.message


# The choices


@settings(deadline=None)
@given(trees([""], 4))
def test_every_sequence_of_choices_is_run_once_depth_first(tree: Tree) -> None:
    found, again = [], ()
    while again is not None:
        choose, at = Choose(again, lambda: None), tree
        while at:
            _line, at = choose(at) if len(at) % 2 else at[choose(len(at))]
        assert choose.left is None
        found.append([place.taken for place in choose.places])
        again = following(choose.places)
    assert found == paths(tree)


def test_a_program_without_choices_is_one_sequence() -> None:
    space = Choosing("one.py", "def workload(fs, choose):\n    fs('create /a; sync')")
    assert texts(space) == ["create /a; sync"]
    assert space.notes == (snapshot("1 sequence of choices"),)


@settings(deadline=None, max_examples=60)
@given(trees(LINES))
def test_without_a_signature_only_what_differs_in_names_alone_is_left_out(tree: Tree) -> None:
    space = Choosing("tree.py", program(tree))
    found, left = texts(space), asking(tree)
    assert set(found) <= left
    for text in found:
        alike = {renamed(text, names) for names in RENAMINGS}
        assert text in left, "another one that is alike was found, too"
        left -= alike
    assert not left
    assert [one.count(";") for one in found] == sorted(one.count(";") for one in found)
    for one in Choosing("tree.py", program(tree)).every(1):
        assert (one.at, one.setup, one.finish.natural) == (At.END, parse(SETUP), True)


def test_a_name_is_the_same_wherever_it_stands() -> None:
    """The directory is renamed, and its files come with their names: they are not alike, as one is longer."""
    text = """
def setup(fs):
    fs("mkdir /d; write /d/a 0 8192; write /d/b 0 4096")
def workload(fs, choose):
    fs.rename("/d", "/e")
    fs.unlink(choose(["/e/a", "/e/b"]))
    fs.sync()
"""
    assert texts(Choosing("my.py", text)) == [f"rename /d /e; unlink /e/{name}; sync" for name in "ab"]
    alike = texts(Choosing("my.py", text.replace("4096", "8192")))
    assert alike == ["rename /d /e; unlink /e/a; sync"]
    longer = text.replace("4096", "8192").replace("/b", "/long")
    assert len(texts(Choosing("my.py", longer))) == 2, "a longer name takes more of a directory's block"


@settings(deadline=None, max_examples=40)
@given(trees(LINES), st.integers(0, 3), st.integers(1, 5))
def test_what_is_drawn_is_among_all_that_there_are(tree: Tree, seed: int, sample: int) -> None:
    space = Choosing("tree.py", program(tree))
    every = texts(space)
    drawn = [one.name for one in Part(sample=sample, seed=seed).of(space, 1)]
    again = [one.name for one in Part(sample=sample, seed=seed).of(Choosing("tree.py", program(tree)), 1)]
    assert drawn == again and len(drawn) <= sample
    classes = [frozenset(renamed(one, names) for names in RENAMINGS) for one in drawn]
    assert len(set(classes)) == len(drawn), "two are alike"
    assert all(any(one in every for one in alike) for alike in classes)
    parts = [{one.name for one in Part(number, 3).of(space, 1)} for number in (1, 2, 3)]
    assert sorted(name for part in parts for name in part) == sorted(every)


# Signatures


def state(done: tuple[str, ...]) -> Hashable:
    """By brute force: sizes by name when all was synced last, and what was done since."""
    synced = max((number for number, line in enumerate(done, start=1) if line == "sync"), default=0)
    step = simulate(workload(done))[0].steps[synced]
    return tuple(sorted((name, len(step.inodes[thing].content)) for name, thing in step.names.items())), done[synced:]


def states(file: PythonFile, seen: set[Hashable] | None) -> tuple[set[Hashable], int]:
    """What every run came through, and how many runs there were."""
    found: set[Hashable] = set()
    runs, again = 0, ()
    while again is not None:
        ran = file.run(again, seen=seen)
        done = tuple(map(write_one, ran.operations))
        found |= {state(done[:count]) for count in range(len(done) + 1)}
        runs, again = runs + 1, following(ran.places)
    return found, runs


@settings(deadline=None, max_examples=60)
@given(trees([*LINES, "sync", "sync"]), trees([*LINES, "sync"], 2))
def test_by_the_signature_tree_every_state_is_still_come_to(tree: Tree, other: Tree) -> None:
    """What an option leads to is put twice, below options that may make the same tree."""
    twice = [(line, below) for line in ("", "append /f 100", "sync") for below in [tree, other]]
    whole, runs = states(PythonFile("tree.py", program(twice)), None)
    pruned, fewer = states(PythonFile("tree.py", program(twice, 'signature = "tree"')), set())
    assert pruned == whole
    assert fewer <= runs


def test_by_the_signature_tree_synced_trees_that_are_alike_are_one() -> None:
    text = """
signature = "tree"
def round(fs, choose):
    fs(choose(["append /f 100", "write /f 0 100", "sync"]))
    fs(choose(["sync", "fsync /f"]))
def setup(fs):
    fs.write("/f", 0, 100)
def workload(fs, choose):
    for number in range(2):
        round(fs, choose)
"""
    whole = Choosing("my.py", text.replace("signature", "nothing"))
    pruned = Choosing("my.py", text)
    every, some = texts(whole), texts(pruned)
    assert set(some) < set(every)
    lost = "sync; sync; append /f 100; sync"
    assert lost in every and lost not in some, "once synced, an overwrite before is as if it had not been"
    assert "write /f 0 100; fsync /f; append /f 100; sync" in some, "an fsync is not a sync of all"
    assert text_with(whole.notes[0], 36) == snapshot("36 sequences of choices")
    assert pruned.notes[1] == snapshot("4 ended where an earlier one had the same signature")


@pytest.mark.parametrize("signature", ['signature = "tree"', "def signature(fs):\n    return fs.tree()"])
@pytest.mark.parametrize(("kept", "name"), [("name = {}", "name"), ("NAMES.append({})", "NAMES[0]")])
def test_what_was_chosen_before_anything_was_done_still_counts(signature: str, kept: str, name: str) -> None:
    """The tree is the same for both names when the length is chosen. What comes next is not."""
    text = f"""
NAMES = []
def workload(fs, choose):
    {kept.format('choose(["/a", "/bb"])')}
    fs.append({name}, choose([100, 4096]))
    fs.sync()
"""
    assert len(texts(Choosing("my.py", signature + text))) == 4


def test_a_loop_without_an_end_comes_to_one_where_the_file_says_what_is_the_same() -> None:
    text = """
def signature(fs):
    return fs.tree()
def workload(fs, choose):
    while True:
        fs("unlink /a" if fs.exists("/a") else choose(["create /a", "append /a 100"]))
        fs.sync()
        choose(1)
"""
    space = Choosing("my.py", text)
    assert texts(space) == [
        "create /a; sync",
        "append /a 100; sync",
        "create /a; sync; unlink /a; sync",
        "append /a 100; sync; unlink /a; sync",
    ]
    assert text_with(mistake(text.replace("fs.tree()", "len(fs.done())")), "my.py", 8) == snapshot(
        "my.py, line 8: a sequence has more than 1,000 choices"
    )


def test_where_a_variable_cannot_be_compared_nothing_is_left_out_and_that_is_told() -> None:
    text = """
from __future__ import annotations
import itertools
from dataclasses import dataclass
@dataclass
class Round:
    number: int
def signature(fs):
    return 0
def workload(fs, choose):
    counter = ITERATOR
    if choose(2):
        fs("create /a")
    choose(2)
    fs("sync")
"""
    space = Choosing("my.py", text.replace("ITERATOR", "iter([1])"))
    assert texts(space) == ["create /a; sync"]
    assert text_with(space.notes[0], 4) == snapshot("4 sequences of choices")
    assert text_with(space.notes[-1], "builtins.list_iterator") == snapshot(
        "signature was not used where a variable is a builtins.list_iterator: bob cannot compare it"
    )
    for known in ("Round(1)", "[{1: itertools, 'a': fs}, {choose}, lambda: 1]", "None"):
        space = Choosing("my.py", text.replace("ITERATOR", known))
        assert texts(space) == [], known
        assert text_with(space.notes[0], 3) == snapshot("3 sequences of choices")


def test_values_that_are_alike_are_equal_and_others_are_not() -> None:
    def made(number: int) -> Any:
        return lambda: number

    itself: list[Any] = []
    itself.append(itself)
    every = [
        None, 0, 1, 1.0, True, "1", b"1", (1,), [1], {1}, frozenset([1]), {1: 2}, {2: 1}, range(1), At.END, At.ANY,
        int, len, sys, made, made(1), made(2), Place(0, 1, None, None), Place(1, 2, None, None), itself,
    ]  # fmt: skip
    assert len({value_of(one) for one in every}) == len(every)
    assert value_of(made(1)) == value_of(made(1)) and value_of({1: [2]}) == value_of({1: [2]})
    first, second = object(), object()
    assert value_of([first, second], (first, second)) != value_of([second, first], (first, second))
    for unknown in (iter([]), object(), [].append):
        with pytest.raises(TypeError):
            value_of(unknown)


# What a file can do


@settings(deadline=None)
@given(OPERATIONS)
def test_each_operation_of_the_language_is_a_method(operation: Operation) -> None:
    setup = parse("mkdir /d; write /f 0 8192")
    fs = SimulatedFileSystem("my.py", setup)
    verb, *words = shlex.split(write_one(operation))
    is_in_bytes = verb in ("write", "append", "truncate", "fallocate", "sync_file_range")
    numbers = [int(word) if word.isdecimal() and is_in_bytes else word for word in words]
    try:
        getattr(fs, verb)(*numbers)
    except RefusedCall:
        with pytest.raises(RefusedError):
            simulate(Workload("w", setup, (operation,)))
        assert fs.performing.done == []
    else:
        assert fs.performing.done == [operation]


def test_no_operation_has_the_name_of_a_question() -> None:
    assert not {name for name in dir(SimulatedFileSystem("my.py")) if not name.startswith("_")} & set(GRAMMAR)
    assert set(QUESTIONS) <= set(dir(SimulatedFileSystem))


def test_what_the_file_system_can_be_asked() -> None:
    fs = SimulatedFileSystem("my.py", parse("mkdir /d; write /d/f 0 8192; symlink x /l"))
    fs("append /d/f 100; link /d/f /d/g; create /n; unlink /n")
    fs.chmod("/d/f", 0o640)
    fs.chmod("/d", "750")
    assert [fs.exists(path) for path in ("/", "/d/g", "/n", "/d/x")] == [True, True, False, False]
    assert [fs.kind(path) for path in ("/", "/d/g", "/l", "/n")] == ["directory", "file", "symlink", None]
    assert (fs.size("/d/g"), fs.names(), fs.names("/d")) == (8292, ["d", "l"], ["f", "g"])
    assert fs.tree() == {"/": None, "/d": None, "/d/f": 8292, "/d/g": 8292, "/l": None}
    assert fs.done() == [
        "append /d/f 100",
        "link /d/f /d/g",
        "create /n",
        "unlink /n",
        "chmod /d/f 640",
        "chmod /d 750",
    ]
    for wrong in (lambda: fs.size("/d"), lambda: fs.size("/n"), lambda: fs.names("/l")):
        with pytest.raises(RefusedCall):
            wrong()


def test_of_a_call_that_is_refused_nothing_is_done_and_the_file_may_go_on() -> None:
    text = """
def workload(fs, choose):
    try:
        fs.write("/new", 1, 512, "direct")
    except OSError as error:
        if fs.exists("/new"):
            raise AssertionError
    fs("create /a; sync")
    if choose(2):
        fs.create("/a")
    fs("create /b; sync")
"""
    space = Choosing("my.py", text)
    assert texts(space) == ["create /a; sync", "create /a; sync; create /b; sync"]
    assert space.notes == snapshot(
        (
            "2 sequences of choices",
            "1 ended at a call that a file system refuses; the first: my.py, line 10: create /a: /a exists already",
        )
    )


def test_a_sequence_that_asks_for_nothing_is_told() -> None:
    space = Choosing("my.py", "def workload(fs, choose):\n    fs('create /a')\n    if choose(2):\n        fs('sync')")
    assert texts(space) == ["create /a; sync"]
    assert text_with(space.notes[1], 1) == snapshot(
        "1 tested nothing: their calls promise nothing about the operations before"
    )


def test_the_file_says_what_is_promised() -> None:
    text = "def workload(fs, choose):\n    fs('mkdir /d; create /d/a; fsync /d/a; sync')"
    asked = {one.name for one in Choosing("my.py", text).asked}
    assert {"fsync-file.entry", "sync.parent", "msync.data", "sync.several"} <= asked
    space = Choosing("my.py", 'promises: list[str] = ["sync.parent"]\n' + text)
    assert [one.name for one in space.asked] == ["sync.parent"]
    [asking, beside] = probes(space, list(space.every(1)))
    assert (asking.property.name, beside.property.name) == ("sync.parent", "collateral")
    assert [one.name for one in asking.workloads] == ["mkdir /d; create /d/a; fsync /d/a; sync"]


# Mistakes

BODY = "def workload(fs, choose):\n    "
AGAIN = "my.py, line 3: two runs of the file differ: "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def workload(fs, choose:", snapshot("my.py, line 1: '(' was never closed")),
        ("x = 1\0", snapshot("my.py, line None: source code string cannot contain null bytes")),
        ("x = 1", snapshot("my.py: the function workload(fs, choose) is missing")),
        ("import no_such_thing", snapshot("my.py, line 1: ModuleNotFoundError: No module named 'no_such_thing'")),
        ("raise SystemExit(3)", snapshot("my.py, line 1: SystemExit: 3")),
        (
            "def workload(fs):\n    pass",
            snapshot("my.py: TypeError: workload() takes 1 positional argument but 2 were given"),
        ),
        (BODY + "choose(2)\n    raise KeyError('a\\nb')", snapshot("my.py, line 3: KeyError: 'a\\nb'")),
        (BODY + "raise ValueError('a\\nb')", snapshot("my.py, line 2: ValueError: a b")),
        (BODY + "raise ValueError", snapshot("my.py, line 2: ValueError")),
        (BODY + "return 1", snapshot("my.py: workload() must return nothing, and returned a value of type int")),
        (BODY + "yield 1", snapshot("my.py: workload() must return nothing, and returned a value of type generator")),
        (BODY + "fs.wriet('/a', 0, 1)", snapshot("my.py, line 2: unknown call fs.wriet")),
        (BODY + "fs.write('/a')", snapshot("my.py, line 2: 'write /a' has too many or too few words")),
        (
            BODY + "fs.write('4', 0, 1)",
            snapshot(
                "my.py, line 2: 'write 4 0 1': '4' is neither an absolute path such as /d/a nor a handle such as f"
            ),
        ),
        (BODY + "fs('wriet /a 0 1')", snapshot("my.py, line 2: unknown operation 'wriet' in 'wriet /a 0 1'")),
        (BODY + "fs.exists('a')", snapshot("my.py, line 2: 'a' is not an absolute path such as /d/a")),
        (BODY + "fs.size(3)", snapshot("my.py, line 2: 3 is not a path such as '/d/a'")),
        (
            BODY + "try:\n        fs.wriet()\n    except Exception: pass",
            snapshot("my.py, line 3: unknown call fs.wriet"),
        ),
        (BODY + "try:\n        fs.wriet()\n    except: pass", snapshot("my.py, line 3: unknown call fs.wriet")),
        (
            BODY + "try:\n        choose(0)\n    except: pass",
            snapshot("my.py, line 3: choose(0): at least one option is needed"),
        ),
        (BODY + "choose([])", snapshot("my.py, line 2: choose([]): at least one option is needed")),
        (BODY + "choose(-1)", snapshot("my.py, line 2: choose(-1): at least one option is needed")),
        (BODY + "choose({1, 2})", snapshot("my.py, line 2: choose() takes a number or a list, not a set")),
        (BODY + "choose('/a')", snapshot("my.py, line 2: choose() takes a number or a list, not a str")),
        (BODY + "choose(True)", snapshot("my.py, line 2: choose() takes a number or a list, not a bool")),
        (BODY + "while choose([True, False]): pass", snapshot("my.py, line 2: a sequence has more than 1,000 choices")),
        (
            BODY + "pass\ndef setup(fs):\n    fs('create /a; create /a')",
            snapshot("my.py, line 4: create /a: /a exists already"),
        ),
        (BODY + "pass\ndef setup(fs):\n    fs.wriet()", snapshot("my.py, line 4: unknown call fs.wriet")),
        (
            BODY + "pass\ndef setup(fs):\n    try:\n        fs.wriet()\n    except: pass",
            snapshot("my.py, line 5: unknown call fs.wriet"),
        ),
        (
            BODY + "pass\ndef setup(fs):\n    for n in range(129): fs.create(f'/{n}')",
            snapshot("my.py, in setup(fs): workload my.py has too many operations"),
        ),
        ("signature = 'names'\n" + BODY + "choose(2)", snapshot("my.py, line 3: invalid signature 'names'")),
        (
            BODY + "choose(2)\ndef signature(fs):\n    fs.create('/a')",
            snapshot("my.py: signature(fs) calls 'create /a'"),
        ),
        (
            BODY + "choose(2)\ndef signature(fs):\n    return fs.size('/a')",
            snapshot("my.py, line 4: fs.size('/a'): /a is not a file"),
        ),
        (
            BODY + "choose(2)\ndef signature(fs):\n    return object()",
            snapshot("my.py: signature(fs) returned a builtins.object"),
        ),
        ("promises = ['sync.sise']\n" + BODY + "pass", snapshot("my.py, line 1: unknown promise 'sync.sise'")),
        ("promises = list('ab')\n" + BODY + "pass", snapshot("my.py, line 1: promises must be a list of names")),
        ("promises = []\n" + BODY + "pass", snapshot("my.py, line 1: promises must be a list of names")),
    ],
)
def test_a_mistake_is_told_in_a_line(text: str, said: str) -> None:
    assert mistake(text) == said, mistake(text)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("choose(1 + NUMBER)", AGAIN + "before its first choice it had 3 options, and 2 in an earlier run"),
        ("choose([NUMBER, 0])", AGAIN + "before its first choice it had other options than in an"),
        (
            "fs.append('/f', NUMBER); choose(2)",
            AGAIN + "before its first choice it made other calls than in an earlier",
        ),
        (
            "NUMBER > 1 or choose(2)",
            "my.py: two runs of the file differ: before its first choice it ended, and in an earlier run it had 2 options",
        ),
    ],
)
def test_a_file_that_does_not_do_the_same_again_is_refused(
    monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    monkeypatch.setattr(sys, "runs_of_a_file", [], raising=False)
    text = "import sys\ndef workload(fs, choose):\n    " + line.replace("NUMBER", "len(sys.runs_of_a_file)")
    text = text.replace("    ", "    sys.runs_of_a_file.append(1); ", 1)
    assert mistake(text).startswith(said)


def test_a_tree_that_is_not_the_same_again_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "runs_of_a_file", [], raising=False)
    text = """
import sys
def setup(fs):
    sys.runs_of_a_file.append(1)
    fs.write("/f", 0, len(sys.runs_of_a_file))
def workload(fs, choose):
    choose(2)
"""
    assert text_with(mistake(text), "my.py") == snapshot("my.py: setup(fs) makes different trees in different runs")


def test_what_a_run_leaves_in_the_file_is_not_there_in_the_next_one() -> None:
    text = "names = []\n" + BODY + "names.append(1)\n    choose(len(names) + 1)\n    fs('create /a; sync')"
    space = Choosing("my.py", text)
    assert texts(space) == ["create /a; sync"] and space.notes == (snapshot("2 sequences of choices"),)


def test_a_mistake_has_the_choices_that_lead_to_it() -> None:
    with pytest.raises(UsageError) as caught:
        list(Choosing("my.py", BODY + "choose(2)\n    if choose(3) == 2:\n        raise ValueError").every(1))
    assert text_with(caught.value.hint, 0, 2) == snapshot("it was run with the choices 0, 2 (0 is the first option)")


def test_what_stops_a_run_is_no_exception() -> None:
    assert not issubclass(Stopped, Exception) and issubclass(RefusedCall, OSError)


# As a search


def test_a_search_keeps_the_text_of_the_file_and_runs_it_for_nothing_but_its_workloads(tmp_path: Path) -> None:
    file = tmp_path / "my.py"
    text = "promises = ['sync.entry']\ndef workload(fs, choose):\n    fs(choose(['create /é; sync', 'sync']))"
    file.write_text(text, encoding="utf-8")
    asked = search_of_file(file, Part(1, 2))
    file.unlink()
    again = search_in(encode(asked))
    assert again == asked and again.name == "my.py"
    assert [one.name for one in again.workloads(again.space())] == ["create '/é'; sync"]
    unrun = Search("my.py", "promises = ['sync.entry']\nraise SystemExit", is_python=True)
    assert [one.name for one in unrun.space().asked] == ["sync.entry"]


def test_a_mistake_is_told_when_the_search_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "my.py").write_text(BODY + "fs.wriet('/a')")
    with pytest.raises(UsageError) as refused:
        search_of_file(tmp_path / "my.py")
    assert text_with(str(refused.value), 2, "fs.wriet") == snapshot("my.py, line 2: unknown call fs.wriet")
    (tmp_path / "my.py").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"my\.py: 'utf-8' codec"):
        search_of_file(tmp_path / "my.py")
    with pytest.raises(UsageError) as refused:
        search_of_file(tmp_path / "none.py")
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot("TMP/none.py: No such file or directory")


def test_the_example_makes_what_the_page_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "search.md").read_text()
    [example] = re.findall(r"<!-- choices -->\n```python\n(.*?)```", page, flags=re.S)
    space = Choosing("log.py", example)
    made = texts(space)
    assert text_with(space.notes[0], 36) == snapshot("36 sequences of choices") and line_with(
        page, 36, len(made)
    ) == snapshot(
        "call on `fs` adds an operation, and `fs` knows how the tree would be without a crash. Here 36 sequences make 39"
    )
    assert any("rename /log /old; create /log; fsync /log" in name for name in made)
    for question in QUESTIONS:
        assert f"fs.{question}(" in page


@pytest.mark.parametrize(
    "body",
    [
        "    choose(10**9)",
        "    for _ in range(9):\n        choose(10**5)",
        "    if choose(2):\n        choose([0] * 10**6)",
        "    choose(10**30)",
    ],
)
def test_choices_without_an_end_in_sight_are_refused_at_once(body: str) -> None:
    file = Choosing("far.py", f"def workload(fs, choose):\n{body}\n")
    with pytest.raises(UsageError, match=r"far\.py.*(choices|options)"):
        list(file.every(1))


def test_so_many_sequences_are_tried_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever of them is known from the beginning: here each place has two options."""
    text = "def workload(fs, choose):\n    for _ in range(4):\n        fs.append('/f', 10 + choose(2))\n    fs.sync()\n"
    text += "def setup(fs):\n    fs.create('/f')\n"
    monkeypatch.setattr("bob.search.choices.MOST_SEQUENCES", 16)
    every = list(Choosing("few.py", text).every(1))
    assert len(every) == 16
    monkeypatch.setattr("bob.search.choices.MOST_SEQUENCES", 15)
    with pytest.raises(UsageError) as refused:
        list(Choosing("few.py", text).every(1))
    assert text_with(str(refused.value), 16) == snapshot(
        "few.py: there are at least 16 sequences of choices, and bob tries at most 15"
    )


def test_some_of_very_many_sequences_are_drawn() -> None:
    text = "def workload(fs, choose):\n    fs.write('/n', choose(10**9), 10)\n    fs.sync()\n"
    assert next(Choosing("far.py", text).drawn(1, seed=1)).operations
    assert MOST_SEQUENCES < 10**9
