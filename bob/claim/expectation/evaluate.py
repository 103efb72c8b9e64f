"""Whether an observation is as it is expected to be, and what in it is not, in one line.

``old`` is a file as the initial tree has it, ``new`` as it is after the last operation where nothing crashes: both come
from the history. What an operation wrote is known byte by byte (:mod:`bob.workload.pattern`).

A state that the kernel does not mount answers ``mounts``, and no other test: of its names nothing can be told. So what
is asked of it may be true, false, or neither.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator

from bob.claim.expectation.syntax import (
    Absent,
    And,
    Atom,
    Attribute,
    Content,
    Exists,
    Expectation,
    Formula,
    Implies,
    KeptContents,
    Links,
    Mode,
    Mounts,
    NamedPath,
    Not,
    Or,
    Owner,
    Same,
    Size,
    SizeRelation,
    Target,
    Time,
    atoms,
    names,
)
from bob.errors import PointedError, meant
from bob.observe.observation import Node, Observation
from bob.workload.history import FileKind, History, HistoryStep, attribute_set_by
from bob.workload.language import write_one
from bob.workload.pattern import describe

NANOSECONDS = 1_000_000_000
LONGEST_WORDS = 200
"""What is told of one file has at most so many letters."""

_RELATIONS = {
    SizeRelation.EQUAL: operator.eq,
    SizeRelation.DIFFERENT: operator.ne,
    SizeRelation.LESS: operator.lt,
    SizeRelation.AT_MOST: operator.le,
    SizeRelation.MORE: operator.gt,
    SizeRelation.AT_LEAST: operator.ge,
}


def check(expectation: Expectation, history: History) -> None:
    """Raise PointedError where ``expectation`` asks what this workload cannot answer: a name that nothing makes, bytes
    that no operation wrote."""
    for atom in atoms(expectation.test):
        for name in names(atom):
            _check_name(name, history, expectation.text)
        if isinstance(atom, Content):
            _check_content(atom, history, expectation.text)
        if isinstance(atom, Attribute):
            _check_attribute(atom, history, expectation.text)


def holds(test: Formula, observation: Observation, history: History) -> bool | None:
    """Whether ``observation`` is as ``test`` wants it; None where that cannot be told, as the state does not mount."""
    match test:
        case Not(inner):
            found = holds(inner, observation, history)
            return None if found is None else not found
        case And(left, right):
            return _one_decides(False, left, right, observation, history)
        case Or(left, right):
            return _one_decides(True, left, right, observation, history)
        case Implies(left, right):
            return _one_decides(True, Not(left), right, observation, history)
        case Mounts():
            return observation.mounted
    return _atom_holds(test, observation, history) if observation.mounted else None


def _one_decides(
    decisive: bool, left: Formula, right: Formula, observation: Observation, history: History
) -> bool | None:
    """What two tests say together where one is enough that is ``decisive``: False in an `and`, True in an `or`."""
    first = holds(left, observation, history)
    if first is decisive:
        return decisive
    second = holds(right, observation, history)
    if second is decisive:
        return decisive
    return None if first is None or second is None else not decisive


def evidence(test: Formula, observation: Observation, history: History) -> str:
    """What is there of the names that decide that ``test`` does not hold (or does), in one line."""
    deciding = list(_deciding(test, observation, history))
    found = dict.fromkeys(_found(name.path, observation) for atom in deciding for name in names(atom))
    told = list(found)
    if any(isinstance(atom, Mounts) for atom in deciding):
        refused = f"the file system does not mount: {observation.error}"
        told.insert(0, "the file system mounts" if observation.mounted else refused)
    for atom in deciding:
        if isinstance(atom, Same):
            one, other = (_node(name.path, observation) for name in names(atom))
            if one is not None and other is not None:
                are = "are one inode" if one.inode == other.inode else f"are inodes {one.inode} and {other.inode}"
                told.append(f"{atom.one.path} and {atom.other.path} {are}")
        if isinstance(atom, Links | Mode | Owner | Time | Attribute):
            node = _node(atom.name.path, observation)
            told += [] if node is None else [f"{atom.name.path} has {_stat(atom, node)}"]
    return "; ".join(told)


def _stat(atom: Links | Mode | Owner | Time | Attribute, node: Node) -> str:
    """What is there of what ``atom`` asks, in words."""
    match atom:
        case Links():
            return f"{node.links} names"
        case Mode():
            return "no known mode" if node.mode is None else f"mode {node.mode:03o}"
        case Owner():
            return "no known owner" if node.uid is None else f"owner {node.uid}:{node.gid}"
        case Time():
            set_then = node.mtime and f"time {node.mtime // NANOSECONDS}"
            return set_then or ("no known time" if node.mtime is None else "a later time")
        case Attribute(_name, attribute):
            value = node.xattrs.get(attribute)
            return f"no {attribute}" if value is None else f"{attribute} = {_shortened(describe(value))}"


def _check_name(name: NamedPath, history: History, text: str) -> None:
    """A name is one of a directory that is there at some time, and some name of the workload ends so."""
    known = {path for step in history.steps for path in step.names}
    directory, last = name.path.rpartition("/")[::2]
    folders = {path for step in history.steps for path, kind in _kinds(step, history) if kind is FileKind.DIRECTORY}
    if name.path in known or ((directory or "/") in folders and last in {path.rpartition("/")[2] for path in known}):
        return
    hint = meant(name.path, sorted(known - {"/"}), "names")
    raise PointedError(f"neither the setup nor the operations make {name.path}", text, *name.at, hint=hint)


def _check_content(content: Content, history: History, text: str) -> None:
    source, within, path = content.source, content.within, content.name.path
    if isinstance(source.what, int):
        numbers = len(history.operations)
        if source.what > numbers:
            last = f"op{numbers} is the last one" if numbers else "there is none"
            raise PointedError(f"there is no operation {source.what}", text, *source.at, hint=last)
        if source.what not in history.data:
            what = write_one(history.operations[source.what - 1])
            raise PointedError(f"operation {source.what} ({what}) writes no data", text, *source.at, hint=_WRITERS)
        _thing, offset, length = history.data[source.what]
        if within is not None and not offset <= within.start < within.stop <= offset + length:
            wrote = f"operation {source.what} wrote bytes {offset:,} to {offset + length:,}"
            raise PointedError(f"not all of these bytes are of op{source.what}", text, *within.at, hint=wrote)
    elif source.what in (KeptContents.OLD, KeptContents.NEW):
        file, when = _kept(source.what, path, history), _WHEN[source.what]
        if file is None:
            hint = f"`exists {path}` and `absent {path}` can be asked of it"
            raise PointedError(f"there is no file {path} {when}", text, *source.at, hint=hint)
        if within is not None and within.stop > len(file):
            raise PointedError(
                f"{path} has {len(file):,} bytes {when}", text, *within.at, hint="name a range within them"
            )


def _check_attribute(wanted: Attribute, history: History, text: str) -> None:
    """Something has the attribute at some time, and the operation that is named sets or removes it."""
    source, numbers = wanted.source, len(history.operations)
    if not any(wanted.attribute in inode.xattrs for step in history.steps for inode in step.inodes.values()):
        raise PointedError(f"nothing ever has an attribute {wanted.attribute}", text, *wanted.name.at, hint=_SETTERS)
    if not isinstance(source.what, int):
        return
    if source.what > numbers:
        last = f"op{numbers} is the last one" if numbers else "there is none"
        raise PointedError(f"there is no operation {source.what}", text, *source.at, hint=last)
    done = attribute_set_by(history.operations[source.what - 1])
    if done is None or done[1] != wanted.attribute:
        what = write_one(history.operations[source.what - 1])
        said = f"operation {source.what} ({what}) sets no {wanted.attribute}"
        raise PointedError(said, text, *source.at, hint=_SETTERS)


_SETTERS = "setxattr sets one, removexattr removes it; operations are numbered from op1"
_WRITERS = "write and append do; operations are numbered from op1"
_WHEN = {KeptContents.OLD: "before the operations", KeptContents.NEW: "after the last operation"}


def _kinds(step: HistoryStep, history: History) -> Iterator[tuple[str, FileKind]]:
    return ((path, history.things[thing].kind) for path, thing in step.names.items())


def _kept(what: KeptContents, path: str, history: History) -> bytes | None:
    """The content of ``path`` before the operations or after them; None if no file has that name then."""
    step = history.steps[0 if what is KeptContents.OLD else -1]
    thing = step.names.get(path)
    if thing is None or history.things[thing].kind is not FileKind.FILE:
        return None
    return step.inodes[thing].content


def _atom_holds(atom: Atom, observation: Observation, history: History) -> bool | None:
    """None where what it asks was not observed."""
    match atom:
        case Mounts():
            return observation.mounted
        case Exists(name):
            return _is_there(name.path, observation)
        case Absent(name):
            return not _is_there(name.path, observation) and _hidden_by(name.path, observation) is None
        case Same(one, other):
            first, second = _node(one.path, observation), _node(other.path, observation)
            return first is not None and second is not None and first.inode == second.inode != 0
        case Size(name, relation, size):
            node = _node(name.path, observation)
            return node is not None and node.kind == FileKind.FILE and bool(_RELATIONS[relation](node.size, size))
        case Content(name):
            node = _node(name.path, observation)
            if node is None or node.kind != FileKind.FILE or len(node.content) != node.size:
                return False
            return _content_is(atom, node.content, history)
        case Links(name) | Mode(name) | Owner(name) | Time(name) | Target(name) | Attribute(name):
            node = _node(name.path, observation)
            return False if node is None else _stat_is(atom, node, history)


def _stat_is(atom: Links | Mode | Owner | Time | Target | Attribute, node: Node, history: History) -> bool | None:
    """Whether what stat says of ``node``, and what is beside its content, is so; None where that was not observed."""
    match atom:
        case Links(_name, relation, number):
            return node.kind == FileKind.FILE and bool(_RELATIONS[relation](node.links, number))
        case Mode(_name, mode):
            return None if node.mode is None else node.mode == mode
        case Owner(_name, uid, gid):
            return None if node.uid is None else (node.uid, node.gid) == (uid, gid)
        case Time(_name, seconds):
            return None if node.mtime is None else node.mtime == seconds * NANOSECONDS
        case Target(_name, path):
            return node.kind == FileKind.SYMLINK and node.target == path
        case Attribute(name, attribute, source):
            kept = {KeptContents.OLD: 0, KeptContents.NEW: -1}
            step = history.steps[source.what if isinstance(source.what, int) else kept[source.what]]
            path = name.path
            if isinstance(source.what, int):
                path, _attribute = attribute_set_by(history.operations[source.what - 1]) or (path, "")
            thing = step.names.get(path, step.handles.get(path))
            expected = None if thing is None else step.inodes[thing].xattrs.get(attribute)
            return node.xattrs.get(attribute) == expected


def _content_is(wanted: Content, found: bytes, history: History) -> bool:
    """Whether the content ``found`` is that of the source."""
    what, within = wanted.source.what, wanted.within
    if what is KeptContents.EMPTY:
        return not found
    if what is KeptContents.ZEROS:
        piece = found[within.start : within.stop] if within else found
        return len(piece) == (within.stop - within.start if within else len(found)) and bool(piece) and not any(piece)
    if isinstance(what, int):
        thing, offset, length = history.data[what]
        data = history.steps[what].inodes[thing].content[offset : offset + length]
        if wanted.prefix:
            return data.startswith(found[offset:])
        start, stop = (within.start, within.stop) if within else (offset, offset + length)
        return found[start:stop] == data[start - offset : stop - offset]
    file = _kept(what, wanted.name.path, history)
    assert file is not None  # check() has seen to it
    if wanted.prefix:
        return file.startswith(found)
    return found[within.start : within.stop] == file[within.start : within.stop] if within else found == file


def _node(path: str, observation: Observation) -> Node | None:
    """What has the name; the root may have no entry."""
    return (observation.tree or {}).get(path)


def _is_there(path: str, observation: Observation) -> bool:
    return path == "/" or _node(path, observation) is not None


def _hidden_by(path: str, observation: Observation) -> str | None:
    """The directory above ``path`` that cannot be listed, so that its content is unknown."""
    tree = observation.tree or {}
    folders = ["/"] + [path[:end] for end in range(1, len(path)) if path[end] == "/"]
    for folder in folders:
        node = tree.get(folder)
        is_faulty = node is not None and node.kind == FileKind.DIRECTORY and node.fault is not None
        # A fault may be that of an attribute only: then what is in it was listed.
        if is_faulty and not any(other != folder and other.startswith(folder.rstrip("/") + "/") for other in tree):
            return folder
    return None


def _deciding(test: Formula, observation: Observation, history: History) -> Iterator[Atom]:
    """The atoms by which ``test`` holds, or does not."""
    match test:
        case Not(inner):
            yield from _deciding(inner, observation, history)
        case And(left, right) | Or(left, right):
            # One side decides that an `or` holds, or an `and` does not; else it takes both.
            decisive = isinstance(test, Or)
            sides = [side for side in (left, right) if holds(side, observation, history) is decisive]
            for side in sides or (left, right):
                yield from _deciding(side, observation, history)
        case Implies(left, right):
            yield from _deciding(Or(Not(left), right), observation, history)
        case _:
            yield test


def _found(path: str, observation: Observation) -> str:
    """What is there under a name, in words."""
    node = _node(path, observation)
    if node is None:
        hidden = _hidden_by(path, observation)
        if path == "/" or hidden is None:
            return f"{path} is there" if path == "/" else f"{path} is not there"
        return f"{path} cannot be seen: {hidden} {(observation.tree or {})[hidden].fault}"
    if node.kind == FileKind.SYMLINK and not node.fault:
        return f"{path} leads to {node.target}"
    if node.kind != FileKind.FILE:
        return f"{path}: {node.kind}" + (f", {node.fault}" if node.fault else "")
    if len(node.content) != node.size:
        return f"{path} has {node.size:,} B, of which {len(node.content):,} can be read ({node.fault})"
    return f"{path} has {_shortened(describe(node.content))}" if node.size else f"{path} is empty"


def _shortened(words: str) -> str:
    return words if len(words) <= LONGEST_WORDS else words[:LONGEST_WORDS].rsplit(", ", 1)[0] + ", ..."
