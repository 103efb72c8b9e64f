"""Evaluation of an expectation (a condition on the tree after a crash, which the user wrote for ``bob try``). In an
expectation, ``old`` means the contents of a file in the initial tree. ``new`` means its contents after all operations,
if nothing crashes. In a state that does not mount, only the test ``mounts`` is true or false; all other tests are
neither."""

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
    KeptContents,
    Mounts,
    NamedPath,
    Not,
    Or,
    Same,
    SizeRelation,
    Source,
    StatField,
    StatIs,
    atoms,
    names,
)
from bob.errors import PointedError, meant
from bob.observe.observation import Node, Observation
from bob.workload.history import FileKind, History, attribute_set_by
from bob.workload.language import write_one
from bob.workload.operations import Operation
from bob.workload.pattern import describe

NANOSECONDS = 1_000_000_000
LONGEST_WORDS = 200  # letters of evidence about one file

_RELATIONS = {
    SizeRelation.EQUAL: operator.eq,
    SizeRelation.DIFFERENT: operator.ne,
    SizeRelation.LESS: operator.lt,
    SizeRelation.AT_MOST: operator.le,
    SizeRelation.MORE: operator.gt,
    SizeRelation.AT_LEAST: operator.ge,
}


def check(expectation: Expectation, history: History) -> None:
    """Raise PointedError if ``expectation`` mentions a path, an operation or a range of bytes that this workload does
    not have. If the workload has no operations, another program made the recording, and bob does not know its files.
    Then any path is right, but no test may compare with contents that the workload wrote."""
    if not history.operations:
        _check_imported(expectation)
        return
    for atom in atoms(expectation.test):
        for name in names(atom):
            _check_name(name, history, expectation.text)
        if isinstance(atom, Content):
            _check_content(atom, history, expectation.text)
        if isinstance(atom, Attribute):
            _check_attribute(atom, history, expectation.text)


def holds(test: Formula, observation: Observation, history: History) -> bool | None:
    """Return whether ``test`` holds in ``observation``; None if the observation does not show whether it does."""
    match test:
        case Not(inner):
            found = holds(inner, observation, history)
            return None if found is None else not found
        case And(left, right) | Or(left, right):
            decisive = isinstance(test, Or)
            sides = [holds(side, observation, history) for side in (left, right)]
            return decisive if decisive in sides else None if None in sides else not decisive
        case Mounts():
            return observation.mounted
        case _:
            return _atom_holds(test, observation, history) if observation.mounted else None


def evidence(test: Formula, observation: Observation, history: History) -> str:
    """Return one line that explains why ``test`` holds or does not hold. It says what bob finds in ``observation`` at
    each name that the result depends on."""
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
        if isinstance(atom, StatIs | Attribute) and (node := _node(atom.name.path, observation)) is not None:
            told += [f"{atom.name.path} has {words}" for words in _stat(atom, node)]
    return "; ".join(told)


def _stat(atom: StatIs | Attribute, node: Node) -> Iterator[str]:
    if isinstance(atom, Attribute):
        value = node.xattrs.get(atom.attribute)
        yield f"no {atom.attribute}" if value is None else f"{atom.attribute} = {_shortened(describe(value))}"
        return
    match atom.field:
        case StatField.LINKS:
            yield f"{node.links} names"
        case StatField.MODE:
            yield "no known mode" if node.mode is None else f"mode {node.mode:03o}"
        case StatField.OWNER:
            yield "no known owner" if node.uid is None else f"owner {node.uid}:{node.gid}"
        case StatField.TIME:
            set_then = node.mtime and f"time {node.mtime // NANOSECONDS}"
            yield set_then or ("no known time" if node.mtime is None else "a later time")


def _check_imported(expectation: Expectation) -> None:
    for atom in atoms(expectation.test):
        is_known = isinstance(atom, Content) and atom.source.what in (KeptContents.ZEROS, KeptContents.EMPTY)
        if isinstance(atom, Content | Attribute) and not is_known:
            what = "bob does not know what the files of an imported log had to contain"
            raise PointedError(what, expectation.text, *atom.source.at, hint="ask for exists, absent, size or zeros")


def _check_name(name: NamedPath, history: History, text: str) -> None:
    """Raise PointedError if the user has probably misspelt the path. A path is right if it occurs in the workload. A
    path is also right if its directory occurs in the workload, and its last part is the last part of another path
    there."""
    known = {path for step in history.steps for path in step.names}
    directory, last = name.path.rpartition("/")[::2]
    bearers = {(path, thing) for step in history.steps for path, thing in step.names.items()}
    folders = {path for path, thing in bearers if history.things[thing].kind is FileKind.DIRECTORY}
    if name.path in known or ((directory or "/") in folders and last in {path.rpartition("/")[2] for path in known}):
        return
    hint = meant(name.path, sorted(known - {"/"}), "names")
    raise PointedError(f"neither the setup nor the operations make {name.path}", text, *name.at, hint=hint)


def _check_content(content: Content, history: History, text: str) -> None:
    source, within, path = content.source, content.within, content.name.path
    if isinstance(source.what, int):
        done = _operation(source, history, text)
        if source.what not in history.data:
            what = f"operation {source.what} ({write_one(done)}) does not write data"
            raise PointedError(what, text, *source.at, hint=_WRITERS)
        _thing, offset, length = history.data[source.what]
        if within is not None and not offset <= within.start < within.stop <= offset + length:
            wrote = f"operation {source.what} wrote bytes {offset:,} to {offset + length:,}"
            raise PointedError(f"op{source.what} did not write all of these bytes", text, *within.at, hint=wrote)
    elif source.what in (KeptContents.OLD, KeptContents.NEW):
        file, when = _kept(source.what, path, history), _WHEN[source.what]
        if file is None:
            hint = f"ask `exists {path}` or `absent {path}`"
            raise PointedError(f"{path} is not a file {when}", text, *source.at, hint=hint)
        if within is not None and within.stop > len(file):
            said = f"{path} has {len(file):,} bytes {when}"
            raise PointedError(said, text, *within.at, hint="name a range within these")


def _check_attribute(wanted: Attribute, history: History, text: str) -> None:
    source, name = wanted.source, wanted.attribute
    if not any(name in inode.xattrs for step in history.steps for inode in step.inodes.values()):
        raise PointedError(f"nothing in this workload has an attribute {name}", text, *wanted.name.at, hint=_SETTERS)
    if isinstance(source.what, int):
        operation = _operation(source, history, text)
        done = attribute_set_by(operation)
        if done is None or done[1] != name:
            said = f"operation {source.what} ({write_one(operation)}) does not set {name}"
            raise PointedError(said, text, *source.at, hint=_SETTERS)


def _operation(source: Source, history: History, text: str) -> Operation:
    number, numbers = source.what, len(history.operations)
    assert isinstance(number, int)
    if number > numbers:
        last = f"op{numbers} is the last one" if numbers else "the workload is empty"
        raise PointedError(f"operation {number} does not exist", text, *source.at, hint=last)
    return history.operations[number - 1]


_SETTERS = "setxattr sets one, removexattr removes it; operations are numbered from op1"
_WRITERS = "write and append do; operations are numbered from op1"
_STEPS = {KeptContents.OLD: 0, KeptContents.NEW: -1}
_WHEN = {KeptContents.OLD: "before the operations", KeptContents.NEW: "after the last operation"}


def _kept(what: KeptContents, path: str, history: History) -> bytes | None:
    step = history.steps[_STEPS[what]]
    thing = step.names.get(path)
    if thing is None or history.things[thing].kind is not FileKind.FILE:
        return None
    return step.inodes[thing].content


def _atom_holds(atom: Atom, observation: Observation, history: History) -> bool | None:
    match atom:
        case Mounts():
            return True
        case Exists(name):
            return _is_there(name.path, observation)
        case Absent(name):
            return not _is_there(name.path, observation) and _hidden_by(name.path, observation) is None
        case Same(one, other):
            first, second = _node(one.path, observation), _node(other.path, observation)
            return first is not None and second is not None and first.inode == second.inode != 0
        case Content(name):
            node = _node(name.path, observation)
            if node is None or node.kind != FileKind.FILE or len(node.content) != node.size:
                return False
            return _content_is(atom, node.content, history)
        case StatIs(name) | Attribute(name):
            node = _node(name.path, observation)
            if node is None:
                return False
            return _stat_is(atom, node) if isinstance(atom, StatIs) else _attribute_is(atom, node, history)


def _stat_is(atom: StatIs, node: Node) -> bool | None:
    match atom.field:
        case StatField.SIZE | StatField.LINKS:
            number = node.size if atom.field is StatField.SIZE else node.links
            return node.kind == FileKind.FILE and bool(_RELATIONS[atom.relation](number, atom.value))
        case StatField.MODE:
            return None if node.mode is None else node.mode == atom.value
        case StatField.OWNER:
            return None if node.uid is None else (node.uid, node.gid) == atom.value
        case StatField.TIME:
            return None if node.mtime is None else node.mtime == atom.value * NANOSECONDS
        case StatField.TARGET:
            return node.kind == FileKind.SYMLINK and node.target == atom.value


def _attribute_is(atom: Attribute, node: Node, history: History) -> bool:
    what, path = atom.source.what, atom.name.path
    if isinstance(what, int):
        step = history.steps[what]
        path, _attribute = attribute_set_by(history.operations[what - 1]) or (path, "")
    else:
        step = history.steps[_STEPS[what]]
    thing = step.names.get(path, step.handles.get(path))
    expected = None if thing is None else step.inodes[thing].xattrs.get(atom.attribute)
    return node.xattrs.get(atom.attribute) == expected


def _content_is(wanted: Content, found: bytes, history: History) -> bool:
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
    assert file is not None  # check() has raised an error if the file is missing
    if wanted.prefix:
        return file.startswith(found)
    return found[within.start : within.stop] == file[within.start : within.stop] if within else found == file


def _node(path: str, observation: Observation) -> Node | None:
    return (observation.tree or {}).get(path)


def _is_there(path: str, observation: Observation) -> bool:
    return path == "/" or _node(path, observation) is not None


def _hidden_by(path: str, observation: Observation) -> str | None:
    """Return a directory above ``path`` that bob cannot list, or None if bob can list all of them."""
    tree = observation.tree or {}
    folders = ["/"] + [path[:end] for end in range(1, len(path)) if path[end] == "/"]
    for folder in folders:
        node = tree.get(folder)
        is_faulty = node is not None and node.kind == FileKind.DIRECTORY and node.fault is not None
        # The fault may be of an attribute only: bob has then listed the directory's names.
        if is_faulty and not any(other != folder and other.startswith(folder.rstrip("/") + "/") for other in tree):
            return folder
    return None


def _deciding(test: Formula, observation: Observation, history: History) -> Iterator[Atom]:
    match test:
        case Not(inner):
            yield from _deciding(inner, observation, history)
        case And(left, right) | Or(left, right):
            # One side may decide: a true side of an `or`, or a false side of an `and`. Otherwise both sides decide.
            decisive = isinstance(test, Or)
            sides = [side for side in (left, right) if holds(side, observation, history) is decisive]
            for side in sides or (left, right):
                yield from _deciding(side, observation, history)
        case _:
            yield test


def _found(path: str, observation: Observation) -> str:
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
