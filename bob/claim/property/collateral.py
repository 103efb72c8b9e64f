"""Damage to names, bytes and attributes that no operation was to change.

The *suspects* of damage are the operations that may have done it. These are the operations on the damaged file or
directory. For a lost name, the operations on names in its directory are suspects, too. If no operation is on the
damaged file, the suspects are the operations whose data bob finds in this file, since they may have got its blocks. If
bob finds no such data either, the suspects are the operations on names in the file's directory.

Even an operation on a name may damage the contents of a file. On vfat a rename first writes the new name without a size
(``vfat_rename`` in fs/fat/namei_vfat.c). An unlink frees the file's clusters, and after a crash the name may still be
there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bob.claim.property.account import EffectPart
from bob.claim.property.attributes import Attributes
from bob.claim.property.contents import FileStory
from bob.claim.property.sightings import ROOT, NamePlace, NamePlaces, Sightings
from bob.observe.observation import Node
from bob.text import printable
from bob.trace.recording import Statuses
from bob.workload.history import FileKind, History
from bob.workload.pattern import describe, operations_in


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in an observation that cannot happen if every operation takes effect in full or not at all.
    ``suspects`` are the numbers of operations. If there are suspects, one of them was done only in part, or did more
    than it should. ``part`` says which part of the suspects' effect is damaged. None stands for collateral damage:
    damage to something that no operation was to change."""

    suspects: frozenset[int]
    about: str
    part: EffectPart | None = None


class Collateral:
    """A finder of collateral damage. ``touchers`` maps a file or directory to the operations on its names, on its
    contents, or on names in it."""

    def __init__(
        self,
        history: History,
        places: NamePlaces,
        stories: Mapping[int, FileStory],
        touchers: Mapping[int, frozenset[int]],
        statuses: Sequence[Statuses] = (),
    ) -> None:
        self._history, self._places, self._stories, self._touchers = history, places, stories, touchers
        self._attributes = Attributes(history, statuses)
        self._lasting = places.lasting()
        self._setters = _setters(history)
        self._links = _constant_links(history)
        changed = {thing.identity: _changes_state(history, thing.identity) for thing in history.things}
        # The facts of operations already report the faults of these files and directories.
        self._told = {
            thing
            for thing, is_changed in changed.items()
            if is_changed or places.changers_in(thing) or any(map(places.changers, places.of(thing)))
        }
        # Some operations change nothing: a file may be truncated to its own size.
        self._unchanged = {
            thing
            for thing, inode in history.steps[0].inodes.items()
            if all(thing not in step.inodes or step.inodes[thing].content == inode.content for step in history.steps)
        }

    def damage(self, seen: Sightings) -> Iterator[Damage]:
        yield from self._names(seen)
        if (fault := seen.root_fault) and ROOT not in self._told:
            yield Damage(frozenset(), f"/: {fault}")
        for path, node, things in seen.sighted():
            beside = self._beside(seen.folder_of(path))
            if not things:
                if seen.is_stray(path):
                    yield Damage(beside, f"the name {printable(path)}: {_what(node)}, which no operation made")
                continue
            if node.fault:
                if not things & self._told:
                    near = frozenset().union(*(self._touchers[thing] for thing in things))
                    yield Damage(near or beside, f"{path}: {node.fault}")
                continue
            if node.kind == "unreadable":
                continue
            # A name may lead to any of several things. It is damaged only if it would be damaged with each of them.
            found = [list(self._of(thing, path, node, beside, seen)) for thing in sorted(things)]
            if all(found):
                yield from found[0]
            if node.kind == FileKind.DIRECTORY:
                wrong = self._attributes.links_of_directory(node, seen.folders_in(path))
                if wrong is not None:
                    yield Damage(frozenset().union(*map(self._movers_in, things)), f"of {path}: {wrong}")

    def _names(self, seen: Sightings) -> Iterator[Damage]:
        for place, thing in self._lasting:
            there = seen.at(place) if seen.may_be_there(place[0]) else None
            if there is None or thing in there:
                continue
            suspects = self._touchers[thing] | self._beside(frozenset({place[0]}))
            now = "does not exist" if there == {None} else f"is not {described(self._history, thing)}"
            yield Damage(suspects, f"{self._path(place)} {now}, though no operation changed this name")

    def _of(self, thing: int, path: str, node: Node, beside: frozenset[int], seen: Sightings) -> Iterator[Damage]:
        near = self._touchers[thing] or beside
        for wrong in self._attributes.wrong(thing, node, is_touched=bool(self._touchers[thing])):
            yield Damage(near, f"of {path} {wrong}")
        if node.kind == FileKind.FILE:
            yield from self._contents(thing, path, node, beside)
            links = self._links.get(thing)
            # A partial rename may leave both names. A link count is right if it agrees with the observed names.
            if links is not None and node.links not in (links, seen.names(thing)):
                yield Damage(near, f"the number of names of {path}: {node.links} instead of {links}")
        first = self._history.steps[0].inodes.get(thing)
        expected = {} if first is None else first.xattrs
        for name in sorted({*node.xattrs, *expected} - self._setters.get(thing, set())):
            if node.xattrs.get(name) != expected.get(name):
                now = "absent" if name not in node.xattrs else "another" if name in expected else "there"
                yield Damage(near, f"the attribute {name} of {path}: {now}, though no operation set it")

    def _contents(self, thing: int, path: str, node: Node, beside: frozenset[int]) -> Iterator[Damage]:
        story, touchers = self._stories[thing], self._touchers[thing]
        if len(node.content) < node.size:
            about = f"what can be read of {path}: {len(node.content):,} B instead of {node.size:,} B"
            yield Damage(touchers or beside, about)
            return
        for start, stop, suspects in story.outside(node.content):
            found = node.content[start:stop]
            others = frozenset(n for n in operations_in(found) if n <= len(self._history.operations))
            about = f"bytes {start:,} to {stop:,} of {path}: {describe(found, start)}, where no operation wrote"
            # An operation that removes or moves a name may have touched all of the file.
            yield Damage(suspects | (touchers - story.writers) or others or beside, about)
            return
        if thing in self._unchanged and node.size != len(story.initial):
            about = f"the size of {path}: {node.size:,} B instead of {len(story.initial):,} B"
            yield Damage(touchers or beside, about)
        elif touchers > story.sizers and not story.may_have(node.size):
            yield Damage(touchers, f"the size of {path}: {node.size:,} B, which no operation leaves")

    def _movers_in(self, directory: int) -> frozenset[int]:
        is_directory = {thing.identity for thing in self._history.things if thing.kind is FileKind.DIRECTORY}
        own = [place for place, bearers in self._places.bearers.items() if place[0] == directory]
        found = [place for place in own if is_directory.intersection(self._places.bearers[place])]
        return frozenset().union(*map(self._places.changers, found))

    def _beside(self, directories: frozenset[int]) -> frozenset[int]:
        """Return the operations that changed names in these ``directories``, or that moved such a directory itself."""
        return frozenset().union(*(self._places.changers_in(directory) for directory in directories))

    def _path(self, place: NamePlace) -> str:
        folders = [path for path, thing in self._history.steps[0].names.items() if thing == place[0]]
        return f"{folders[0].rstrip('/')}/{place[1]}"


def described(history: History, thing: int) -> str:
    """Return words for a file or directory (``thing``): its kind, and the earliest name that it had."""
    about = history.things[thing]
    steps = ([path for path, bearer in step.names.items() if bearer == thing] for step in history.steps)
    first = min(next((names for names in steps if names), about.names))
    return f"the {about.kind.value} first known as {first}"


def _what(node: Node) -> str:
    return f"a {node.kind} of {node.size:,} B" if node.kind == FileKind.FILE else f"a name of kind {node.kind}"


def _setters(history: History) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for before, after in pairwise(history.steps):
        for thing, inode in after.inodes.items():
            was = before.inodes.get(thing)
            if was is not None and was.xattrs != inode.xattrs:
                names = {*was.xattrs, *inode.xattrs}
                changed = {name for name in names if was.xattrs.get(name) != inode.xattrs.get(name)}
                found.setdefault(thing, set()).update(changed)
    return found


def _constant_links(history: History) -> dict[int, int]:
    """Return the files whose number of names is the same at all steps of the workload's history, each with that number.
    Steps where no name refers to the file do not count."""
    found: dict[int, set[int]] = {}
    for step in history.steps:
        for thing, inode in step.inodes.items():
            if thing != ROOT and history.things[thing].kind is FileKind.FILE and inode.links:
                found.setdefault(thing, set()).add(inode.links)
    return {thing: links.pop() for thing, links in found.items() if len(links) == 1}


def _changes_state(history: History, thing: int) -> bool:
    return any(before.inodes.get(thing) != after.inodes.get(thing) for before, after in pairwise(history.steps))
