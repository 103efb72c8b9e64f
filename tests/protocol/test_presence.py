"""How much of each call a tree has, held against all ways in which the tree may have come about: slow, and plain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.judge.looked import AnsweredTrees
from bob.judge.reliance import Reliances, ReliedOn
from bob.observe.observation import Node, Presence
from bob.program.strace import SystemCall
from bob.protocol.contrast import Explanation, Reliance
from bob.protocol.effects import AT_FIRST, DirectoryEntry, Effects
from bob.protocol.presence import presence
from bob.protocol.protocol import protocol
from bob.protocol.unsynced import names_kept

ROOT = "/mnt"


def call(name: str, *arguments: str, result: int = 0, opened: str = "") -> SystemCall:
    return SystemCall(1, 0.0, name, arguments, result, opened)


def quoted(text: str) -> str:
    """As strace writes it."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in text.encode()) + '"'


def made_of(words: str) -> list[SystemCall]:
    """Calls in a few words: ``create a``, ``write a xy`` (from the first byte on), ``rename a b``, ``unlink a``."""
    calls: list[SystemCall] = []
    for one in words.split("; "):
        verb, *of = one.split()
        path, other = (f"{ROOT}/{name}" for name in (of * 2 or ["", ""])[:2])
        descriptor = f"3<{quoted(path)[1:-1]}>"
        if verb in ("create", "write"):
            calls.append(call("openat", "AT_FDCWD", quoted(path), "O_RDWR|O_CREAT", "0644", result=3, opened=path))
        if verb == "write":
            calls.append(call("pwrite64", descriptor, quoted(of[1]), str(len(of[1])), "0", result=len(of[1])))
        if verb == "sync":
            where = f"{ROOT}/{of[0]}".rstrip("/") if of else ""
            sync = call("fsync", f"4<{quoted(where)[1:-1]}>") if of else call("sync")
            opens = call("openat", "AT_FDCWD", quoted(where), "O_RDONLY", result=4, opened=where)
            calls += [opens, sync, call("close", f"4<{quoted(where)[1:-1]}>")] if of else [sync]
        if verb == "mkdir":
            calls.append(call("mkdir", quoted(path), "0755"))
        if verb in ("rename", "link"):
            calls.append(call(verb, quoted(path), quoted(other)))
        if verb in ("unlink", "rmdir"):
            calls.append(call(verb, quoted(path)))
        if verb in ("create", "write"):
            calls.append(call("close", descriptor))
    return calls


def tree(files: Mapping[str, bytes]) -> dict[str, Node]:
    """A tree of files, whose inodes bob does not know, and of directories: those end in a slash."""
    nodes = {
        path.rstrip("/"): Node("directory" if path.endswith("/") else "file", 0, 1, len(content), content, mode=0o644)
        for path, content in files.items()
    }
    return {"/": Node("directory"), **nodes}


def followed(words: str, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Effects:
    return protocol(made_of(words), ROOT, tree(before), tree(after))


def test_a_name_that_two_files_bear_of_which_one_is_not_followed() -> None:
    """SQLite removes its log, and makes it again; the first is mapped, so no call tells what is in it."""
    words = "write a old; unlink a; write a new"
    effects = followed(words, {}, {"/a": b"new"})
    effects.files[1].followed = False
    assert set(presence(effects, tree({"/a": b"new"})).values()) <= {Presence.FULL, Presence.UNDECIDED}
    first, removed, *later = (how for _call, how in sorted(presence(effects, tree({"/a": b"mapped"})).items()))
    assert (first, removed, set(later)) == (Presence.FULL, Presence.NONE, {Presence.NONE})


Shown = dict[DirectoryEntry, int]
"""At which place in its history each name is."""


def names_of(effects: Effects, shown: Shown) -> dict[str, int]:
    """The tree of names: by path the number of the file."""
    found, waiting = dict[str, int](), [(0, "")]
    while waiting:
        folder, above = waiting.pop()
        for entry, history in effects.entries.items():
            file = history[shown[entry]].value
            if entry.folder == folder and file is not None:
                found[f"{above}/{entry.name}"] = file
                waiting.append((file, f"{above}/{entry.name}"))
    return found


def ways(effects: Effects, files: Mapping[str, int], unmade: frozenset[int]) -> Iterator[Shown]:
    """All ways in which names may come to the tree with these ``files`` by their paths, no ``unmade`` call made."""
    for places in product(*(range(len(history)) for history in effects.entries.values())):
        shown = dict(zip(effects.entries, places, strict=True))
        later = any(effects.entries[entry][place].call in unmade for entry, place in shown.items())
        nowhere = any(place and not has_been(effects, shown, entry.folder) for entry, place in shown.items())
        if not later and not nowhere and names_of(effects, shown) == files:
            yield shown


def has_been(effects: Effects, shown: Shown, file: int) -> bool:
    """Whether a file has, or had, a name that has come so far."""
    return file == 0 or any(
        change.value == file and place <= shown[entry]
        for entry, history in effects.entries.items()
        for place, change in enumerate(history)
    )


def says(effects: Effects, shown: Shown) -> dict[int, set[bool]]:
    """Of each call whether each of its names has come that far."""
    found: dict[int, set[bool]] = {}
    for entry, history in effects.entries.items():
        for place, change in enumerate(history):
            if change.call != AT_FIRST:
                found.setdefault(change.call, set()).add(shown[entry] >= place)
    return found


def scripts(rng: Random) -> tuple[str, dict[str, int]]:
    """Calls on names, and the files that they leave, by their paths: each has a number of its own."""
    words, there, made = list[str](), dict[str, int](), 0
    names = ["a", "b", "c", "d/a"]
    for _ in range(rng.randint(1, 6)):
        verb, one, other = rng.choice(("create", "rename", "rename", "unlink", "mkdir")), *rng.sample(names, 2)
        free = "d" in there or not one.startswith("d/")
        if verb == "mkdir" and "d" not in there:
            made += 1
            there["d"] = made
            words.append("mkdir d")
        elif verb == "create" and one not in there and free:
            made += 1
            there[one] = made
            words.append(f"create {one}")
        elif verb == "rename" and one in there and ("d" in there or not other.startswith("d/")):
            there[other] = there.pop(one)
            words.append(f"rename {one} {other}")
        elif verb == "unlink" and one in there:
            del there[one]
            words.append(f"unlink {one}")
    return "; ".join(words), {f"/{path}": number for path, number in there.items()}


@pytest.mark.parametrize(
    ("words", "unmade", "files", "expected"),
    [
        ("write g xy; rename g h", 0, {}, "NONE NONE NONE"),
        ("write g xy; rename g h", 0, {"/g": b"xy"}, "FULL FULL NONE"),
        ("write g xy; rename g h", 0, {"/h": b"xy"}, "FULL FULL FULL"),
        ("write a xy; rename a b; rename b c", 0, {}, "NONE NONE NONE NONE"),
        ("write a xy; rename a b; rename b c", 0, {"/b": b""}, "FULL NONE FULL NONE"),
        ("create a; unlink a", 0, {}, "UNDECIDED UNDECIDED"),
        ("create a; unlink a", 1, {}, "NONE NONE"),
        ("create a; rename a b; unlink b", 0, {}, "UNDECIDED UNDECIDED UNDECIDED"),
        ("create a; rename a b; unlink b", 1, {}, "NONE NONE NONE"),
        ("write a xy; link a b; unlink a", 1, {}, "NONE NONE NONE NONE"),
        ("write a xy; link a b; unlink a", 0, {"/b": b"xy"}, "FULL FULL FULL FULL"),
        ("write a xy; link a b", 0, {"/b": b"xy"}, "PARTIAL FULL FULL"),
        ("mkdir d; write d/a xy; rename d/a d/b", 0, {}, "NONE NONE NONE NONE"),
        ("mkdir d; write d/a xy; rename d e", 0, {"/e/": b""}, "FULL NONE NONE FULL"),
        ("write a xy; write a zz; write a xy", 0, {"/a": b"xy"}, "FULL FULL UNDECIDED UNDECIDED"),
        ("write a xy; write a zz; write a xy", 2, {"/a": b"xy"}, "FULL FULL NONE NONE"),
        ("write a xy; write a zz; write a xy", 2, {"/a": b"zz"}, "FULL FULL FULL NONE"),
    ],
)
def test_a_call_is_not_there_where_its_other_half_is_not_or_it_had_not_begun(
    words: str, unmade: int, files: dict[str, bytes], expected: str
) -> None:
    """The last ``unmade`` of the calls that change something had not begun."""
    after = {"/d/": b""} if "mkdir d" in words else {}
    effects = followed(words, {}, after)
    effects.strange.clear()  # what is there in the end is no matter here
    for file in effects.files:
        file.followed = True
    calls = effects.changing
    told = presence(effects, tree(files), frozenset(calls[len(calls) - unmade :]))
    assert [effect.name for _call, effect in sorted(told.items())] == expected.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("create a; sync /; rename a b", "FULL PARTIAL"),
        ("create a; rename a b; sync /", "NONE NONE"),
        ("create a; sync a; rename a b", "NONE NONE"),
        ("mkdir d; sync /; create d/a; sync /d; rename d/a b", "NONE NONE NONE"),
        ("create a; sync; create b; rename a c", "FULL NONE PARTIAL"),
    ],
)
def test_a_name_that_was_durable_was_there_before_a_rename_took_it(words: str, expected: str) -> None:
    """Nothing is there: a rename that may be torn has lost the name that a sync had kept. A sync of the file alone
    may leave its name out, and what a sync says that a tree contradicts is not believed."""
    effects = followed(words.replace("sync /d", "sync d"), {}, {})
    effects.strange.clear()
    last = max(call for call, said in effects.words.items() if "sync" not in said)
    told = presence(effects, tree({}), kept=names_kept(effects, last))
    assert [effect.name for _call, effect in sorted(told.items())] == expected.split()
    assert names_kept(effects, None) == frozenset() == names_kept(effects, 0)


def drawn(rng: Random) -> tuple[Effects, frozenset[int]] | None:
    """Some calls on names, and those that have not begun; None where there are no calls."""
    words, after = scripts(rng)
    if not words:
        return None
    kinds = {path: "directory" if path == "/d" else "file" for path in after}
    nodes = {path: Node(kinds[path], 100 + number, mode=0o644) for path, number in after.items()}
    effects = protocol(made_of(words), ROOT, {"/": Node("directory", 1)}, {"/": Node("directory", 1), **nodes})
    for number, file in enumerate(effects.files[1:], start=1):
        file.inode = 100 + number  # as if all were known
    calls = calls_of(effects)
    return effects, frozenset(calls[rng.randint(1, len(calls)) :]) if rng.random() < 0.5 else frozenset()


def calls_of(effects: Effects) -> list[int]:
    return sorted({change.call for history in effects.entries.values() for change in history} - {AT_FIRST})


def some_shown(rng: Random, effects: Effects, unmade: frozenset[int]) -> Shown:
    """What a crash may leave: mostly the names of some whole calls."""
    cut, calls = rng.random() * 2, calls_of(effects)
    done = {AT_FIRST, *(call for call in calls[: int(cut * len(calls))] if rng.random() < 0.8)} - unmade
    is_whole = rng.random() < 0.8
    return {
        entry: max((place for place, change in enumerate(history) if change.call in done), default=0)
        if is_whole
        else rng.choice([place for place, change in enumerate(history) if change.call not in unmade])
        for entry, history in effects.entries.items()
    }


def is_possible(effects: Effects, shown: Shown) -> bool:
    """Whether no file has two names, and there are no names where no directory was made."""
    files = names_of(effects, shown)
    return len(set(files.values())) == len(files) and all(
        not place or has_been(effects, shown, entry.folder) for entry, place in shown.items()
    )


def nodes_of(effects: Effects, shown: Shown) -> dict[str, Node]:
    files = names_of(effects, shown).items()
    nodes = {path: Node(effects.files[number].kind, 100 + number, mode=0o644) for path, number in files}
    return {"/": Node("directory", 1), **nodes}


def judged(effects: Effects, shown: Shown, unmade: frozenset[int]) -> tuple[list[dict[int, set[bool]]], bool]:
    """Of all ways to a tree those that count: what they say of each call; and whether each call is whole in them."""
    every = [says(effects, way) for way in ways(effects, names_of(effects, shown), unmade)]
    whole = [way for way in every if all(len(said) == 1 for said in way.values())]
    return whole or every, bool(whole)


@settings(deadline=None, max_examples=600)
@given(st.integers(0, 2**32))
def test_what_is_said_of_names_is_said_by_the_ways_in_which_the_tree_may_have_come_about(seed: int) -> None:
    """Of all ways those count first in which each call has changed all of its names or none. Then what bob says of a
    call is so in one of them at least; and what is so in all of them, bob says."""
    rng = Random(seed)
    if (found := drawn(rng)) is None:
        return
    effects, unmade = found
    shown = some_shown(rng, effects, unmade)
    if not is_possible(effects, shown):
        return
    counting, are_whole = judged(effects, shown, unmade)
    told = presence(effects, nodes_of(effects, shown), unmade)
    for call in calls_of(effects):
        may = {frozenset(way[call]) for way in counting}
        match told[call]:
            case Presence.FULL:
                assert may & {frozenset({True}), frozenset({True, False})}
            case Presence.NONE:
                assert may & {frozenset({False}), frozenset({True, False})}
            case Presence.PARTIAL:
                assert not are_whole
            case _:
                assert len(may) > 1


@settings(deadline=None, max_examples=600)
@given(st.integers(0, 2**32))
def test_no_reason_names_a_call_that_the_refused_tree_contradicts(seed: int) -> None:
    """A call that must be durable, or first, is not wholly there in some way to the tree; one that is there too early
    has done something."""
    rng = Random(seed)
    if (found := drawn(rng)) is None:
        return
    effects, unmade = found
    shown = [one for _ in range(6) if is_possible(effects, one := some_shown(rng, effects, unmade))]
    trees = [nodes_of(effects, one) for one in shown]
    different = [place for place, one in enumerate(trees) if one not in trees[:place]]
    if len(different) < 2:
        return
    refused, *accepted = different
    window = AnsweredTrees(told=b"", accepted=accepted, tree=trees.__getitem__)
    calls = [call("x")] * (1 + max(calls_of(effects)))
    reliances = Reliances([window], calls, effects, unmade=lambda _place, _outcome: unmade)
    told: tuple[ReliedOn, ...] = reliances.relied_on([(0, refused)])
    assert not reliances.explaining.notes and len(told) == 1
    counting, _are_whole = judged(effects, shown[refused], unmade)
    [one] = told
    for number in one.explanation.missing:
        assert any(False in way[number] for way in counting)
    for number in one.explanation.there:
        assert any(True in way[number] for way in counting)
    assert one.explanation.reliance is not Reliance.UNCLEAR or one.explanation.missing == one.explanation.there == ()


def reason(effects: Effects, refused: dict[str, Node], *accepted: dict[str, Node]) -> Explanation:
    trees = [refused, *accepted]
    window = AnsweredTrees(told=b"", accepted=list(range(1, len(trees))), tree=trees.__getitem__)
    reliances = Reliances([window], made_of("create x; create x; create x"), effects)
    [told] = reliances.relied_on([(0, 0)])
    assert all(words in told.sentence for words in told.explanation.beside)
    assert not (told.kind and told.explanation.beside), "ALICE counts no reason that may be none"
    return told.explanation


def test_beside_what_no_call_tells_a_reason_says_so() -> None:
    """An ioctl changes /f. Where an accepted tree has it as the refused one has, it is not why."""
    words = "write g ab; write h cd"
    first, done = {"/f": b"old"}, {"/f": b"new", "/g": b"ab", "/h": b"cd"}
    effects = followed(words, first, done)
    refused, accepted = tree(first), tree(done)
    beside = ("the contents of /f (bytes 0 to 2)",)
    all_calls = effects.changing
    assert reason(effects, refused, accepted) == Explanation(Reliance.DURABLE, all_calls, (), beside)
    assert reason(effects, refused, accepted, tree({**done, "/f": b"old"})) == Explanation(Reliance.DURABLE, all_calls)
    same = tree({"/f": b"new"})
    assert reason(effects, refused, same) == Explanation(Reliance.UNCLEAR, beside=beside)
    assert reason(effects, refused, same, tree({"/f": b"old", "/g": b"ab"})).missing == all_calls[:2]


def test_where_no_tree_is_accepted_what_was_done_by_then_and_is_missing_is_told() -> None:
    """Of what came after the telling nothing had to be there; of one that is accepted it is there by the way."""
    effects = followed("write g ab; write h cd", {}, {"/g": b"ab", "/h": b"cd"})
    create, write, *later = effects.changing
    trees = [tree({"/g": b""}), tree({}), tree({"/g": b"ab", "/h": b"cd"})]
    for accepted, missing in (([], (write,)), ([2], (write,))):
        window = AnsweredTrees(told=b"ok", accepted=accepted, tree=trees.__getitem__)
        calls = made_of("write x x; write x x")
        reliances = Reliances([window], calls, effects, tellings={later[0] - 1: b"ok"})
        [told] = reliances.relied_on([(0, 0)])
        assert told.explanation.missing == missing
        assert told.explanation.reliance is (Reliance.DURABLE if accepted else Reliance.UNCLEAR)
        [told] = reliances.relied_on([(0, 1)])
        assert told.explanation.missing == (create, write)


def test_a_name_that_no_call_tells_of_blames_no_call() -> None:
    """Something renames /f.new to /f, and removes /f.old: the calls do not tell that, and have made /g."""
    before = {"/f.old": b"old"}
    effects = followed("write f.new ab; write g cd", before, {"/f": b"ab", "/g": b"cd"})
    assert presence(effects, tree({"/f": b"ab", "/g": b"cd"}))[effects.changing[0]] is not Presence.NONE
    refused, accepted = tree({**before, "/g": b"cd"}), tree({"/f": b"ab", "/g": b"cd"})
    said = reason(effects, refused, accepted)
    assert said == Explanation(Reliance.UNCLEAR, beside=("the name /f", "the name /f.old"))


def test_a_call_of_which_the_same_part_is_there_is_not_why() -> None:
    """The write of /g is torn in each tree, in the same way: what differs is /f alone."""
    effects = followed("write g ab", {"/f": b"old", "/g": b""}, {"/f": b"new", "/g": b"ab"})
    torn = tree({"/f": b"old", "/g": b"a"})
    beside = ("the contents of /f (bytes 0 to 2)",)
    assert reason(effects, torn, tree({"/f": b"new", "/g": b"a"})) == Explanation(Reliance.UNCLEAR, beside=beside)
    [write] = effects.changing
    other = reason(effects, torn, tree({"/f": b"old", "/g": b"\0b"}))
    assert other == Explanation(Reliance.WHOLE, (write,), (write,))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"xattrs": {"user.a": b"1"}}, "the extended attributes of /f"),
        ({"uid": 7, "gid": 0}, "the owner of /f"),
        ({"mode": 0o600}, "the mode of /f"),
        ({"flags": 16}, "the flags of /f"),
        ({"fault": "EIO"}, "that /f cannot be read"),
        ({"content": b"anew", "size": 4}, "the contents of /f (bytes 0 to 3)"),
    ],
)
def test_what_differs_and_no_call_tells_is_named(change: dict[str, Any], words: str) -> None:
    effects = followed("create g", {"/f": b"old!"}, {"/f": b"old!", "/g": b""})
    refused = tree({"/f": b"old!"})
    accepted = {**refused, "/f": replace(refused["/f"], **change)}
    said = reason(effects, refused, accepted)
    assert said.reliance is Reliance.UNCLEAR and [one.partition(" (")[0] for one in said.beside] == [
        words.partition(" (")[0]
    ]
    assert reason(effects, refused, {**refused, "/f.strange": Node("file")}).beside == ("the name /f.strange",)


def test_which_bytes_differ_is_said_of_the_contents_alone() -> None:
    effects = followed("write f ab", {"/f": b""}, {"/f": b"ab"})
    effects.files[1].followed = False
    refused = tree({"/f": b""})
    accepted = {**refused, "/f": replace(refused["/f"], flags=16, content=b"ab", size=2)}
    assert reason(effects, refused, accepted).beside == snapshot(
        ("the contents of /f (bytes 0 to 1)", "the flags of /f")
    )
