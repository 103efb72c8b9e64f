"""The presence oracle, which decides whether nothing, a part or all of operation k is in an observation. This is the
*presence* of operation k.

An operation's effect consists of parts. One part, for example, is that a name refers to a certain file or directory.
Another part is that a file has a certain size, certain bytes or a certain attribute. For each part, the oracle asks
which sets of operations would leave what bob observed (:mod:`bob.claim.property.contents` and ``possible``). The answer
is a *fact*:

* AFTER: only sets with operation k would leave it.
* BEFORE: only sets without k would leave it.
* EITHER: some sets with k and some sets without k would leave it.
* NEITHER: no set of whole operations would leave it, but a half-done k can.

If one of several operations must be half-done, but bob cannot say which, all of them are *suspects* (:class:`Damage`).
If in doubt, bob assumes that the file system is right: a false accusation is the worst error (docs/design.md)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise

from bob.claim.property.account import Account, EffectExtent, EffectFact, EffectPart, presence_of
from bob.claim.property.collateral import Collateral, Damage, described
from bob.claim.property.contents import Fact, FileStory, fact_of
from bob.claim.property.possible import OperationGroup, found, groups, unexplained
from bob.claim.property.sightings import NamePlace, NamePlaces, Sightings
from bob.claim.property.subjects import BLOCK_BYTES
from bob.observe.observation import Node, Observation, Presence
from bob.trace.recording import Statuses
from bob.workload import operations as ops
from bob.workload.history import MODE, OWNER, TIME, FileKind, History, Inode, Thing, attribute_set_by
from bob.workload.pattern import CELL_BYTES, describe


@dataclass(frozen=True, slots=True)
class Reading:
    """An observation as the oracle reads it.

    ``presences[k - 1]`` is the presence of operation k. ``whole`` has the operations that are there in full. ``damage``
    is damage by an operation that was done only in part. bob knows several operations that may have done this damage,
    but not which of them did. ``prefixes`` has the writes that are there up to a boundary of a block, and no further.
    ``collateral`` is damage to things that no operation was to change. :mod:`bob.claim.property.collateral` says which
    operations are its suspects."""

    presences: tuple[Presence, ...]
    damage: tuple[Damage, ...] = ()
    prefixes: frozenset[int] = frozenset()
    collateral: tuple[Damage, ...] = ()
    whole: frozenset[int] = frozenset()

    def of(self, number: int) -> Presence:
        return self.presences[number - 1]


class Oracle:
    """The presence oracle of one recorded workload. ``statuses`` has the statuses (mode, owner, time, link count) of
    all names, first from before the operations and then from after them. It is empty if they are unknown."""

    def __init__(self, history: History, inodes: Mapping[int, int], statuses: Sequence[Statuses] = ()) -> None:
        self._history = history
        self._inodes = inodes
        self._places = NamePlaces(history)
        self._stories = {thing.identity: FileStory(history, thing.identity) for thing in history.things}
        self._groups = groups(history, self._places)
        self._directory_operations = frozenset(
            number
            for number, operation in enumerate(history.operations, start=1)
            if isinstance(operation, ops.DIRECTORY_OPERATIONS)
        )
        touchers = {thing.identity: self._touchers(thing.identity) for thing in history.things}
        self._changing = frozenset().union(*touchers.values())
        self._collateral = Collateral(history, self._places, self._stories, touchers, statuses)

    def read(self, observation: Observation) -> Reading:
        seen = self._sightings(observation)
        presences, damage, whole = [], [], set()
        for number in range(1, len(self._history.operations) + 1):
            account = Account(number, tuple(self._findings(number, seen, explain=False)))
            presences.append(account.presence)
            damage += [Damage(f.suspects, f.words, f.part) for f in account.findings if f.suspects - {number}]
            if account.extent is EffectExtent.WHOLE:
                whole.add(number)
        collateral = list(self._collateral.damage(seen))
        torn = [number for number, presence in enumerate(presences, start=1) if presence is Presence.PARTIAL]
        for group in unexplained(self._groups, seen, torn):
            # No row about names covers a file that a write makes.
            is_of_names = self._directory_operations.issuperset(group.numbers)
            (damage if is_of_names else collateral).append(self._unexplained(group, seen))
        partial = [number for number in self._history.data if presences[number - 1] is Presence.PARTIAL]
        prefixes = frozenset(number for number in partial if self._leaves_prefix(number, seen))
        several = tuple(dict.fromkeys(damage)), prefixes, tuple(dict.fromkeys(collateral))
        return Reading(tuple(presences), *several, frozenset(whole))

    def is_mixed_by_sectors(self, one: Observation, other: Observation) -> bool:
        """Return whether two sectors are enough to show each breach in a mixture of the two observations. A mixture
        has, for each sector of data, the bytes of ``one`` or of ``other``; everything else is equal. The answer does
        not hold for the rule of durability, since this rule may depend on all sectors of an operation.

        Each sector of a mixture shows facts about operations. To break any other rule, two facts are enough: BEFORE and
        AFTER of one operation, or one fact about each of two operations. So two sectors are enough, unless something
        else depends on the data. This method checks that nothing does. There must be no damage, no file that bob can
        identify only by its contents, and no set of names that only a torn operation explains."""
        if one.tree is None or other.tree is None or one.tree.keys() != other.tree.keys():
            return False
        seen = self._sightings(one)
        if next(unexplained(self._groups, seen, ()), None) is not None:
            return False
        for path, node, things in seen.sighted():
            beside = other.tree[path]
            if node == beside:
                continue
            is_alike = replace(node, content=b"") == replace(beside, content=b"") and node.kind == FileKind.FILE
            if not is_alike or len(things) != 1 or seen.is_known_by_contents(path) or node.size != len(node.content):
                return False
            if not self._stories[min(things)].is_mixed_by_bytes(node.content, beside.content):
                return False
        readings = self.read(one), self.read(other)
        return not any(reading.damage or reading.collateral for reading in readings)

    def account(self, number: int, observation: Observation) -> Account:
        """Return, in words, every fact that ``observation`` shows of operation ``number``."""
        return Account(number, tuple(self._findings(number, self._sightings(observation), explain=True)))

    def _sightings(self, observation: Observation) -> Sightings:
        return Sightings(self._places, self._history, self._stories, self._inodes, observation)

    def _findings(self, number: int, seen: Sightings, *, explain: bool) -> Iterator[EffectFact]:
        names = [self._name(number, place, seen) for place in self._places.changes[number]]
        yield from names
        before, after = self._history.steps[number - 1], self._history.steps[number]
        for identity, now in sorted(after.inodes.items()):
            thing, was = self._history.things[identity], before.inodes.get(identity)
            if thing.kind is FileKind.DIRECTORY and was is not None and was.attributes != now.attributes:
                yield from self._of_directory(number, thing, was, now, seen)
            if thing.kind is not FileKind.FILE or was == now:
                continue
            node, finding = self._find(number, thing, seen)
            if node is None:
                # If the operation takes the last name away, the file should be gone.
                yield replace(finding, is_change=now.links > 0 or was is None)
                continue
            if was is None:
                yield from self._made(number, thing, node, is_named=all(name.fact is not Fact.BEFORE for name in names))
            elif was.links != now.links and now.links > 0 and node.links != seen.names(identity):
                yield self._links(number, thing, node)
            if number in self._stories[identity].writers:
                yield from self._contents(number, thing, was, now, node, explain=explain)
            yield from self._attributes(number, thing, was, now, node)

    def _unexplained(self, group: OperationGroup, seen: Sightings) -> Damage:
        names = zip(group.places, found(group, seen), strict=True)
        about = [f"{name} is {self._who(there)}" for (_folder, name), there in names if there is not None]
        return Damage(frozenset(group.numbers), f"of the names, {', '.join(about)}", EffectPart.NAME)

    def _name(self, number: int, place: NamePlace, seen: Sightings) -> EffectFact:
        places = self._places
        now = places.changes[number][place]
        path, earlier = self._path(number, place), {places.initially(place), places.before(number, place)}
        about, expected = f"the name {path}", self._who({now})
        finding = EffectFact(Fact.EITHER, EffectPart.NAME, about, expected, "out of sight", is_unseen=True)
        found, fault = seen.at(place), seen.fault(place)
        if now is not None and self._history.things[now].born != number and not seen.may_be_there(place[0]):
            # The operation puts a name into a directory that is not there. It may be complete all the same: only its
            # name cannot be reached.
            return finding
        if found is None:
            return finding.blaming(number, self._touchers(place[0])) if seen.is_broken(place[0]) else finding
        if fault or not found:
            suspects = places.changers(place).union(*(self._touchers(thing) for thing in found if thing is not None))
            kind = seen.kind(place)
            finding = replace(finding, is_unseen=False)
            there = ("something unreadable" if kind == "unreadable" else f"a {kind}") + (f" ({fault})" if fault else "")
            return replace(finding, found=there).blaming(number, suspects)
        values = {other: places.brought[other][place] for other in sorted(places.changers(place))}
        plainly = self._plainly(path, found, now, earlier)
        finding = replace(finding, found=self._who(found), plainly=plainly, is_unseen=False)
        if not found & frozenset({places.initially(place)}).union(*values.values()):
            return finding.blaming(number, frozenset(values))
        return replace(finding, fact=_compare(found, {places.initially(place)}, values, number))

    def _find(self, number: int, thing: Thing, seen: Sightings) -> tuple[Node | None, EffectFact]:
        """Return a file or directory that operation ``number`` changed, as bob observed it. Also return the
        fact that its existence shows about the operation. If bob cannot read the file, or it does not exist, return
        None instead of it."""
        identity, places = thing.identity, self._places
        about = f"the file {thing.label}"
        plainly = f"{about} is not there"
        finding = EffectFact(Fact.EITHER, EffectPart.FILE, about, "there", "not there", plainly=plainly, is_unseen=True)
        node = seen.node(identity)
        if node is not None and node.fault:
            finding = replace(finding, expected="readable", found=node.fault, plainly="")
            return None, finding.blaming(number, self._touchers(identity))
        if node is not None or seen.may_be_there(identity) or places.is_removed(identity):
            return node, finding
        is_hidden = any(seen.at(place) is None for place in places.of(identity))
        if places.is_made(identity):
            may_be_there = is_hidden or thing.is_born_unnamed
            return None, finding if may_be_there else replace(finding, fact=Fact.BEFORE)
        if places.is_moved(identity):
            return None, finding
        directory = places.of(identity)[0][0]
        beside = places.changers_in(directory)
        suspects = self._changing if is_hidden and not beside else beside | self._touchers(identity)
        return None, finding.blaming(number, suspects)

    def _made(self, number: int, thing: Thing, node: Node, *, is_named: bool) -> Iterator[EffectFact]:
        name = thing.label
        if is_named:
            yield EffectFact(Fact.AFTER, EffectPart.FILE, f"the file {name}", "there", "there")
        if not self._stories[thing.identity].writers and node.size:
            yield EffectFact(Fact.NEITHER, EffectPart.SIZE, f"the size of {name}", "0 B", f"{node.size:,} B")

    def _links(self, number: int, thing: Thing, node: Node) -> EffectFact:
        """Return the fact that the number of names of a file shows about operation ``number``. This fact takes into
        account that any other operation that changes this number may be lost."""
        counts = [step.inodes[thing.identity].links for step in self._history.steps if thing.identity in step.inodes]
        first = len(self._history.steps) - len(counts)
        steps = enumerate(pairwise(counts), start=1)
        changes = {first + at: after - before for at, (before, after) in steps if after != before}
        without = {counts[0]}
        for other, change in changes.items():
            without |= set() if other == number else {links + change for links in without}
        is_after = node.links in {links + changes[number] for links in without}
        name = thing.label
        expected = str(self._history.steps[number].inodes[thing.identity].links)
        finding = EffectFact(Fact.EITHER, EffectPart.LINKS, f"the number of names of {name}", expected, str(node.links))
        if not is_after and node.links not in without:
            return finding.blaming(number, frozenset(changes))
        return replace(finding, fact=fact_of(without=node.links in without, along=is_after))

    def _contents(
        self, number: int, thing: Thing, was: Inode | None, now: Inode, node: Node, *, explain: bool
    ) -> Iterator[EffectFact]:
        story, name = self._stories[thing.identity], thing.label
        fact, suspects = story.size(number, node.size)
        if not story.may_have(node.size) and self._touchers(thing.identity) > story.sizers:
            # No change of the contents can leave this size, so it is collateral damage.
            fact, suspects = Fact.EITHER, frozenset()
        length_before = 0 if was is None else len(was.content)
        size = EffectFact(
            fact,
            EffectPart.SIZE,
            f"the size of {name}",
            f"{len(now.content):,} B",
            f"{node.size:,} B",
            suspects,
            is_there=story.is_partly(number, node.size, length_before),
            is_change=was is None or length_before != len(now.content),
        )
        if number not in self._history.data:
            yield size
            return
        _thing, start, length = self._history.data[number]
        if len(node.content) < min(node.size, start + length):
            expected, found = f"{node.size:,} B", f"{len(node.content):,} B"
            yield size
            finding = EffectFact(Fact.EITHER, EffectPart.DATA, f"what can be read of {name}", expected, found)
            yield finding.blaming(number, story.writers)
            return
        data = self._data(number, thing, node, explain=explain)
        if story.is_entangled and presence_of({fact, data.fact}) is Presence.PARTIAL:
            yield size.blaming(number, story.writers)  # bob cannot say which of these operations is torn
            return
        yield size
        is_as_before = was is not None and was.content[start : start + length] == now.content[start : start + length]
        yield replace(data, is_change=not is_as_before and start < len(node.content))

    def _data(self, number: int, thing: Thing, node: Node, *, explain: bool) -> EffectFact:
        _thing, start, length = self._history.data[number]
        facts: set[Fact] = set()
        suspects: frozenset[int] = frozenset()
        for stretch in self._stories[thing.identity].data(number, node.content):
            facts.add(stretch.fact)
            suspects |= stretch.suspects
            if presence_of(facts) is Presence.PARTIAL:
                break
        content = node.content[start : start + length]
        found = describe(content, start) if explain or suspects else ""
        is_cut = start < len(node.content) < start + length
        is_there = Fact.AFTER in facts
        if Fact.NEITHER in facts:  # bytes that nothing explains may equal the operation's data by chance
            is_there = explain and self._has_cell_of(number, thing, content)
        return EffectFact(
            _FACTS[presence_of(facts)],
            EffectPart.DATA,
            f"bytes {start:,} to {start + length:,} of {thing.label}",
            f"the data of operation {number}",
            f"{found}, then the end of the file" if found and is_cut else found,
            suspects,
            is_unseen=is_cut,
            is_there=is_there,
        )

    def _has_cell_of(self, number: int, thing: Thing, content: bytes) -> bool:
        """Return whether ``content``, the bytes in the range of operation ``number``, has data that this operation
        changed. At least one whole cell must be there. A cell is 16 bytes of the pattern that bob writes, and shows
        which operation wrote it."""
        _thing, start, length = self._history.data[number]
        before, after = (self._history.steps[step].inodes.get(thing.identity) for step in (number - 1, number))
        was, own = (b"" if inode is None else inode.content[start : start + length] for inode in (before, after))
        cells = (slice(at, at + CELL_BYTES) for at in range(0, len(content) - CELL_BYTES + 1, CELL_BYTES))
        return any(content[cell] == own[cell] != was[cell] for cell in cells)

    def _of_directory(self, number: int, thing: Thing, was: Inode, now: Inode, seen: Sightings) -> Iterator[EffectFact]:
        node = seen.node(thing.identity)
        if node is not None and node.fault:
            finding = EffectFact(Fact.EITHER, EffectPart.FILE, f"the directory {thing.label}", "readable", node.fault)
            yield finding.blaming(number, self._touchers(thing.identity))
        elif node is not None:
            yield from self._attributes(number, thing, was, now, node)

    def _attributes(self, number: int, thing: Thing, was: Inode | None, now: Inode, node: Node) -> Iterator[EffectFact]:
        before, after = now.attributes if was is None else was.attributes, now.attributes
        own = attribute_set_by(self._history.operations[number - 1])
        for attribute in sorted({*before, *after}):
            if before.get(attribute) == after.get(attribute):
                continue
            # A change of contents sets a later time, so bob does not ask for the time that this operation set.
            if attribute != TIME or own is not None:
                yield self._attribute(number, thing, attribute, node)

    def _attribute(self, number: int, thing: Thing, attribute: str, node: Node) -> EffectFact:
        values: dict[int, object] = {}
        made = max(thing.born, 0)
        inodes = [step.inodes[thing.identity] for step in self._history.steps[made:]]
        steps = [None] * made + [inode.attributes.get(attribute) for inode in inodes]
        first = steps[made]
        for other, operation in enumerate(self._history.operations, start=1):
            path, name = attribute_set_by(operation) or ("", "")
            if name == attribute and self._history.steps[other].thing(path) == thing.identity:
                values[other] = steps[other]
        found = node.attributes.get(attribute)
        is_time, is_status = attribute == TIME, attribute in (TIME, MODE, OWNER)
        if is_status:
            what = "time of modification" if is_time else attribute
            expected = (steps[number] or b"").decode()
            there = ("another" if is_time else "unknown") if found is None else found.decode()
        else:
            what = f"attribute {attribute}"
            expected, there = ("absent" if value is None else "set" for value in (values.get(number, found), found))
        finding = EffectFact(Fact.EITHER, EffectPart.ATTRIBUTE, f"the {what} of {thing.label}", expected, there)
        if is_status and (node.mtime if is_time else found) is None:
            return replace(finding, is_unseen=True)
        if is_time:
            # A change of the contents also sets the time, to any value.
            writers = self._stories[thing.identity].writers | self._places.changers_in(thing.identity)
            values |= dict.fromkeys(writers - set(values))
            found = found if found in [first, *values.values()] else None
        if found not in [first, *values.values()]:
            return finding.blaming(number, frozenset(values))
        one_each = {other: {value} for other, value in values.items()}
        return replace(finding, fact=_compare({found}, {first}, one_each, number))

    def _leaves_prefix(self, number: int, seen: Sightings) -> bool:
        """Return whether the write ``number`` is there up to a boundary of a block, and everything after that boundary
        is missing."""
        identity, offset, length = self._history.data[number]
        node = seen.node(identity)
        if node is None or node.fault:
            return False
        end = offset + length
        last_there, first_missing = offset, min(end, max(node.size, offset))
        for stretch in self._stories[identity].data(number, node.content):
            if stretch.fact is Fact.AFTER:
                last_there = stretch.stop
            elif stretch.fact is Fact.BEFORE:
                first_missing = min(first_missing, stretch.start)
            if stretch.fact is Fact.NEITHER:
                return False
        stops = {offset, end, *range(-(-last_there // BLOCK_BYTES) * BLOCK_BYTES, first_missing + 1, BLOCK_BYTES)}
        return any(
            last_there <= stop <= first_missing and self._stories[identity].is_size_with(number, node.size, stop)
            for stop in stops
        )

    def _touchers(self, identity: int) -> frozenset[int]:
        """Return the operations on the names, contents or attributes of a file or directory. For a directory, return
        also the operations on the names in it."""
        steps = enumerate(pairwise(self._history.steps), start=1)
        own = {number for number, (was, now) in steps if was.inodes.get(identity) != now.inodes.get(identity)}
        names = (self._places.changers(place) for place in self._places.of(identity))
        inside = self._places.changers_in(identity)
        return self._stories[identity].writers.union(own, inside, *names)

    def _path(self, number: int, place: NamePlace) -> str:
        for step in (self._history.steps[number], self._history.steps[number - 1]):
            for path, identity in step.names.items():
                if identity == place[0]:
                    return f"{path.rstrip('/')}/{place[1]}"
        return place[1]

    def _plainly(self, path: str, found: Set[int | None], now: int | None, earlier: Set[int | None]) -> str:
        """Return a short sentence about the name ``path``: that it exists, does not exist, or still exists. Return an
        empty text if none of these sentences says what bob found."""
        if found == {now} and (now is None or earlier == {None}):
            return f"{path} is gone" if now is None else f"{path} exists"
        if found == {None}:
            return f"{path} does not exist"
        if now is not None or not found <= earlier:
            return ""
        who = self._who(found)
        return f"{path} still exists" + ("" if who.endswith(f" {path}") else f": it is {who}")

    def _who(self, found: Iterable[int | None]) -> str:
        things = sorted(found, key=str)
        return " or ".join("nothing" if thing is None else described(self._history, thing) for thing in things)


_FACTS = {
    Presence.NONE: Fact.BEFORE,
    Presence.PARTIAL: Fact.NEITHER,
    Presence.FULL: Fact.AFTER,
    Presence.UNDECIDED: Fact.EITHER,
}


def _compare(found: Set[object], initially: Set[object], values: Mapping[int, Set[object]], number: int) -> Fact:
    """Return the fact that the values ``found`` show about operation ``number``. ``initially`` has the possible values
    before all operations. ``values`` has, for each operation, the values that it may leave."""
    without = set(initially).union(*(value for other, value in values.items() if other != number))
    along = set[object]().union(*(value for other, value in values.items() if other >= number))
    return fact_of(without=bool(without & found), along=bool(along & found))
