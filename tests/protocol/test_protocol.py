"""What calls change, held against a real directory in which they are made."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import stat
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from pathlib import Path
from random import Random
from socket import AF_UNIX, socket

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.agent.inside.mounts import ROOT as MOUNTED
from bob.agent.inside.stores import StoreFilter
from bob.apm.builtin import builtin
from bob.apm.counting import count
from bob.apm.micro import workings
from bob.apm.model_graph import graph_under
from bob.apm.model_states import CrashStage, ModelStates
from bob.judge.looked import AnsweredTrees
from bob.judge.reliance import Reliances
from bob.observe.observation import Node, Presence
from bob.program.program import Program
from bob.program.strace import SystemCall, parse
from bob.program.transcript import Transcript
from bob.protocol.contrast import Explanation, Presences, Reliance, explain, folded, groups, nearer
from bob.protocol.diagram import MOST_ROWS, Need, Protocol, diagram, fold, need_of, steps_of
from bob.protocol.diagram import DiagramStep as Shown
from bob.protocol.diagram import StepKind as Kinds
from bob.protocol.effects import Deed, Effects, StoredBytes, TracedFile, Version
from bob.protocol.follow import follow
from bob.protocol.kinds import TYPES, kind_of, place_of, type_of
from bob.protocol.presence import cleared, known_presence, parts_of_calls, presence
from bob.protocol.protocol import protocol, without
from bob.protocol.replay import ReplayedProgram, replayed, unlike
from bob.protocol.signs import is_elsewhere_as_at_first
from bob.run.program_protocol import flags_of, protocol_of, without_logs
from bob.schema import decode, encode
from bob.workload import operations as ops
from bob.workload.history import FileKind, HistoryStep
from wording import text_with

NAMES = ("/a", "/b", "/d/a", "/d/c")
PLACES = ("O_RDWR", "O_APPEND", "F_SETFL", "RWF_APPEND")
"""How a write that has an offset may have to ignore it: pwrite(2), BUGS."""
RWF_APPEND = 0x10  # include/uapi/linux/fs.h


def escaped(data: bytes) -> str:
    return '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"'


def described(number: int, path: str) -> str:
    return f"{number}<{escaped(path.encode())[1:-1]}>"


def tree_in(root: Path) -> dict[str, Node]:
    """What is there, asked of the kernel."""
    found = {}
    for path in [root, *sorted(root.rglob("*"))]:
        status = path.lstat()
        kind = {stat.S_IFDIR: "directory", stat.S_IFREG: "file"}.get(stat.S_IFMT(status.st_mode), "other")
        content = path.read_bytes() if kind == "file" else b""
        name = "/" + str(path.relative_to(root)) if path != root else "/"
        mode = stat.S_IMODE(status.st_mode)
        found[name] = Node(kind, status.st_ino, status.st_nlink, len(content), content, mode=mode)
    return found


@dataclass
class Performed:
    """Calls that were made below ``root``, as strace would tell them, and what was there before and after each."""

    root: Path
    calls: list[SystemCall] = field(default_factory=list)
    trees: list[dict[str, Node]] = field(default_factory=list)

    def start(self) -> None:
        self.trees.append(tree_in(self.root))

    def call(self, name: str, arguments: tuple[str, ...], result: int = 0, opened: str = "") -> None:
        self.calls.append(SystemCall(1, 0.0, name, arguments, result, opened))
        self.trees.append(tree_in(self.root))

    def at(self, path: str) -> str:
        return f"{self.root}{path}"

    def write(self, path: str, data: bytes, flags: str, offset: int = 0) -> None:
        """open, perhaps lseek, write, close."""
        bits = {"O_TRUNC": os.O_TRUNC, "O_APPEND": os.O_APPEND, "O_RDWR": 0}[flags]
        if os.path.isdir(self.at(path)):
            return
        number = os.open(self.at(path), os.O_RDWR | os.O_CREAT | bits, 0o644)
        name = escaped(self.at(path).encode())
        self.call("openat", ("AT_FDCWD", name, f"O_RDWR|O_CREAT|{flags}", "0644"), number, self.at(path))
        if offset and flags != "O_APPEND":
            os.lseek(number, offset, os.SEEK_SET)
            self.call("lseek", (described(number, self.at(path)), str(offset), "SEEK_SET"), offset)
        half = len(data) // 2
        for piece in (data[:half], data[half:]):
            done = os.write(number, piece)
            arguments = (described(number, self.at(path)), escaped(piece), str(len(piece)))
            self.call("write", arguments, done)
        os.close(number)

    def pwrite(self, path: str, data: bytes, offset: int, flags: str = "O_RDWR") -> None:
        """In one piece; to the end of a file that is opened, or was set, to append, whatever the offset is."""
        if not os.path.isfile(self.at(path)):
            return
        opened_so = "O_RDWR|O_APPEND" if flags == "O_APPEND" else "O_RDWR"
        number = os.open(self.at(path), os.O_RDWR | (os.O_APPEND if flags == "O_APPEND" else 0))
        self.call("openat", ("AT_FDCWD", escaped(self.at(path).encode()), opened_so), number, self.at(path))
        there = described(number, self.at(path))
        if flags == "F_SETFL":
            fcntl.fcntl(number, fcntl.F_SETFL, os.O_APPEND)
            self.call("fcntl", (there, "F_SETFL", "O_RDONLY|O_APPEND"))
        if flags == "RWF_APPEND":
            os.pwritev(number, [data], offset, RWF_APPEND)
            vector = f"[{{iov_base={escaped(data)}, iov_len={len(data)}}}]"
            self.call("pwritev2", (there, vector, "1", str(offset), "RWF_APPEND"), len(data))
        else:
            os.pwrite(number, data, offset)
            self.call("pwrite64", (there, escaped(data), str(len(data)), str(offset)), len(data))
        os.close(number)

    def copy(self, name: str, source: str, path: str, begin: int, length: int) -> None:
        """Within the kernel: from an offset that is given, to where the other file stands."""
        if source == path or not os.path.isfile(self.at(source)) or os.path.isdir(self.at(path)):
            return
        read = os.open(self.at(source), os.O_RDONLY)
        self.call("openat", ("AT_FDCWD", escaped(self.at(source).encode()), "O_RDONLY"), read, self.at(source))
        into, target = os.open(self.at(path), os.O_RDWR | os.O_CREAT, 0o644), escaped(self.at(path).encode())
        self.call("openat", ("AT_FDCWD", target, "O_RDWR|O_CREAT", "0644"), into, self.at(path))
        out_of, to = described(read, self.at(source)), described(into, self.at(path))
        for _half in range(2):
            if name == "sendfile":
                done = os.sendfile(into, read, begin, length)
                arguments = (to, out_of, f"[{begin}] => [{begin + done}]", str(length))
            else:
                try:
                    done = os.copy_file_range(read, into, length, begin)
                except OSError:  # overlapping ranges of one file: EINVAL
                    break
                arguments = (out_of, f"[{begin}]", to, "NULL", str(length), "0")
            self.call(name, arguments, done)
        os.close(read)
        os.close(into)

    def names(self, name: str, work: Callable[..., None], *paths: str) -> None:
        try:
            work(*map(self.at, paths))
        except OSError:
            return
        self.call(name, tuple(escaped(self.at(path).encode()) for path in paths))

    def truncate(self, path: str, size: int) -> None:
        if os.path.isfile(self.at(path)):
            os.truncate(self.at(path), size)
            self.call("truncate", (escaped(self.at(path).encode()), str(size)))

    def chmod(self, path: str, mode: int) -> None:
        if os.path.isfile(self.at(path)):
            os.chmod(self.at(path), mode)
            self.call("chmod", (escaped(self.at(path).encode()), f"0{mode:o}"))


paths = st.sampled_from(NAMES)
datas = st.binary(min_size=2, max_size=6).flatmap(lambda seed: st.sampled_from([seed, seed * 900]))
steps = st.one_of(
    st.tuples(st.just("write"), paths, datas, st.sampled_from(["O_TRUNC", "O_APPEND", "O_RDWR"]), st.integers(0, 9000)),
    st.tuples(st.just("pwrite"), paths, datas, st.integers(0, 9000), st.sampled_from(PLACES)),
    st.tuples(
        st.just("copy"),
        st.sampled_from(["copy_file_range", "sendfile"]),
        paths,
        paths,
        st.integers(0, 5000),
        st.integers(1, 6000),
    ),
    st.tuples(st.just("rename"), paths, paths),
    st.tuples(st.just("link"), paths, paths),
    st.tuples(st.just("unlink"), paths),
    st.tuples(st.just("truncate"), paths, st.integers(0, 6000)),
    st.tuples(st.just("chmod"), paths, st.sampled_from([0o600, 0o640, 0o100640])),
)


def perform(root: Path, script: list[tuple[object, ...]]) -> Performed:
    (root / "d").mkdir()
    (root / "a").write_bytes(b"first" * 1000)
    done = Performed(root)
    done.start()
    for name, *arguments in script:
        if name in ("rename", "link", "unlink"):
            done.names(str(name), getattr(os, str(name)), *map(str, arguments))
        else:
            getattr(done, str(name))(*arguments)
    return done


def performed(script: list[tuple[object, ...]]) -> Performed:
    """In a folder of its own, which is gone then, with the permissions that a program of the guest gives."""
    old = os.umask(0o022)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return perform(Path(folder), script)
    finally:
        os.umask(old)


def made(done: Performed) -> Effects:
    return protocol(done.calls, str(done.root), done.trees[0], done.trees[-1])


def copies_onto_itself(effects: Effects) -> bool:
    return any("overlapping range of itself" in phrase for phrase in effects.untold)


@settings(deadline=None, max_examples=200)
@given(st.lists(steps, max_size=12))
@example(
    [
        ("link", "/a", "/d/a"),
        ("write", "/a", b"\0\0", "O_APPEND", 0),
        ("copy", "sendfile", "/a", "/d/a", 0, 5003),
        ("pwrite", "/a", b"later", 0),
    ]
)
def test_after_each_call_nothing_before_it_is_missing_and_nothing_after_it_is_there(
    script: list[tuple[object, ...]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        done = perform(Path(folder), script)
        effects = made(done)
        assert copies_onto_itself(effects) or (not effects.untold and all(file.followed for file in effects.files))
        for made_so_far, tree in enumerate(done.trees):
            for call, effect in presence(effects, tree).items():
                wrong = Presence.NONE if call < made_so_far else Presence.FULL
                assert effect not in (wrong, Presence.PARTIAL), (made_so_far, done.calls[call], effect)
            later = range(made_so_far, len(done.calls))
            for call, effect in presence(effects, tree, later).items():
                wrong = {Presence.NONE, Presence.PARTIAL} if call < made_so_far else set(Presence) - {Presence.NONE}
                assert effect not in wrong, (made_so_far, done.calls[call], effect)


@pytest.mark.parametrize(("begin", "followed"), [(1000, False), (4000, False), (0, True)])
def test_a_copy_of_a_file_onto_what_it_reads_is_not_followed(tmp_path: Path, begin: int, followed: bool) -> None:
    """sendfile may then read what it has written: here each call puts 4500 bytes behind the 5000 that are there."""
    done = perform(tmp_path, [("link", "/a", "/b")])
    path, end = done.at("/a"), os.path.getsize(done.at("/a"))
    number = os.open(path, os.O_RDWR)
    done.call("openat", ("AT_FDCWD", escaped(path.encode()), "O_RDWR"), number, path)
    os.lseek(number, end, os.SEEK_SET)
    done.call("lseek", (described(number, path), str(end), "SEEK_SET"), end)
    made_of = os.sendfile(number, number, begin, 4500)
    there = described(number, path)
    done.call("sendfile", (there, there, f"[{begin}] => [{begin + made_of}]", "4500"), made_of)
    os.close(number)
    effects = made(done)
    assert all(file.followed for file in effects.files) is followed
    assert bool(effects.untold) is not followed


@pytest.mark.parametrize("flags", PLACES)
def test_a_write_at_an_offset_appends_where_the_file_is_open_to_append(tmp_path: Path, flags: str) -> None:
    """pwrite(2): "on Linux, if a file is opened with O_APPEND, pwrite() appends, regardless of the offset"."""
    done = perform(tmp_path, [("pwrite", "/a", b"xy", 3, flags)])
    effects = made(done)
    [write] = effects.changing
    where = "overwrite 2 bytes at 3" if flags == "O_RDWR" else "append 2 bytes at 5000"
    assert effects.words[write] == f"{where} of /a"
    assert presence(effects, done.trees[-1])[write] is Presence.FULL


def test_what_is_unambiguous_is_told(tmp_path: Path) -> None:
    done = perform(tmp_path, [("write", "/b", b"bb" * 3000, "O_TRUNC", 0), ("rename", "/b", "/a"), ("unlink", "/a")])
    effects = made(done)
    rename = next(number for number, call in enumerate(done.calls) if call.name == "rename")
    assert presence(effects, done.trees[rename])[rename] is Presence.NONE
    assert presence(effects, done.trees[rename + 1])[rename] is Presence.FULL
    assert effects.words[rename] == "rename /b to /a"


def test_a_write_of_which_one_block_is_there_is_partly_there(tmp_path: Path) -> None:
    done = perform(tmp_path, [("pwrite", "/a", b"x" * 8192, 0)])
    effects = made(done)
    [write] = effects.changing
    half = dict(done.trees[-1])
    half["/a"] = Node("file", half["/a"].inode, 1, 8192, b"x" * 4096 + bytes(4096), mode=half["/a"].mode)
    assert presence(effects, half)[write] is Presence.PARTIAL
    torn = dict(done.trees[0])
    torn["/a"] = Node("file", half["/a"].inode, 1, 5000, b"x" * 512 + (b"first" * 1000)[512:], mode=half["/a"].mode)
    assert presence(effects, torn)[write] is Presence.PARTIAL


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(2, 5000), min_size=1, max_size=4), st.data())
def test_of_appends_those_up_to_where_the_file_ends_are_there_and_those_behind_are_missing(
    lengths: list[int], data: st.DataObject
) -> None:
    done = performed([("pwrite", "/a", bytes([65 + at]) * length, 0, "O_APPEND") for at, length in enumerate(lengths)])
    effects = made(done)
    sizes = [5000, *(5000 + sum(lengths[: count + 1]) for count in range(len(lengths)))]
    size = data.draw(st.integers(sizes[0], sizes[-1]) | st.sampled_from(sizes))
    whole = done.trees[-1]["/a"]
    tree = {**done.trees[-1], "/a": replace(whole, size=size, content=whole.content[:size])}
    for begin, end, call in zip(sizes, sizes[1:], effects.changing, strict=False):
        says = Presence.FULL if end <= size else Presence.NONE if begin >= size else Presence.PARTIAL
        assert presence(effects, tree)[call] is says, (begin, end, size)


def test_a_file_that_has_the_inode_of_the_one_in_whose_place_it_is_is_told_by_its_content(tmp_path: Path) -> None:
    """ext4 gives the number of a file that was removed to the next one, as mv does when it copies."""
    done = perform(tmp_path, [("unlink", "/a"), ("write", "/a", b"new" * 2000, "O_TRUNC", 0)])

    def alike(tree: dict[str, Node]) -> dict[str, Node]:
        return {path: replace(node, inode=12) if node.kind == "file" else node for path, node in tree.items()}

    before, *_between, after = map(alike, done.trees)
    effects = protocol(done.calls, str(tmp_path), before, after)
    unlink, create, *writes = effects.changing
    assert set(presence(effects, before).values()) == {Presence.NONE}
    assert set(presence(effects, after).values()) == {Presence.FULL}
    empty = {**after, "/a": replace(after["/a"], size=0, content=b"")}
    says = presence(effects, empty)
    assert (says[unlink], says[create]) == (Presence.FULL, Presence.FULL)
    assert {says[write] for write in writes} == {Presence.NONE}


def test_what_no_call_tells_is_not_followed(tmp_path: Path) -> None:
    done = perform(tmp_path, [("pwrite", "/a", b"x" * 10, 0)])
    after = dict(done.trees[-1])
    after["/a"] = Node("file", after["/a"].inode, 1, 5000, b"y" * 5000, mode=after["/a"].mode)
    effects = protocol(done.calls, str(tmp_path), done.trees[0], after)
    assert effects.changing == ()


def test_a_write_far_in_a_long_file_is_partly_there_where_a_part_of_it_is() -> None:
    far, old, new = 5 * 2**30, b"o" * 4096, b"n" * 4096

    def tree(*pieces: bytes) -> dict[str, Node]:
        there = {far + at * 4096: piece for at, piece in enumerate(pieces)}
        return {"/": Node("directory"), "/f": Node("file", 7, 1, far + 8192, pieces=there)}

    effects = Effects.of_tree(tree(old, old))
    file = effects.leads("/f")
    assert file is not None
    effects.files[file].stored.append(Version(1, StoredBytes(far, far + 8192, new + new)))
    said = {pieces: presence(effects, tree(*pieces))[1] for pieces in ((old, old), (new, old), (new, new), (b"?" * 9,))}
    assert list(said.values()) == [Presence.NONE, Presence.PARTIAL, Presence.FULL, Presence.PARTIAL]
    node = tree(new, old)["/f"]
    assert is_elsewhere_as_at_first(effects, file, effects.files[file], node)
    foreign = replace(node, pieces={**(node.pieces or {}), far // 2: new})
    assert not is_elsewhere_as_at_first(effects, file, effects.files[file], foreign)
    with pytest.raises(ValueError) as refused:
        replayed("p", Effects.of_tree(tree(old)), tree(old), {})
    assert text_with(str(refused.value), "/f") == snapshot("/f is too long")


def test_flags_that_no_state_of_a_model_has_are_named() -> None:
    tree = {"/": Node("directory"), "/a": Node("file", flags=0x80010 | 0x80), "/b": Node("file", project=7)}
    assert flags_of({**tree, "/c": Node("file", flags=0x80000)}) == ["iA (/a)", "project 7 (/b)"]


def test_a_write_that_strace_cut_off_makes_its_file_one_that_is_not_followed(tmp_path: Path) -> None:
    done = perform(tmp_path, [("pwrite", "/a", b"x" * 10, 0)])
    cut = replace(done.calls[-1], arguments=(done.calls[-1].arguments[0], '"\\x78"...', "10", "0"))
    assert protocol([*done.calls[:-1], cut], str(tmp_path), done.trees[0], done.trees[-1]).changing == ()


M, P, T, U = Presence.NONE, Presence.PARTIAL, Presence.FULL, Presence.UNDECIDED


@pytest.mark.parametrize(
    ("refused", "accepted", "expected"),
    [
        ((M, T), [(M, M), (T, T)], Explanation(Reliance.ORDER, (0,), (1,))),
        ((P, M), [(M, M), (T, M)], Explanation(Reliance.WHOLE, (0,), (0,))),
        ((T, M), [(M, M), (T, T)], Explanation(Reliance.TOGETHER, (1,), (0,))),
        ((T, M), [(T, T)], Explanation(Reliance.DURABLE, (1,), ())),
        ((T, T), [(T, M)], Explanation(Reliance.NOT_YET, (), (1,))),
        ((T, M), [(T, M)], Explanation(Reliance.UNCLEAR)),
        ((T, P), [(T, P), (T, M)], Explanation(Reliance.WHOLE, (1,), (1,))),
        ((T, M), [(M, T)], Explanation(Reliance.UNCLEAR)),
        ((T, M), [], Explanation(Reliance.UNCLEAR)),
        ((M, U, T), [(T, M, T), (M, T, M)], Explanation(Reliance.ORDER, (0,), (2,))),
        ((M, T, M), [(M, M, M), (T, T, T), (T, T, M)], Explanation(Reliance.ORDER, (0,), (1,))),
    ],
)
def test_the_contrast(
    refused: tuple[Presence, ...], accepted: list[tuple[Presence, ...]], expected: Explanation
) -> None:
    assert explain(dict(enumerate(refused)), Presences(dict(enumerate(one)) for one in accepted)) == expected


@given(st.integers(0, 2**32))
def test_the_nearest_states_are_those_that_differ_in_the_fewest_calls(seed: int) -> None:
    rng = Random(seed)
    calls = rng.sample(range(20), rng.randint(0, 5))
    refused, *others = ({call: rng.choice([M, P, T, T, U]) for call in calls} for _ in range(rng.randint(1, 9)))
    known = [{call: rng.choice([M, P, T]) for call in (*calls, 99) if rng.random() < 0.8} for _ in others]
    for accepted in (others, [cleared(one, also) for one, also in zip(others, known, strict=True)]):
        alike, less, more = [], [], []
        for one in accepted:
            clear = [call for call in sorted(calls) if U not in (one[call], refused[call])]
            unsure = sum((one[call] is U) != (refused[call] is U) for call in calls)
            open_here = [call for call in sorted(calls) if refused[call] is U and one[call] is not U]
            lacking = tuple(call for call in clear if refused[call].value < one[call].value)
            beyond = tuple(call for call in clear if refused[call].value > one[call].value)
            may_lack = tuple(call for call in open_here if one[call] is not M)
            may_have = tuple(call for call in open_here if one[call] is not T)
            alike += [(unsure, ())] if not (lacking or beyond or open_here) else []
            less += [(len(lacking) + unsure, lacking or may_lack)] if not beyond and (lacking or may_lack) else []
            more += [(len(beyond) + unsure, beyond or may_have)] if not lacking and (beyond or may_have) else []
        fewest = [min(each)[1] if each else None for each in (alike, less, more)]
        table = Presences(others)
        if accepted is not others:
            table = table.cleared(Presences([{**dict.fromkeys((*calls, 99), U), **one} for one in known]))
        assert [one if one is None else one.calls for one in table.nearest(refused)] == fewest


@given(st.lists(st.tuples(st.sampled_from([True, True, False, None]), st.booleans()), max_size=9))
def test_a_group_is_what_lies_between_two_accepted_prefixes(drawn: list[tuple[bool | None, bool]]) -> None:
    """Operation k is call 10 k. A prefix is accepted, refused or not known; an operation changes something, or not."""
    accepted = [True, *(one for one, _changes in drawn)]
    changing = [10 * number for number, (_one, changes) in enumerate(drawn, start=1) if changes]
    expected = []
    for first in range(len(accepted)):
        for last in range(first + 2, len(accepted)):
            inside = [10 * number for number in range(first + 1, last + 1)]
            is_refused = all(one is False for one in accepted[first + 1 : last])
            is_of_calls = inside[0] in changing and inside[-1] in changing
            if accepted[first] and accepted[last] and is_refused and is_of_calls:
                expected.append(tuple(one for one in inside if one in changing))
    calls = [10 * number for number in range(1, len(accepted))]
    assert list(groups(accepted, calls, changing)) == expected


TOGETHER = Explanation(Reliance.TOGETHER, (2, 3), (1,))


@pytest.mark.parametrize(
    ("explanation", "refused", "expected"),
    [
        (Explanation(Reliance.TOGETHER, (3,), (1, 2)), (T, T, T, M, M), TOGETHER),
        (Explanation(Reliance.ORDER, (1,), (2,)), (T, M, T, M, M), TOGETHER),
        (Explanation(Reliance.WHOLE, (2,), (2,)), (T, T, P, M, M), TOGETHER),
        (Explanation(Reliance.ORDER, (0,), (1,)), (M, T, M, M, M), None),
        (Explanation(Reliance.ORDER, (1,), (4,)), (T, M, T, T, T), None),
        (Explanation(Reliance.WHOLE, (0,), (0,)), (P, M, M, M, M), None),
        (Explanation(Reliance.DURABLE, (3,)), (T, T, T, M, M), None),
        (Explanation(Reliance.UNCLEAR), (T, T, M, M, U), TOGETHER),
        (Explanation(Reliance.UNCLEAR), (T, T, P, M, M), None),
        (Explanation(Reliance.UNCLEAR), (T, T, M, T, M), None),
        (Explanation(Reliance.UNCLEAR), (T, M, M, M, M), None),
        (Explanation(Reliance.UNCLEAR), (T, T, T, T, M), None),
        (Explanation(Reliance.NOT_YET, (), (4,)), (T, T, M, M, T), None),
    ],
)
def test_a_member_of_a_group_is_accused_of_nothing_else(
    explanation: Explanation, refused: tuple[Presence, ...], expected: Explanation | None
) -> None:
    assert folded(explanation, dict(enumerate(refused)), [(1, 2, 3)]) == (expected or explanation)
    assert folded(explanation, dict(enumerate(refused)), []) == explanation


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=12))
def test_what_is_known_to_be_there_is_told_of_each_call(parts: list[tuple[int, bool]]) -> None:
    """Operations 2 and 3 are of one call."""
    calls = (5, 7, 7, 9)
    there = sum(1 << bit for bit, (_operation, is_there) in enumerate(parts) if is_there)
    found = known_presence(parts_of_calls([operation for operation, _is_there in parts], calls), there)
    of = {call: {is_there for operation, is_there in parts if calls[operation - 1] == call} for call in calls}
    says = {frozenset({True}): T, frozenset({False}): M, frozenset({True, False}): P}
    assert found == {call: says[frozenset(seen)] for call, seen in of.items() if seen}


def test_what_a_tree_does_not_tell_may_be_known() -> None:
    """Calls 0 and 1 make and remove a file, and call 2 makes it again: then a tree without it does not tell which."""
    refused, accepted = {0: T, 1: M, 2: M}, {0: U, 1: U, 2: U}
    assert explain(refused, Presences([accepted])) == Explanation(Reliance.UNCLEAR)
    known = cleared(accepted, {0: T, 1: T})
    assert known == {0: T, 1: T, 2: U}
    assert explain(cleared(refused, {0: M}), Presences([known])) == Explanation(Reliance.DURABLE, (1,))


def test_the_explanation_that_names_fewer_calls_is_taken() -> None:
    unclear, one = Explanation(Reliance.UNCLEAR), Explanation(Reliance.DURABLE, (1,))
    two, order = Explanation(Reliance.DURABLE, (1, 2)), Explanation(Reliance.ORDER, (1,), (2,))
    assert nearer(two, one) == nearer(one, two) == nearer(unclear, one) == nearer(one, unclear) == one
    assert (nearer(two, order), nearer(order, two)) == (two, order)
    assert nearer(unclear, unclear) == unclear


def test_what_belongs_together_is_told_once_whichever_part_of_it_a_tree_lacks(tmp_path: Path) -> None:
    """nano empties a file and writes it in two calls: a crash may leave nothing of it, or the first half."""
    done = perform(tmp_path, [("write", "/a", b"xy" * 100, "O_TRUNC", 0)])
    trees = dict(enumerate(done.trees[-4:]))
    asked = AnsweredTrees(told=b"", accepted=[0, 3], tree=trees.__getitem__)
    told = Reliances([asked], done.calls, made(done)).relied_on([(0, 1), (0, 2)])
    assert [(one.explanation.reliance, one.trees, len(one.calls)) for one in told] == [(Reliance.TOGETHER, 2, 3)]


def test_a_sentence_names_the_calls() -> None:
    words = {0: "append 4 bytes at 0 of /f", 1: "rename /f to /g"}
    said = Explanation(Reliance.ORDER, (0,), (1,)).sentence(words)
    assert text_with(said, 4, 0, "/f", "/g") == snapshot(
        "must be there first: ‘append 4 bytes at 0 of /f’; then ‘rename /f to /g’"
    )
    assert "2 more" in Explanation(Reliance.DURABLE, (0, 1, 2, 3, 4)).sentence(words)


def again(done: Performed, tellings: dict[int, bytes] | None = None) -> ReplayedProgram:
    return replayed("p", made(done), done.trees[0], tellings or {})


def shown(replay: ReplayedProgram, step: HistoryStep) -> dict[str, tuple[str, bytes, int, int]]:
    """What a step of a history says, in the form of :func:`asked_of`."""
    things = replay.history.things
    return {
        path: (things[thing].kind.value, step.inodes[thing].content, step.inodes[thing].mode, step.inodes[thing].links)
        for path, thing in step.names.items()
        if path != "/"
    }


def asked_of(tree: dict[str, Node]) -> dict[str, tuple[str, bytes, int, int]]:
    """What the kernel says: kind, content, mode, and of a file how many names it has."""
    return {
        path: (node.kind, node.content, node.mode or 0, node.links if node.kind == FileKind.FILE else 1)
        for path, node in tree.items()
        if path != "/"
    }


@settings(deadline=None, max_examples=200)
@given(st.lists(steps, max_size=12))
def test_the_history_of_a_program_is_what_the_kernel_shows_after_each_of_its_calls(
    script: list[tuple[object, ...]],
) -> None:
    done = performed(script)
    replay = again(done)
    assume(not copies_onto_itself(replay.effects))  # such a program is refused
    assert not replay.effects.untold
    assert shown(replay, replay.history.steps[0]) == asked_of(done.trees[0])
    for number, call in enumerate(replay.calls, start=1):
        assert shown(replay, replay.history.steps[number]) == asked_of(done.trees[call + 1]), done.calls[call]
    assert shown(replay, replay.history.steps[-1]) == asked_of(done.trees[-1])
    assert unlike(replay.history, done.trees[-1]) == ()


@settings(deadline=None, max_examples=200)
@given(st.lists(steps, max_size=12), st.sets(paths))
@example([("write", "/b", b"log", "O_TRUNC", 0), ("write", "/a", b"data", "O_TRUNC", 0)], {"/b"})
@example([("rename", "/a", "/b"), ("write", "/a", b"data", "O_TRUNC", 0)], {"/b"})
def test_logs_stay_as_they_were_and_all_else_is_as_the_kernel_shows(
    script: list[tuple[object, ...]], logs: set[str]
) -> None:
    done = performed(script)
    effects = made(done)
    assume(not copies_onto_itself(effects))
    program = Program("p", "", (), logs=tuple(path[1:] for path in logs))
    has_both = was_both(done, logs)
    try:
        left, count = without(effects, program.is_log)
    except ValueError as error:
        assert has_both
        assert str(error).startswith("a file to leave out also has the path /")
        return
    assert not has_both
    replay = replayed("p", left, done.trees[0], {})
    assert len(replay.calls) + count == len(again(done).calls)
    clean = without_logs(program, done.trees[0], done.trees[-1])
    assert unlike(replay.history, clean) == ()
    for number, call in enumerate(replay.calls, start=1):
        for path, node in asked_of(done.trees[call + 1]).items():
            if path not in logs:
                assert shown(replay, replay.history.steps[number])[path] == node
    for path in logs:
        assert (path in clean) == (path in done.trees[0])
        if path in clean:  # with a number that no file of the program has
            assert replace(clean[path], inode=-clean[path].inode) == done.trees[0][path]


def was_both(done: Performed, logs: set[str]) -> bool:
    """By the kernel's inodes: whether a file that was there under the name of a log had another name, at any time.

    A path is another file from when it was made anew; the calls of these scripts leave no inode for another file to
    have, unless it was freed: so a file is told by where the tree before had it, too.
    """
    groups: list[set[str]] = []
    here: dict[int, int] = {}
    for tree in done.trees:
        now = {}
        for path, node in tree.items():
            if node.kind == FileKind.FILE:
                if node.inode not in now:
                    if node.inode in here:
                        now[node.inode] = here[node.inode]
                    else:
                        groups.append(set())
                        now[node.inode] = len(groups) - 1
                groups[now[node.inode]].add(path)
        here = now
    return any(group & logs and group - logs for group in groups)


def test_what_was_told_is_a_point_in_order(tmp_path: Path) -> None:
    done = perform(tmp_path, [])
    for told in (b"a", b"b"):
        done.call("write", (described(1, "pipe:[7]"), escaped(told), "1"), 1)
        done.truncate("/a", 3 if told == b"a" else 2)
    replay = again(done, Transcript(b"ab", tuple(done.calls), 7, (), None).tellings)
    first, second = ops.Acknowledge("a"), ops.Acknowledge("b")
    assert replay.workload.operations == (first, ops.Truncate("/a", 3), second, ops.Truncate("/a", 2))
    assert tuple(replay.outputs) == (b"", b"a", b"a", b"ab", b"ab")
    assert replay.calls == (0, 1, 2, 3)


def opened(done: Performed, path: str, flags: str, number: int) -> None:
    name = escaped(done.at(path).encode())
    done.call("openat", ("AT_FDCWD", name, flags, "0600"), number, done.at(path))


def test_a_file_that_has_lost_its_name_is_written_to_and_synced_by_a_handle(tmp_path: Path) -> None:
    done = perform(tmp_path, [])
    opened(done, "/a", "O_RDWR|O_DSYNC", 3)
    os.unlink(done.at("/a"))
    done.call("unlink", (escaped(done.at("/a").encode()),))
    gone = f"3<{escaped(done.at('/a').encode())[1:-1]}>(deleted)"
    done.call("pwrite64", (gone, escaped(b"xy"), "2", "1"), 2)
    done.call("fdatasync", (gone,))
    replay = again(done)
    unlink, write, sync = replay.workload.operations
    assert unlink == ops.Unlink("/a")
    assert isinstance(write, ops.Write) and write.how is ops.How.DSYNC
    assert isinstance(sync, ops.Fsync) and sync.data_only and sync.path == write.path
    last = replay.history.steps[-1]
    assert last.inodes[last.thing(write.path)].content[:3] == b"fxy" and not last.inodes[last.thing(write.path)].links


def test_what_asks_for_a_part_of_a_file_is_told_to_models(tmp_path: Path) -> None:
    """A clause that holds as long as no call does so may not be held against this program."""
    for number, (flags, asking) in enumerate(
        (
            ("O_RDWR|O_APPEND|O_DIRECT", ()),
            ("O_RDWR|O_APPEND", (("sync_file_range", "0", "1", "SYNC_FILE_RANGE_WRITE"),)),
            ("O_RDWR|O_APPEND", ()),
        )
    ):
        root = tmp_path / str(number)
        root.mkdir()
        done = perform(root, [])
        opened(done, "/a", flags, 3)
        file = described(3, done.at("/a"))
        with open(done.at("/a"), "ab") as appended:
            appended.write(b"xy")
        done.call("write", (file, escaped(b"xy"), "2"), 2)
        for name, *arguments in asking:
            done.call(name, (file, *arguments))
        taken = workings(again(done).history)
        (appended_to,) = taken.grown.values()
        assert appended_to.is_asked_in_part is (bool(asking) or "O_DIRECT" in flags), (flags, asking)


def test_a_file_without_a_name_gets_one(tmp_path: Path) -> None:
    done = perform(tmp_path, [])
    opened(done, "/d", "O_RDWR|O_TMPFILE", 3)
    done.call("write", ("3<" + escaped(f"{tmp_path}/d/#12".encode())[1:-1] + ">(deleted)", escaped(b"xy"), "2"), 2)
    (tmp_path / "d" / "new").write_bytes(b"xy")
    link = (
        "AT_FDCWD",
        escaped(b"/proc/self/fd/3"),
        "AT_FDCWD",
        escaped(done.at("/d/new").encode()),
        "AT_SYMLINK_FOLLOW",
    )
    done.call("linkat", link)
    replay = again(done)
    assert not replay.effects.untold
    assert "#12" not in str(replay.effects.words)
    assert [type(one) for one in replay.workload.operations] == [ops.Unnamed, ops.Write, ops.Link]
    assert unlike(replay.history, done.trees[-1]) == ()


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("mmap", ("NULL", "10", "PROT_READ|PROT_WRITE", "MAP_SHARED", "FD", "0"), "mmap of /a"),
        ("copy_file_range", ("4<>", "NULL", "FD", "NULL", "10", "0"), "copy_file_range to /a"),
        ("sendfile", ("FD", "4<>", "NULL", "10"), "sendfile to /a"),
        ("splice", ("4<>", "NULL", "FD", "NULL", "10", "0"), "splice of /a"),
        ("ioctl", ("FD", "BTRFS_IOC_CLONE or FICLONE", "4"), "ioctl of /a"),
        ("fallocate", ("FD", "FALLOC_FL_COLLAPSE_RANGE", "0", "4096"), "fallocate (FALLOC_FL_COLLAPSE_RANGE) of /a"),
        ("write", ("FD", '"\\x78"...', "100"), "write of much to /a"),
    ],
)
def test_a_call_that_cannot_be_translated_is_named(
    tmp_path: Path, name: str, arguments: tuple[str, ...], said: str
) -> None:
    done = perform(tmp_path, [])
    opened(done, "/a", "O_RDWR", 3)
    place = described(3, done.at("/a"))
    done.call(name, tuple(place if one == "FD" else one for one in arguments), 100)
    assert made(done).untold == [said]


def test_what_no_call_tells_is_seen_at_the_clean_end(tmp_path: Path) -> None:
    done = perform(tmp_path, [("write", "/b", b"bb", "O_TRUNC", 0)])
    after = {
        **done.trees[-1],
        "/b": replace(done.trees[-1]["/b"], content=b"bx"),
        "/n": Node("other", target="10000 0"),
    }
    assert unlike(again(done).history, after) == ("/b", "/n")


def test_owners_are_followed_and_times_are_named(tmp_path: Path) -> None:
    done = perform(tmp_path, [])
    opened(done, "/a", "O_RDWR", 3)
    done.call("fchown", (described(3, done.at("/a")), "12", "-1"))
    done.call("utimensat", (described(3, done.at("/a")), "NULL", "NULL", "0"))
    done.call("setxattr", (escaped(done.at("/a").encode()), escaped(b"user.a"), escaped(b"x"), "1", "0"))
    replay = again(done)
    step = replay.history.steps[-1]
    assert step.inodes[step.names["/a"]].owner == (12, 0)
    assert replay.effects.left_out == ["utimensat of /a", "setxattr of /a"]
    assert not replay.effects.untold


@pytest.mark.parametrize(
    ("explanation", "kind"),
    [
        (Explanation(Reliance.ORDER, (1,), (3,)), "ordering: safe rename"),
        (Explanation(Reliance.ORDER, (0,), (5,)), snapshot("ordering: safe file flush")),
        (Explanation(Reliance.ORDER, (3,), (5,)), "ordering: other"),
        (Explanation(Reliance.WHOLE, (1,), (1,)), snapshot("atomicity of an append")),
        (Explanation(Reliance.WHOLE, (4,), (4,)), snapshot("atomicity of an overwrite")),
        (Explanation(Reliance.WHOLE, (3,), (3,)), snapshot("atomicity of a rename or unlink")),
        (Explanation(Reliance.TOGETHER, (3,), (1,)), "atomicity across calls"),
        (Explanation(Reliance.DURABLE, (0,)), snapshot("durability: safe file flush")),
        (Explanation(Reliance.DURABLE, (3,)), "durability: other"),
        (Explanation(Reliance.UNCLEAR), ""),
    ],
)
def test_what_alice_calls_it(tmp_path: Path, explanation: Explanation, kind: str) -> None:
    """create /b, append to it, fsync it, rename it over /a; overwrite that, and append once more."""
    done = perform(tmp_path, [])
    opened(done, "/b", "O_RDWR|O_CREAT", 3)
    (tmp_path / "b").write_bytes(b"xy")
    done.call("write", (described(3, done.at("/b")), escaped(b"xy"), "2"), 2)
    done.call("fsync", (described(3, done.at("/b")),))
    done.names("rename", os.rename, "/b", "/a")
    for data, offset in ((b"z", 0), (b"zz", 5)):
        done.call("pwrite64", (described(3, done.at("/a")), escaped(data), str(len(data)), str(offset)), len(data))
    effects = protocol(done.calls, str(tmp_path), done.trees[0], done.trees[-1])
    assert [deed.call for deed in effects.deeds if isinstance(deed, Deed)] == [0, 1, 2, 3, 4, 5]
    assert kind_of(explanation, effects) == kind


def test_an_fsync_after_the_telling_is_none_that_was_to_keep_the_name(tmp_path: Path) -> None:
    done = perform(tmp_path, [])
    (tmp_path / "b").touch()
    opened(done, "/b", "O_RDWR|O_CREAT", 3)
    done.call("write", ("1<>", escaped(b"ok"), "2"), 2)
    done.call("fsync", (described(3, done.at("/b")),))
    effects, lost = follow(done.calls, str(tmp_path), done.trees[0]), Explanation(Reliance.DURABLE, (0,))
    assert kind_of(lost, effects, 1) == "durability: other"
    assert kind_of(lost, effects, 3) == snapshot("durability: safe file flush")
    trees = {0: done.trees[-1], 1: done.trees[0]}
    asked = AnsweredTrees(told=b"ok", accepted=[0], tree=trees.__getitem__)
    for telling, kind in ((1, "durability: other"), (3, "durability: safe file flush")):
        [told] = Reliances([asked], done.calls, effects, tellings={telling: b"ok"}).relied_on([(0, 1)])
        assert (told.explanation.reliance, told.kind) == (Reliance.DURABLE, kind)


def test_a_journal_that_was_removed_has_no_name_to_be_kept(tmp_path: Path) -> None:
    done = perform(tmp_path, [])
    opened(done, "/b", "O_RDWR|O_CREAT", 3)
    done.call("fsync", (described(3, done.at("/b")),))
    done.call("unlink", (escaped(done.at("/b").encode()),))
    effects = follow(done.calls, str(tmp_path), done.trees[0])
    assert kind_of(Explanation(Reliance.DURABLE, (0, 2)), effects) == "durability: other"


def test_a_file_that_keeps_another_name_has_one_to_be_kept(tmp_path: Path) -> None:
    """As git and Maildir make a file: under a name of its own, then linked, synced, and unlinked."""
    done = perform(tmp_path, [])
    opened(done, "/b", "O_RDWR|O_CREAT", 3)
    done.call("link", (escaped(done.at("/b").encode()), escaped(done.at("/d/b").encode())))
    done.call("fsync", (described(3, done.at("/b")),))
    done.call("unlink", (escaped(done.at("/b").encode()),))
    effects = follow(done.calls, str(tmp_path), done.trees[0])
    assert kind_of(Explanation(Reliance.DURABLE, (1,)), effects) == snapshot("durability: safe file flush")


def test_data_that_was_written_after_the_rename_makes_no_safe_rename(tmp_path: Path) -> None:
    done = perform(tmp_path, [])
    opened(done, "/b", "O_RDWR|O_CREAT", 3)
    done.call("rename", (escaped(done.at("/b").encode()), escaped(done.at("/d/b").encode())))
    done.call("write", (described(3, done.at("/d/b")), escaped(b"xy"), "2"), 2)
    effects = follow(done.calls, str(tmp_path), done.trees[0])
    assert kind_of(Explanation(Reliance.ORDER, (2,), (1,)), effects) == "ordering: other"


@pytest.mark.parametrize("names", [("/b", "/a"), ("/a", "/b")])
def test_an_exchange_moves_both_files_whichever_name_comes_first(tmp_path: Path, names: tuple[str, str]) -> None:
    done = perform(tmp_path, [])
    opened(done, "/b", "O_RDWR|O_CREAT", 3)
    (tmp_path / "b").write_bytes(b"xy")
    done.call("write", (described(3, done.at("/b")), escaped(b"xy"), "2"), 2)
    old, new = (escaped(done.at(name).encode()) for name in names)
    done.call("renameat2", ("AT_FDCWD", old, "AT_FDCWD", new, "RENAME_EXCHANGE"))
    effects = made(done)
    assert kind_of(Explanation(Reliance.ORDER, (1,), (2,)), effects) == "ordering: safe rename"
    assert effects.words[2].endswith(f"exchange {names[0]} and {names[1]}")
    step = steps_of(done.calls, effects, {})[-1]
    assert (step.verb, step.path, step.more) == ("exchange", names[0], f"and {names[1]}")


def test_a_name_is_told_in_one_line_and_with_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    """Names may have any byte: the words for people show it, and the operations have it as it is."""
    name = "/a\nb\x1b[31m"
    done = perform(tmp_path, [])
    opened(done, name, "O_RDWR|O_CREAT", 3)
    done.call("ftruncate", (described(3, done.at("/other")), "5"))
    done.call("rename", (escaped(os.fsencode(done.at("/b"))), escaped(os.fsencode(done.at(name)))))
    effects = follow(done.calls, str(tmp_path), done.trees[0])
    words = [
        *effects.words.values(),
        *(word for step in steps_of(done.calls, effects, {}) for word in (step.words, step.path)),
    ]
    assert any("/a\\nb\\x1b[31m" in word for word in words)
    assert all(word.isprintable() for word in words)
    assert ops.Create(name) in [deed.operation for deed in effects.deeds]


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE", snapshot("atomicity of an overwrite")),
        ("FALLOC_FL_ZERO_RANGE", snapshot("atomicity of an overwrite")),
        ("0", snapshot("atomicity of a truncate")),
    ],
)
def test_zeros_that_a_call_puts_into_a_file_overwrite_it(tmp_path: Path, mode: str, kind: str) -> None:
    done = perform(tmp_path, [])
    opened(done, "/a", "O_RDWR", 3)
    done.call("fallocate", (described(3, done.at("/a")), mode, "0", "4096"))
    assert kind_of(Explanation(Reliance.WHOLE, (1,), (1,)), follow(done.calls, str(tmp_path), done.trees[0])) == kind


VERBS = ("append", "overwrite", "create", "fsync", "tells")


@st.composite
def some_steps(draw: st.DrawFn) -> tuple[list[Shown], set[int]]:
    """Steps with a good deal of repetition, some of which a need is about."""
    rounds = draw(
        st.lists(
            st.tuples(
                st.lists(st.tuples(st.sampled_from(VERBS), st.sampled_from(NAMES)), min_size=1, max_size=4),
                st.integers(1, 6),
            ),
            max_size=6,
        )
    )
    flat = [one for some, times in rounds for _ in range(times) for one in some]
    kinds = {"fsync": Kinds.SYNC, "tells": Kinds.TOLD}
    steps = [Shown(3 * at, kinds.get(verb, Kinds.CHANGE), verb, path) for at, (verb, path) in enumerate(flat)]
    return steps, draw(st.sets(st.sampled_from([step.number for step in steps]), max_size=4)) if steps else set()


@given(some_steps())
@settings(max_examples=300, deadline=None)
def test_folded_rows_are_the_steps_in_their_order_and_none_stands_for_what_is_unlike(
    asked: tuple[list[Shown], set[int]],
) -> None:
    steps, marked = asked
    rows = fold(steps, marked)
    unfolded: list[Shown] = []
    for loop, group in groupby(rows, key=lambda row: row.loop):
        together = list(group)
        if loop is None:
            unfolded += [step for row in together for step in row.steps]
        else:
            assert len({len(row.steps) for row in together}) == 1 and len(together[0].steps) >= 3
            unfolded += [step for some in zip(*(row.steps for row in together), strict=True) for step in some]
    assert unfolded == steps
    for row in rows:
        assert len({(step.kind, step.verb, step.path.rsplit("/", 1)[0]) for step in row.steps}) == 1
        assert len(row.steps) == 1 or not {step.number for step in row.steps} & marked
        assert len(row.steps) == 1 or row.first.kind is not Kinds.TOLD


@given(st.lists(st.sampled_from([*NAMES, "fsync /a", "fsync /d", "fsync /", "sync", *(f"name {n}" for n in NAMES)])))
@settings(max_examples=200, deadline=None)
def test_a_sync_makes_durable_what_no_sync_before_it_did(words: list[str]) -> None:
    """Held against each change by itself: the first sync after it that is about its file, its directory, or all."""
    files = {"/": 0, "/d": 1, **{name: number for number, name in enumerate(NAMES, start=2)}}
    deeds: list[Deed] = []
    for call, word in enumerate(words):
        verb, _space, path = word.rpartition(" ")
        match verb or path:
            case "fsync":
                deeds.append(Deed(call, ops.Fsync(path), files[path]))
            case "sync":
                deeds.append(Deed(call, ops.Sync(), 0))
            case "name":
                deeds.append(Deed(call, ops.Unlink(path), files[path]))
            case _:
                deeds.append(Deed(call, ops.Write(path, 0, 1), files[path], b"x"))
    made = [TracedFile("directory"), TracedFile("directory"), *(TracedFile("file") for _ in NAMES)]
    calls = [SystemCall(1, 0.0, "call", (), 0) for _ in words]
    found = {step.number: set(step.covers) for step in steps_of(calls, Effects(made, {}, {}, deeds), {})}
    expected: dict[int, set[int]] = {call: set() for call in range(len(words))}
    for call, word in enumerate(words):
        if "sync" in word:
            continue
        path = word.removeprefix("name ")
        wanted = {"sync", f"fsync {path.rsplit('/', 1)[0] or '/'}" if word.startswith("name") else f"fsync {path}"}
        later = next((sync for sync in range(call + 1, len(words)) if words[sync] in wanted), None)
        if later is not None:
            expected[later].add(call)
    assert found == expected


def loop_of(*verbs: str, times: int, path: str = "/f") -> list[Shown]:
    sync = {"fsync": Kinds.SYNC}
    return [
        Shown(at * len(verbs) + place, sync.get(verb, Kinds.CHANGE), verb, path.format(at))
        for at in range(times)
        for place, verb in enumerate(verbs)
    ]


def test_two_thousand_calls_are_a_few_rows() -> None:
    assert [len(row.steps) for row in diagram(loop_of("append", times=2000)).rows] == [2000]
    for path in ("/f", "/d/{}"):
        rows = diagram(loop_of("create", "append", "fsync", "rename", times=500, path=path)).rows
        assert [(row.first.verb, len(row.steps)) for row in rows] == [
            ("create", 500), ("append", 500), ("fsync", 500), ("rename", 500)
        ]  # fmt: skip
        assert len({row.loop for row in rows}) == 1


def test_what_a_need_is_about_is_never_folded_nor_left_out() -> None:
    steps = loop_of("append", "fsync", times=300)
    need = Need("first this, then that", (200,), (402,))
    made = diagram(steps, [need])
    [shown] = made.needs
    assert [made.rows[place].steps for place in (*shown.first, *shown.then)] == [(steps[200],), (steps[402],)]
    assert len(made.rows) < 20
    unlike = [Shown(number, Kinds.CHANGE, f"verb{number}", "/f") for number in range(2000)]
    made = diagram(unlike, [Need("x", (700,), (1300,)), Need("the same", (700,), (1300,)), Need("y", (5,), (700,))])
    assert len(made.rows) <= MOST_ROWS
    assert sum(len(row.steps) for row in made.rows) == 2000 and sum(row.is_gap for row in made.rows) == 3
    assert [[made.rows[place].first.number for place in (*need.first, *need.then)] for need in made.needs] == [
        [700, 1300], [5, 700]
    ]  # fmt: skip
    many = diagram(unlike, [Need(str(number), (number,), (number + 9,)) for number in range(40)])
    assert len(many.needs) + many.left_out == 40 and many.left_out


def test_what_is_relied_on_is_an_arrow_a_bracket_or_leads_to_what_was_told() -> None:
    told = [Shown(2, Kinds.TOLD, "tells", "", told="one\n"), Shown(5, Kinds.TOLD, "tells", "", told="two\n")]
    steps = [Shown(1, Kinds.CHANGE, "append", "/f"), told[0], *(Shown(at, Kinds.CHANGE, "x", "/g") for at in (3, 4))]
    steps.append(told[1])

    def asked(reliance: Reliance, missing: tuple[int, ...], there: tuple[int, ...], said: bytes = b"") -> Need | None:
        return need_of(Explanation(reliance, missing, there), "so", said, steps)

    assert asked(Reliance.ORDER, (1, 99), (3, 4)) == Need("so", (1,), (3, 4))
    assert asked(Reliance.TOGETHER, (4,), (3,)) == Need("so", (3, 4))
    assert asked(Reliance.WHOLE, (4,), (4,)) == Need("so", (4,))
    long = [Shown(number, Kinds.CHANGE, "append", "/f") for number in range(20)]
    together = Explanation(Reliance.TOGETHER, tuple(range(9, 20)), tuple(range(4, 9)))
    assert need_of(together, "so", b"", long) == Need("so", (4, 5, 6, 17, 18, 19))
    assert asked(Reliance.DURABLE, (1,), (), b"one\ntwo\n") == Need("so", (1,), (5,), is_durable=True)
    assert asked(Reliance.DURABLE, (1,), (), b"one\n") == Need("so", (1,), (2,), is_durable=True)
    assert asked(Reliance.DURABLE, (1,), ()) == Need("so", (1,), (), is_durable=True)
    for nothing in (Reliance.UNCLEAR, Reliance.NOT_YET, Reliance.ORDER, Reliance.DURABLE):
        assert asked(nothing, (99,), (3,)) is None


def test_a_protocol_is_written_and_read_again() -> None:
    steps = (
        Shown(0, Kinds.CHANGE, "append", "/f", "5 bytes at 0", program="sh", process=2, function="main in f"),
        Shown(7, Kinds.SYNC, "fsync", "/f", covers=(0,)),
        Shown(9, Kinds.TOLD, "tells", "", told="\xff\n"),
    )
    document = json.loads(json.dumps(encode(Protocol("ext4", steps))))
    assert decode(Protocol, document) == Protocol("ext4", steps)
    assert steps[2].words == "tells 'ÿ'" and text_with(steps[0].words, 5, 0) == snapshot("append 5 bytes at 0")


_CHOSEN = (
    *("dataFile", "dataPage", "metaData.db", "nodeLock.json", "tableA", "tableB", "indexA", "ChangeLog"),
    *("tmp.journal", "tmpsnapshot", "dead", "db", "CURRENT", "pg_internal.init", "COMMIT_EDITMSG", "records.dat"),
)
_ANEW = {
    "pg_wal/000000010000000000000009": "pg_wal/#",
    "pg_wal/00000001000000000000000A.ready": "pg_wal/#.ready",
    f"pack-{'3e75' * 10}.idx": "pack-#.idx",
    "db-mj0A3F2B9C4": "db-mj#",
    "log.100000002": "log.#",
    "000000000000001f.snap": "#.snap",
    "6f1c2b9e-0d3a-4c55-9b1e-2f7a60c1d2e3.tmp": "#.tmp",
    "tmpa_kq3xyz.json": "tmp#.json",
    "tmp.aB3dE5gH7j": "tmp.#",
    "000012.ldb": "#.ldb",
    "db/000012": "db/#",
    "fa/1234567": "fa/#",
    "ib_logfile0": "ib_logfile#",
}


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("git: append 19 bytes at 0 of /.git/objects/3e/tmp_obj_BcImON", "git: append /.git/objects/#/tmp_obj_#"),
        ("git: link /o/e0/tmp_obj_AC0TQv as /o/e0/19be006cf33489e2d017", "git: link /o/#/tmp_obj_# as /o/#/#"),
        ("truncate /a/log.000123 to 4096 bytes", "truncate /a/log.#"),
        ("p: append 4 bytes at 1024 of /db (write in libfoo.so.1)", "p: append /db (write in libfoo.so.1)"),
        ("p: rename /db.new to /db", "p: rename /db.new to /db"),
        ("p: fallocate 4096 bytes at 8192 of /db-journal", "p: fallocate /db-journal"),
        ("mkdir /objects/e0", "mkdir /objects/#"),
        ("unlink /db/a1", "unlink /db/a#"),
        ("git: open /.git/COMMIT_EDITMSG with O_TRUNC", "git: open /.git/COMMIT_EDITMSG with O_TRUNC"),
        ("sed: rename /sedAx1S0C to /f", "sed: rename /sed# to /f"),
        ("sed: append 4096 bytes at 0 of /sedLCYSTv", "sed: append /sed#"),
        ("sed: append 4096 bytes at 0 of /sed2Gyzz7.tmp", "sed: append /sed#.tmp"),
        ("git: link /o/tmp_obj_abcdef as /x", "git: link /o/tmp_obj_# as /x"),
        ("hg: append 40 bytes at 0 of /.hg/.dirstate-ulxyuku8~", "hg: append /.hg/.dirstate-#~"),
        ("python3: create /tmpa_kq3xyz", "python3: create /tmp#"),
        ("hg: append 1 bytes at 0 of /store/00changelog.i", "hg: append /store/#changelog.i"),
        ("postgres: append 1 bytes at 0 of /data/postmaster.pid", "postgres: append /data/postmaster.pid"),
        ("leveldb: create /MANIFEST-000004", "leveldb: create /MANIFEST-#"),
        ("p: create /Makefile", "p: create /Makefile"),
        ("p: create /README", "p: create /README"),
        *[(f"p: create /{name}", f"p: create /{name}") for name in _CHOSEN],
        *[(f"p: create /{name}", f"p: create /{plain}") for name, plain in _ANEW.items()],
        (
            "etcd: append 4096 bytes at 0 of /db (go.etcd.io/bbolt.(*Tx).writeMeta in etcd)",
            "etcd: append /db (go.etcd.io/bbolt.(*Tx).writeMeta in etcd)",
        ),
        ("unlink /o/ab/x", "unlink /o/ab/x"),
        ("unlink /objects/ab/x", "unlink /objects/#/x"),
        ("", ""),
    ],
)
def test_the_place_of_a_call_is_without_what_is_made_anew_each_time(words: str, place: str) -> None:
    assert place_of(words) == place


def test_each_kind_of_a_vulnerability_has_its_column() -> None:
    assert type_of("atomicity of an append") == type_of("atomicity of a truncate") == TYPES[1]
    assert [type_of(kind) for kind in TYPES] == list(TYPES) and type_of("") == type_of("something") == ""


@dataclass
class Watched:
    """What a program does to a mapped file, in this process; and what the recorder makes of the lines of its calls."""

    root: Path
    watcher: StoreFilter
    lines: list[bytes] = field(default_factory=list)
    trees: list[tuple[int, dict[str, Node]]] = field(default_factory=list)
    """After each call: how many calls there were, with what is stored before and with them, and the tree."""
    maps: dict[int, mmap.mmap] = field(default_factory=dict)
    number: int = -1

    def call(self, text: str, *, pid: int = 0) -> None:
        """A call has returned, and the program is not on yet."""
        line = f"{pid or os.getpid()} {len(self.lines)}.0 {text}".encode()
        self.lines += [*self.watcher.lines(line), b" > /usr/bin/p(main+0x1) [0x1]"]
        made_so_far = len(parse(b"\n".join(self.lines).decode())) + len(self.watcher.left)
        self.trees.append((made_so_far, tree_in(self.root)))

    def there(self) -> str:
        return described(self.number, f"{self.root}/a")

    def step(self, kind: str, at: int, data: bytes) -> None:
        size = os.fstat(self.number).st_size
        if kind == "map" and size:
            address = (len(self.maps) + 1) << 20
            self.maps[address] = mmap.mmap(self.number, size)
            self.call(f"mmap(NULL, {size}, PROT_READ|PROT_WRITE, MAP_SHARED, {self.there()}, 0) = {address:#x}")
        elif kind == "unmap" and self.maps:
            address, gone = self.maps.popitem()
            length = len(gone)
            gone.close()
            self.call(f"munmap({address:#x}, {length}) = 0")
        elif kind == "store" and self.maps:
            for one in list(self.maps.values())[:1]:
                end = min(len(one), size)
                start = min(at, max(end - len(data), 0))
                one[start : min(start + len(data), end)] = data[: end - start]
        elif kind == "write":
            os.pwrite(self.number, data, at)
            self.call(f"pwrite64({self.there()}, {escaped(data)}, {len(data)}, {at}) = {len(data)}")
        elif kind == "truncate" and not self.maps:
            os.ftruncate(self.number, at)
            self.call(f"ftruncate({self.there()}, {at}) = 0")
        elif kind == "elsewhere":
            self.call(f"lseek({self.there()}, 0, SEEK_SET) = 0")

    def replayed(self, before: dict[str, Node]) -> ReplayedProgram:
        self.lines += self.watcher.left
        text = b"\n".join(self.lines).decode()
        return replayed("p", protocol(parse(text), str(self.root), before, tree_in(self.root)), before, {})


@contextmanager
def watched(root: Path) -> Iterator[Watched]:
    (root / "a").write_bytes(b"first" * 2000)
    done = Watched(root, StoreFilter(str(root)))
    done.number = os.open(root / "a", os.O_RDWR)
    try:
        done.call(f"openat(AT_FDCWD, {escaped(f'{root}/a'.encode())}, O_RDWR) = {done.there()}")
        yield done
    finally:
        for one in done.maps.values():
            one.close()
        os.close(done.number)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["map", "store", "store", "store", "write", "truncate", "unmap", "elsewhere"]),
            st.integers(0, 12_000),
            st.binary(min_size=1, max_size=5000),
        ),
        max_size=14,
    )
)
def test_what_is_stored_through_mappings_is_there_after_the_next_call(script: list[tuple[str, int, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as folder, watched(Path(folder)) as done:
        before = tree_in(Path(folder))
        for step in [("map", 0, b""), *script]:
            done.step(*step)
        done.call("+++ exited with 0 +++")
        replay = done.replayed(before)
        assert not replay.effects.untold
        for made_so_far, tree in done.trees:
            step = max((place for place, call in enumerate(replay.calls, start=1) if call < made_so_far), default=0)
            assert shown(replay, replay.history.steps[step]) == asked_of(tree)


def test_what_a_call_writes_is_no_store_and_a_file_is_watched_while_it_is_mapped(tmp_path: Path) -> None:
    with watched(tmp_path) as done:
        before, held = tree_in(tmp_path), len(os.listdir("/proc/self/fd"))
        done.step("map", 0, b"")
        done.step("store", 5, b"x")
        done.step("write", 100, b"yz")
        done.step("store", 103, b"x")
        done.step("unmap", 0, b"")
        assert len(os.listdir("/proc/self/fd")) == held
        operations = [deed.operation for deed in done.replayed(before).effects.deeds]
        mapped = ops.How.MMAP
        expected = [ops.Write("/a", 100, 2), ops.Write("/a", 5, 1, mapped), ops.Write("/a", 103, 1, mapped)]
        assert operations == expected


def test_two_tasks_that_store_are_not_followed(tmp_path: Path) -> None:
    with watched(tmp_path) as done:
        before = tree_in(tmp_path)
        done.step("map", 0, b"")
        done.call("fork() = 7")
        done.step("store", 5, b"x")
        done.call("sync() = 0")
        assert done.replayed(before).effects.untold == ["mmap of /a"]


def test_a_store_while_another_task_syncs_is_not_followed(tmp_path: Path) -> None:
    with watched(tmp_path) as done:
        before = tree_in(tmp_path)
        done.step("map", 0, b"")
        done.call("getpid() = 8", pid=8)
        done.step("store", 5, b"x")
        done.call("sync() = 0", pid=8)
        assert done.replayed(before).effects.untold == ["mmap of /a"]


@pytest.mark.parametrize(
    ("begin", "length", "flags", "said"),
    [
        (0, 10_000, "MS_SYNC", [ops.Msync("/a")]),
        (4096, 5904, "MS_SYNC", [ops.Msync("/a")]),
        (0, 10_000, "MS_ASYNC", []),
        (0, 4096, "MS_SYNC", None),
    ],
)
def test_an_msync_makes_durable_what_it_covers(
    tmp_path: Path, begin: int, length: int, flags: str, said: list[ops.Operation] | None
) -> None:
    with watched(tmp_path) as done:
        before = tree_in(tmp_path)
        done.step("map", 0, b"")
        done.step("store", 5000, b"xy")
        [address] = done.maps
        done.call(f"msync({address + begin:#x}, {length}, {flags}) = 0")
        effects = done.replayed(before).effects
        if said is None:
            assert effects.untold == snapshot(["msync of a part of /a"])
        else:
            assert not effects.untold
            assert [deed.operation for deed in effects.deeds] == [
                ops.Write("/a", 5000, 2, ops.How.MMAP),
                *said,
            ]


def putting(puts: int) -> tuple[tuple[SystemCall, ...], dict[str, Node], dict[str, Node]]:
    """The calls of a program that appends 1,500 bytes to a file, syncs it, and tells that, so often; and the trees
    before and after it."""

    def call(name: str, *arguments: str, result: int = 0, opened: str = "") -> SystemCall:
        return SystemCall(1, 0.0, name, arguments, result, opened)

    def escaped(data: bytes) -> str:
        return data.hex("|", 1).replace("|", "\\x").join(("\\x", ""))

    path = f"{MOUNTED}/log"
    fd, pipe = f"3<{escaped(path.encode())}>", f"1<{escaped(b'pipe:[7]')}>"
    calls = [call("creat", f'"{escaped(path.encode())}"', "0644", result=3, opened=path)]
    for put in range(puts):
        calls.append(call("write", fd, f'"{escaped(b"%015d" % put * 100)}"', "1500", result=1500))
        calls.append(call("fdatasync", fd))
        calls.append(call("write", pipe, '"\\x2e"', "1", result=1))
    root = Node("directory", 1, 2, mode=0o755)
    log = Node("file", 2, 1, 1500 * puts, b"".join(b"%015d" % put * 100 for put in range(puts)), mode=0o644)
    return tuple(calls), {"/": root}, {"/": root, "/log": log}


def test_memory_and_edges_grow_with_the_calls_of_a_program_and_not_with_their_square() -> None:
    """Fifty puts, and two hundred: what is kept for the one is at most some six times that for the other, and each
    tree is what a crash leaves of so many puts."""
    peaks, edges = [], []
    promised = builtin("btrfs").promised
    for puts in (50, 200):
        calls, before, after = putting(puts)
        transcript = Transcript(b"." * puts, tuple(calls), 7, (), None)
        case = samples.program_case(transcript, "putting")
        tracemalloc.start()
        again, _notes = protocol_of(case, before, after)
        asked = graph_under(again.workload, workings(again.history), promised)
        tries = ModelStates(asked, promised, again.outputs, 10**6, 100)
        states = list(islice(tries, 100))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        edges.append(len(asked.edges))
        assert count(tries.lattice, again.outputs).is_exact
        for state in states[:: len(states) // 10]:
            found = tries.nodes(state)
            content = found["/log"].content if found else b""
            assert state.crash.stage is not CrashStage.PREFIX or len(content) >= 1500 * len(state.output)
            assert after["/log"].content.startswith(content) or state.crash.stage is not CrashStage.PREFIX
    assert edges[1] < 5 * edges[0]
    assert peaks[1] < 6 * peaks[0] and peaks[1] < 20_000_000


@pytest.mark.parametrize(("name", "is_told"), [("/d/socket", True), ("@abstract", False)])
def test_a_socket_gets_its_name_by_a_call(tmp_path: Path, name: str, is_told: bool) -> None:
    """bind(2) makes a file, which was told to have come by itself."""
    done = perform(tmp_path, [("unlink", "/a")])
    with socket(AF_UNIX) as made_here:
        made_here.bind(done.at(name) if is_told else "\0abstract")
        named = escaped(done.at(name).encode()) if is_told else f"@{escaped(b'abstract')}"
        done.call("bind", (described(3, "socket:[7]"), f"{{sa_family=AF_UNIX, sun_path={named}}}", "110"))
    mode = stat.S_IMODE(os.lstat(done.at(name)).st_mode) if is_told else 0
    effects = made(done)
    assert effects.words == {0: "unlink /a", **({1: "bind /d/socket"} if is_told else {})}
    assert [(deed.operation, deed.mode) for deed in effects.deeds[1:]] == (
        [(ops.Mknod("/d/socket", ops.Special.SOCKET), mode)] if is_told else []
    )
    assert presence(effects, done.trees[1]).get(1) is (Presence.NONE if is_told else None)
    assert presence(effects, done.trees[2]).get(1) is (Presence.FULL if is_told else None)
