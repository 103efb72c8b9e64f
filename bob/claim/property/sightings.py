"""The files and directories behind the names in an observation (what the mount of a crash state showed).

A name is a *place*: a pair *(directory, base name)*. The directory is a number, not a path, so a move of a directory
does not change the names in it. Several files and directories (*things*) of the workload may have had the same name,
one after the other. bob distinguishes them by their inode numbers, or else by their contents. If bob cannot distinguish
them, the name may lead to any of these things."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from bob.claim.property.contents import FileStory
from bob.observe.observation import Node, Observation
from bob.workload.history import FileKind, History, HistoryStep, Thing
from bob.workload.operations import Rename, Replacing

ROOT = 0
NamePlace = tuple[int, str]  # (directory, base name)


class NamePlaces:
    """All names that occur in the history of a workload. For each step of the history, this class knows which file or
    directory each name leads to."""

    def __init__(self, history: History) -> None:
        self._steps: list[dict[NamePlace, int]] = []
        for number, step in enumerate(history.steps):
            is_as_before = number > 0 and step.names is history.steps[number - 1].names
            self._steps.append(self._steps[-1] if is_as_before else _places(step))
        self._things = history.things
        # For each operation, the places that it changes, and the things there afterwards.
        self.changes: list[dict[NamePlace, int | None]] = [{}]
        for before, after in zip(self._steps, self._steps[1:], strict=False):
            if before is after:
                self.changes.append({})
                continue
            changed = [place for place in {**before, **after} if before.get(place) != after.get(place)]
            self.changes.append({place: after.get(place) for place in sorted(changed)})
        self.bearers: dict[NamePlace, list[int]] = {}  # all things that each place ever had
        for number, there in enumerate(self._steps):
            for place, thing in there.items() if not number or there is not self._steps[number - 1] else ():
                bearers = self.bearers.setdefault(place, [])
                if thing not in bearers:
                    bearers.append(thing)
        # For each operation, the places that it changes, and all things that it may leave there.
        self.brought = self._brought(history)
        for brought in self.brought:
            for place, things in brought.items():
                new = sorted(thing for thing in things if thing is not None and thing not in self.bearers[place])
                self.bearers[place] += new

    def _brought(self, history: History) -> list[dict[NamePlace, frozenset[int | None]]]:
        """Return one mapping for each operation. Its keys are the names that the operation changes. Its values are the
        things that such a name may lead to afterwards. If an operation exchanges two names, each name may get any thing
        that the other name may have had."""
        first: dict[NamePlace, frozenset[int | None]] = {
            place: frozenset({thing}) for place, thing in self._steps[0].items()
        }
        may_have = dict(first)
        found: list[dict[NamePlace, frozenset[int | None]]] = [{}]
        nothing: frozenset[int | None] = frozenset({None})
        for operation, changes in zip(history.operations, self.changes[1:], strict=True):
            brought = {place: frozenset({thing}) for place, thing in changes.items()}
            if isinstance(operation, Rename) and operation.replacing is Replacing.EXCHANGE and changes:
                one, other = changes
                brought = {
                    one: brought[one] | (may_have.get(other, nothing) - nothing),
                    other: brought[other] | (may_have.get(one, nothing) - nothing),
                }
            for place, things in brought.items():
                may_have[place] = may_have.get(place, nothing) | things
            found.append(brought)
        return found

    def initially(self, place: NamePlace) -> int | None:
        return self._steps[0].get(place)

    def before(self, number: int, place: NamePlace) -> int | None:
        return self._steps[number - 1].get(place)

    def lasting(self) -> list[tuple[NamePlace, int]]:
        """Return the initial names that no operation changes, each with the file or directory that it leads to."""
        changed = frozenset().union(*self.changes)
        return sorted((place, thing) for place, thing in self._steps[0].items() if place not in changed)

    def of(self, thing: int) -> list[NamePlace]:
        """Return every name that the file or directory ``thing`` may have at some step of the history."""
        return [place for place, bearers in self.bearers.items() if thing in bearers]

    def changers(self, place: NamePlace) -> frozenset[int]:
        return frozenset(number for number, changed in enumerate(self.changes) if place in changed)

    def changers_in(self, directory: int) -> frozenset[int]:
        """Return the operations that change names in ``directory``, or that make, move or remove the directory."""
        own = set(self.of(directory))
        return frozenset(
            number
            for number, changed in enumerate(self.changes)
            if any(place in own or place[0] == directory for place in changed)
        )

    def is_made(self, thing: int) -> bool:
        return self._things[thing].born >= 0

    def is_removed(self, thing: int) -> bool:
        """Return whether an operation takes away a name of the file or directory ``thing``."""
        names = [list(step.values()).count(thing) for step in self._steps]
        return any(before > after for before, after in pairwise(names))

    def is_moved(self, thing: int) -> bool:
        """Return whether an operation changes a name of the file or directory ``thing``, or a name of a directory above
        it."""
        return thing != ROOT and any(self.changers(place) or self.is_moved(place[0]) for place in self.of(thing))


class Sightings:
    """The names in one observation. For each name, this class knows the files and directories (things) of the workload
    that the name may lead to. ``seen`` is the observation."""

    def __init__(
        self,
        places: NamePlaces,
        history: History,
        stories: Mapping[int, FileStory],
        inodes: Mapping[int, int],
        seen: Observation,
    ) -> None:
        self._places, self._history, self._stories, self._inodes = places, history, stories, inodes
        self._tree = seen.tree or {}
        self._who: dict[str, frozenset[int]] = {"/": frozenset({ROOT})}
        self._stable = False
        paths = sorted(path for path in self._tree if path != "/")
        self._stable = self._numbers_agree(paths)
        for path in paths:
            self._who[path] = self._identify(self._tree[path], self._bearers(path))
        self._at: dict[int, list[str]] = {}
        for path, things in self._who.items():
            for thing in things:
                self._at.setdefault(thing, []).append(path)

    def at(self, place: NamePlace) -> frozenset[int | None] | None:
        """Return the things of the workload that the name at ``place`` may lead to. None means unknown, for example
        because the directory cannot be listed. The set {None} means that the name does not exist. An empty set means
        that the name exists, but leads to none of the workload's things."""
        directory, name = place
        folders = self._certain(directory)
        if not folders:
            is_made, is_removed = self._places.is_made(directory), self._places.is_removed(directory)
            return frozenset({None}) if is_made and not is_removed and not self.may_be_there(directory) else None
        if self.is_broken(directory):
            return None
        paths = [path for folder in folders if (path := join(folder, name)) in self._tree]
        if not paths:
            return frozenset({None})
        return frozenset(thing for path in paths for thing in self._who[path])

    def node(self, thing: int) -> Node | None:
        """Return the file or directory ``thing`` as observed. Return None if it is missing, or if it is not certain
        which of the observed files is ``thing``."""
        paths = self._certain(thing)
        return self._tree.get(paths[0]) if paths else None

    def names(self, thing: int) -> int:
        """Return the number of observed names of the file ``thing``, including names that no operation gave it."""
        paths = self._certain(thing)
        inode = self._tree[paths[0]].inode if paths else 0
        files = ((path, node) for path, node in self._tree.items() if node.kind == FileKind.FILE)
        same = [path for path, node in files if inode and node.inode == inode]
        return len({*paths, *same})

    def may_be_there(self, thing: int) -> bool:
        return thing in self._at

    @property
    def strays(self) -> list[str]:
        return [path for path in sorted(self._tree) if path != "/" and not self._bearers(path)]

    def sighted(self) -> Iterator[tuple[str, Node, frozenset[int]]]:
        """Return every observed name in order, each with its node and with the things of the workload that it may lead
        to."""
        return ((path, node, self._who[path]) for path, node in sorted(self._tree.items()) if path != "/")

    def is_stray(self, path: str) -> bool:
        """Return whether ``path`` is a stray name: its directory may be one of the workload's, but the workload
        never had this name there."""
        return not self._bearers(path) and bool(self.folder_of(path))

    def folders_in(self, path: str) -> int:
        inside = (name for name, node in self._tree.items() if node.kind == FileKind.DIRECTORY)
        return sum(name != "/" and name.rpartition("/")[0] == path for name in inside)

    @property
    def root_fault(self) -> str | None:
        return self._fault("/")

    def folder_of(self, path: str) -> frozenset[int]:
        return self._who.get(path.rsplit("/", 1)[0] or "/", frozenset())

    def fault(self, place: NamePlace) -> str | None:
        """Return the kernel's error if the file or directory at ``place`` cannot be read."""
        return next((node.fault for node in self._nodes(place) if node.fault), None)

    def kind(self, place: NamePlace) -> str | None:
        return next((node.kind for node in self._nodes(place)), None)

    def _nodes(self, place: NamePlace) -> list[Node]:
        paths = (join(folder, place[1]) for folder in self._certain(place[0]))
        return [self._tree[path] for path in paths if path in self._tree]

    def is_broken(self, directory: int) -> bool:
        """Return whether ``directory`` exists but cannot be listed."""
        return any(self._fault(folder) for folder in self._at.get(directory, []))

    def _certain(self, thing: int) -> list[str]:
        return [path for path in self._at.get(thing, []) if len(self._who[path]) == 1]

    def _fault(self, path: str) -> str | None:
        return self._tree[path].fault if path in self._tree else None

    def _bearers(self, path: str) -> list[int]:
        name = path.rsplit("/", 1)[1]
        parents = self.folder_of(path)
        return sorted({thing for parent in parents for thing in self._places.bearers.get((parent, name), [])})

    def _numbers_agree(self, paths: Sequence[str]) -> bool:
        """Return whether most things still have their old inode numbers. Only things that no operation moves are
        compared. On some file systems, which do not store inode numbers but invent new ones at each mount, the result
        is False."""
        checked = agreeing = 0
        for path in paths:
            node, bearers = self._tree[path], self._bearers(path)
            self._who[path] = frozenset(bearers)
            if len(bearers) == 1 and node.inode and not self._places.is_moved(bearers[0]):
                checked += bearers[0] in self._inodes
                agreeing += self._inodes.get(bearers[0]) == node.inode
        return 2 * agreeing > checked

    def is_known_by_contents(self, path: str) -> bool:
        """Return whether the file ``path`` may be any of several things of the workload, and only its contents can show
        which of them it is."""
        return len(self._without_contents(self._tree[path], self._bearers(path))) > 1

    def _identify(self, node: Node, bearers: Iterable[int]) -> frozenset[int]:
        if node.kind == "unreadable":
            return frozenset(bearers)
        things = self._without_contents(node, bearers)
        if node.kind == FileKind.FILE and not node.fault and len(things) > 1:
            things = [thing for thing in things if self._stories[thing.identity].may_be(node.content)] or things
        return frozenset(thing.identity for thing in things)

    def _without_contents(self, node: Node, bearers: Iterable[int]) -> list[Thing]:
        things = [self._history.things[thing] for thing in bearers]
        things = [thing for thing in things if thing.kind.value == node.kind]
        if node.kind in (FileKind.SYMLINK, FileKind.OTHER) and not node.fault:
            things = [thing for thing in things if thing.target == node.target]
        if node.inode and self._stable:
            things = [thing for thing in things if self._inodes.get(thing.identity, node.inode) == node.inode]
        return things


def _places(step: HistoryStep) -> dict[NamePlace, int]:
    return {place_of(step.names, path): thing for path, thing in step.names.items() if path != "/"}


def place_of(names: Mapping[str, int], path: str) -> NamePlace:
    folder, name = path.rsplit("/", 1)
    return names[folder or "/"], name


def join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"
