"""Directory trees in one form, so that trees that a model allows and trees that a crash left can be compared. A
*micro-operation* is a step of a workload that persists as a whole or not at all. The *history* of a workload numbers
the files and directories that the workload makes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from bob.apm.micro import AttributeCell, NameCell, TreeCell, Value, Workings
from bob.claim.property.sightings import ROOT, NamePlace
from bob.observe.observation import Node, Observation
from bob.workload.history import MODE, OWNER, TIME, FileKind


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """The file, directory or link that a name leads to. ``content`` is the content of the whole file. ``same`` is the
    first of all names that lead to the same file, so that hard links are visible. Comparisons ignore ``thing`` (the
    number in the workload's history), ``mode`` and ``owner`` (user, group), because observed trees have other values
    there, or none."""

    kind: str
    content: bytes = b""
    target: str = ""
    xattrs: tuple[tuple[str, bytes], ...] = ()
    same: str = ""
    thing: int = field(default=0, compare=False)
    mode: int = field(default=0, compare=False)
    owner: tuple[int, int] = field(default=(0, 0), compare=False)


ModelTree = tuple[tuple[str, ModelEntry], ...]  # (path, entry), by path, without the root


def first_names(listing: Mapping[str, int]) -> dict[int, str]:
    first: dict[int, str] = {}
    for path, thing in listing.items():
        first.setdefault(thing, path)
    return first


def nodes(tree: ModelTree) -> Mapping[str, Node]:
    """Return a model's tree in the form of an observed tree, without the root. The inode number of a file in the result
    is the number of the file in the workload's history, plus one."""
    names = Counter(entry.thing for _path, entry in tree)
    return {
        path: Node(
            entry.kind,
            entry.thing + 1,
            names[entry.thing],
            len(entry.content),
            entry.content,
            entry.target,
            dict(entry.xattrs),
            mode=entry.mode,
            uid=entry.owner[0],
            gid=entry.owner[1],
        )
        for path, entry in tree
    }


def observed_tree(observation: Observation) -> ModelTree:
    tree = dict(sorted((observation.tree or {}).items()))
    first = first_names({path: node.inode for path, node in tree.items() if node.kind == FileKind.FILE and node.inode})
    return tuple(
        (
            path,
            ModelEntry(
                node.kind,
                node.content[: node.size].ljust(node.size, b"\0") if node.kind == FileKind.FILE else b"",
                node.target,
                tuple(sorted(node.xattrs.items())),
                first.get(node.inode, path) if node.kind == FileKind.FILE else "",
            ),
        )
        for path, node in tree.items()
        if path != "/"
    )


class Remnant:
    """The names and attributes that remain when a set of micro-operations has persisted. ``shown`` has, for each cell
    (such as a name), the last micro-operation on that cell that persisted. ``taken`` is the workload, taken apart into
    micro-operations."""

    def __init__(self, taken: Workings, shown: Mapping[TreeCell, int]) -> None:
        self._taken, self._shown = taken, shown
        self._inside: dict[int, list[NamePlace]] = {}
        for place in taken.places.bearers:
            self._inside.setdefault(place[0], []).append(place)

    def listing(self) -> dict[str, int]:
        found: dict[str, int] = {}
        self._list(ROOT, "", found, frozenset({ROOT}))
        return dict(sorted(found.items()))

    def _list(self, directory: int, path: str, found: dict[str, int], above: frozenset[int]) -> None:
        for place in self._inside.get(directory, ()):
            if (thing := self._bearer(place)) is None:
                continue
            found[f"{path}/{place[1]}"] = thing
            if self._taken.history.things[thing].kind is FileKind.DIRECTORY and thing not in above:
                self._list(thing, f"{path}/{place[1]}", found, above | {thing})

    def _bearer(self, place: NamePlace) -> int | None:
        value = self._value(NameCell(place), self._taken.places.initially(place))
        assert not isinstance(value, bytes)
        return value

    def without_content(self, identity: int) -> ModelEntry:
        thing = self._taken.history.things[identity]
        inode = self._taken.history.steps[0].inodes.get(identity)
        before = {} if inode is None else dict(inode.xattrs)
        names = {cell.name for cell in self._shown if isinstance(cell, AttributeCell) and cell.thing == identity}
        names -= {MODE, OWNER, TIME}  # comparisons of trees ignore these
        values = {name: self._value(AttributeCell(identity, name), before.get(name)) for name in {*before, *names}}
        xattrs = tuple(sorted((name, value) for name, value in values.items() if isinstance(value, bytes)))
        mode, owner = self._status(identity)
        target = "" if thing.kind is FileKind.FILE else thing.target
        return ModelEntry(thing.kind.value, b"", target, xattrs, thing=identity, mode=mode, owner=owner)

    def _status(self, identity: int) -> tuple[int, tuple[int, int]]:
        made = max(self._taken.history.things[identity].born, 0)
        attributes = self._taken.history.steps[made].inodes[identity].attributes
        mode = self._value(AttributeCell(identity, MODE), attributes[MODE])
        owner = self._value(AttributeCell(identity, OWNER), attributes[OWNER])
        assert isinstance(mode, bytes) and isinstance(owner, bytes)
        uid, gid = map(int, owner.split(b":"))
        return int(mode, 8), (uid, gid)

    def _value(self, cell: TreeCell, initially: Value) -> Value:
        return self._taken.operations[self._shown[cell]].value if cell in self._shown else initially
