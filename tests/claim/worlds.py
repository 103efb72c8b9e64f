"""Trees that a crash can leave, made without the oracle: any of a workload's operations there, left out, or torn.

This is a model of its own, on purpose: names are places in directories, contents are written where the operation wrote
them in program order, and the inode numbers of files that are gone are used again, as ext4 does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

from bob.claim.property.presence import Oracle
from bob.claim.property.readings import inodes_of_things
from bob.observe.observation import Node, Observation
from bob.workload import operations as ops
from bob.workload.history import FileKind, History
from bob.workload.operations import How, Workload
from bob.workload.simulation import simulate

from .executed import executed

SECTOR = 512
BLOCK = 4096
FIRST_TIME = 1_650_000_000_000_000_000
"""When all of the initial tree was modified (ns since 1970)."""


def first_modes(history: History) -> dict[int, int]:
    """The permission bits, before any operation, of what an operation sets them of; of others they are not observed."""
    found = {}
    for number, operation in enumerate(history.operations, start=1):
        if isinstance(operation, ops.Chmod):
            thing = history.steps[number].thing(operation.path)
            inode = history.steps[0].inodes.get(thing)
            made = 0o755 if history.things[thing].kind is FileKind.DIRECTORY else 0o644
            found[thing] = made if inode is None else inode.mode
    return found


def first_owners(history: History) -> dict[int, tuple[int, int]]:
    """Owner and group, the same way."""
    found = {}
    for number, operation in enumerate(history.operations, start=1):
        if isinstance(operation, ops.Chown):
            thing = history.steps[number].thing(operation.path)
            inode = history.steps[0].inodes.get(thing)
            found[thing] = (0, 0) if inode is None else inode.owner
    return found


@dataclass
class World:
    """A recorded workload: its history, and the inode number of each thing."""

    history: History
    numbers: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, workload: Workload) -> World:
        world = cls(simulate(workload)[0])
        used: set[int] = set()
        for step in world.history.steps:
            alive = set(step.names.values())
            used &= {world.numbers[thing] for thing in alive if thing in world.numbers}
            for thing in sorted(alive - set(world.numbers)):
                world.numbers[thing] = next(number for number in range(11, 9999) if number not in used)
                used.add(world.numbers[thing])
        return world

    def oracle(self) -> Oracle:
        """The oracle of this workload, told what a recording tells it."""
        return Oracle(self.history, inodes_of_things(self.history, *self.known))

    @property
    def known(self) -> tuple[dict[str, int], dict[str, int]]:
        """The inode numbers by name before and after the operations."""
        first, last = (
            {path: self.numbers[thing] for path, thing in self.history.steps[at].names.items()} for at in (0, -1)
        )
        return first, last

    @property
    def all(self) -> range:
        """The numbers of the operations."""
        return range(1, len(self.history.operations) + 1)

    def step(self, number: int, *, shuffled: int = 0) -> Observation:
        """The tree after operation ``number``, as an observation; ``shuffled`` adds to the inode numbers."""
        return self.crash(range(1, number + 1), shuffled=shuffled)

    def is_possible(self, there: Iterable[int]) -> bool:
        """Whether these can be there without the others: what they name was made, and no inode is two things."""
        done = set(there)
        alive = {thing.identity for thing in self.history.things if thing.born < 0 or thing.born in done}
        for number in done:
            if not set(self.named(number)) <= alive:
                return False
        places = executed(self.history, done)
        if places is None:
            return False
        for number in done:
            # What is mapped is there.
            operation = self.history.operations[number - 1]
            if isinstance(operation, ops.Write) and operation.how is How.MMAP:
                data = self.contents(other for other in done if other < number)
                if len(data.get(self.history.data[number][0], b"")) < self.history.data[number][1] + operation.length:
                    return False
        found: dict[int, int] = {}
        return all(found.setdefault(self.numbers[thing], thing) == thing for thing in places.values())

    def named(self, number: int) -> list[int]:
        """The things that an operation names: those at its places, their directories, the file that it writes."""
        things = [thing for place, thing in self.changed(number).items() if thing is not None]
        things += [place[0] for place in self.changed(number)]
        before, after = self.history.steps[number - 1].inodes, self.history.steps[number].inodes
        return things + [thing for thing in after if before.get(thing) != after[thing]]

    def at(self, step: int) -> dict[tuple[int, str], int]:
        """What is at each place after operation ``step``."""
        names = self.history.steps[step].names
        return {
            (names[path.rsplit("/", 1)[0] or "/"], path.rsplit("/", 1)[1]): thing
            for path, thing in names.items()
            if path != "/"
        }

    def changed(self, number: int) -> dict[tuple[int, str], int | None]:
        """The places that operation ``number`` changes."""
        before, after = self.at(number - 1), self.at(number)
        return {place: after.get(place) for place in sorted({*before, *after}) if before.get(place) != after.get(place)}

    def places(self, there: Iterable[int], torn: Mapping[int, Random] | None = None) -> dict[tuple[int, str], int]:
        """What is at each place when these operations are there; those in ``torn`` in part only."""
        places: dict[tuple[int, str], int] = dict(self.at(0))
        for number in sorted(there):
            for place, thing in self.changed(number).items():
                if torn and number in torn and torn[number].random() < 0.5:
                    continue
                if thing is None:
                    places.pop(place, None)
                else:
                    places[place] = thing
        return places

    def crash(
        self, there: Iterable[int], torn: Mapping[int, Random] | None = None, *, shuffled: int = 0
    ) -> Observation:
        """The tree when these operations are there, those in ``torn`` (also in ``there``) in part only."""
        torn = torn or {}
        places = None if torn else executed(self.history, there)
        if places is None:  # no set that can have happened: each name as the operation left it that is there
            places = self.places(there, torn)
        data = self.contents(there, torn)
        attributes = {thing: dict(inode.xattrs) for thing, inode in self.history.steps[0].inodes.items()}
        modes, owners = first_modes(self.history), first_owners(self.history)
        times = self.times(there)
        for number in sorted(there):
            operation = self.history.operations[number - 1]
            if isinstance(operation, ops.Setxattr):
                thing = self.history.steps[number].thing(operation.path)
                value = self.history.steps[number].inodes[thing].xattrs[operation.name]
                attributes.setdefault(thing, {})[operation.name] = value
            if isinstance(operation, ops.Chmod):
                modes[self.history.steps[number].thing(operation.path)] = operation.mode
            if isinstance(operation, ops.Chown):
                owners[self.history.steps[number].thing(operation.path)] = operation.uid, operation.gid
            if isinstance(operation, ops.Removexattr):
                thing = self.history.steps[number].thing(operation.path)
                attributes.setdefault(thing, {}).pop(operation.name, None)
        links: dict[int, int] = {}
        for thing in places.values():
            links[thing] = links.get(thing, 0) + 1
        tree: dict[str, Node] = {}
        folders = [("", 0, frozenset({0}))]
        while folders:
            folder, directory, above = folders.pop()
            for (parent, name), thing in places.items():
                if parent != directory:
                    continue
                path, made = f"{folder}/{name}", self.history.things[thing]
                content = bytes(data.get(thing, b"")) if made.kind is FileKind.FILE else b""
                tree[path] = Node(
                    made.kind.value,
                    self.numbers[thing] + shuffled * (7 * thing + 1),
                    links[thing] if made.kind is FileKind.FILE else 1,
                    len(content),
                    content,
                    made.target,
                    attributes.get(thing, {}),
                    None,
                    modes.get(thing),
                    *owners.get(thing, (None, None)),
                    times.get(thing),
                )
                if made.kind is FileKind.DIRECTORY and thing not in above:
                    folders.append((path, thing, above | {thing}))
        return Observation(True, None, tree)

    def times(self, there: Iterable[int]) -> dict[int, int]:
        """The times of modification (ns; 0 for those of the recording) of what an operation sets that of."""
        found: dict[int, int] = {}
        for number, operation in enumerate(self.history.operations, start=1):
            if isinstance(operation, ops.Utimes):
                thing = self.history.steps[number].thing(operation.path)
                first = self.history.steps[0].inodes.get(thing)
                modified = None if first is None else first.modified
                found[thing] = 0 if first is None else FIRST_TIME if modified is None else modified * 1_000_000_000
        for number in sorted(there):
            operation = self.history.operations[number - 1]
            if isinstance(operation, ops.Utimes):
                found[self.history.steps[number].thing(operation.path)] = operation.seconds * 1_000_000_000
                continue
            folders = {place[0] for place in self.changed(number)}
            if isinstance(operation, ops.Write | ops.CopyRange | ops.Reflink | ops.Truncate | ops.Fallocate):
                folders.add(self.history.steps[number].thing(operation.path))
            found.update(dict.fromkeys(folders & set(found), 0))
        return found

    def contents(self, there: Iterable[int], torn: Mapping[int, Random] | None = None) -> dict[int, bytearray]:
        """What is in each file when these operations are there; those in ``torn`` in part only."""
        data = {thing: bytearray(inode.content) for thing, inode in self.history.steps[0].inodes.items()}
        for number in sorted(there):
            self.write(number, data, (torn or {}).get(number))
        return data

    def write(self, number: int, data: dict[int, bytearray], torn: Random | None) -> None:
        """What operation ``number`` does to contents; torn: to some sectors, and the size only grows to one of them."""
        operation, after = self.history.operations[number - 1], self.history.steps[number]
        match operation:
            case ops.Write(_path, _offset, length, how):
                thing, offset, _length = self.history.data[number]
                file = data.setdefault(thing, bytearray())
                written = after.inodes[thing].content[offset : offset + length]
                if how is How.TRUNC and (torn is None or torn.random() < 0.7):
                    del file[:]
                end, before = offset + length, self.history.steps[number - 1].inodes.get(thing)
                size = 0 if before is None or how is How.TRUNC else len(before.content)
                if torn is not None and size < end and torn.random() < 0.6:
                    end = torn.randint(min(size, offset) + 1, end)  # it grows the file by a part of what it adds
                if how is not How.MMAP and end > len(file):
                    file.extend(bytes(end - len(file)))
                for at in range(offset - offset % SECTOR, offset + length, SECTOR):
                    start, stop = max(at, offset), min(at + SECTOR, offset + length, len(file))
                    if start < stop and (torn is None or torn.random() < 0.5):
                        file[start:stop] = written[start - offset : stop - offset]
                    elif start < stop and torn is not None and torn.random() < 0.2:
                        file[start:stop] = b"\xa5" * (stop - start)
            case ops.CopyRange() | ops.Reflink():
                thing, offset, length = self.history.data[number]
                file = data.setdefault(thing, bytearray())
                written = after.inodes[thing].content[offset : offset + length]
                file.extend(bytes(max(0, offset + length - len(file))))
                for at in range(offset - offset % SECTOR, offset + length, SECTOR):
                    start, stop = max(at, offset), min(at + SECTOR, offset + length)
                    if torn is None or torn.random() < 0.5:
                        file[start:stop] = written[start - offset : stop - offset]
            case ops.Fallocate(path, offset, length, ops.Allocation.COLLAPSE | ops.Allocation.INSERT as mode):
                file = data.setdefault(after.thing(path), bytearray())
                was = bytes(file)
                if offset < len(file) and mode is ops.Allocation.INSERT:
                    file[offset:offset] = bytes(length)
                elif offset < len(file):
                    del file[offset : offset + length]
                for at in range(offset, len(file), BLOCK) if torn is not None else ():
                    if torn.random() < 0.5:  # this block is still, or already, where it was
                        room = min(BLOCK, len(file) - at)
                        file[at : at + room] = was[at : at + room].ljust(room, b"\0")
            case ops.Truncate(path, size):
                file = data.setdefault(after.thing(path), bytearray())
                if torn is not None and torn.random() < 0.5:  # what is to be cut off is zeros, the size is as it was
                    stop = min(len(file), -(-(size + 1) // BLOCK) * BLOCK)
                    file[size:stop] = bytes(max(0, stop - size))
                    return
                file.extend(bytes(max(0, size - len(file))))
                del file[size:]
            case ops.Fallocate(path, offset, length, mode):
                file = data.setdefault(after.thing(path), bytearray())
                if mode in (ops.Allocation.GROW, ops.Allocation.ZERO):
                    file.extend(bytes(max(0, offset + length - len(file))))
                if mode in (ops.Allocation.GROW, ops.Allocation.KEEP):
                    return
                for at in range(offset - offset % SECTOR, offset + length, SECTOR):
                    start, stop = max(at, offset), min(at + SECTOR, offset + length, len(file))
                    if start < stop and (torn is None or torn.random() < 0.5):
                        file[start:stop] = bytes(stop - start)
