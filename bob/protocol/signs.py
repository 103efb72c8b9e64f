"""Signs that the effect of a call is in a crash state, or missing from it. A unit is a name, a size, or a range of
contents. Each call that changes a unit gives it a value, and all these values in order are the unit's history. Suppose
that, in the crash state, a unit has a certain value of its history. Then the call that made this value has persisted,
and so have all earlier calls on the unit, but no later one. If two calls gave the unit this same value, it may come
from the first or from the second of them. Then the unit does not show whether the second call and the calls between the
two have persisted."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from bob.observe.observation import Node, Presence
from bob.protocol.effects import AT_FIRST, Effects, StoredBytes, TracedFile, Version

BLOCK = 4096
SECTOR = 512


class Signs:
    """The signs in one crash state. A call changes units (a name, a size, a range of contents). From the value of each
    of these units, bob concludes whether the call has persisted. ``unmade`` has the calls that began only after the
    kernel had sent the last write that the crash state has. Such a call may give a unit the same value as an earlier
    call. If the state shows this value, bob concludes that the earlier call has persisted, but not the later one."""

    def __init__(self, calls: Iterable[int], unmade: Collection[int] = ()) -> None:
        self._unmade = unmade
        self._of: dict[int, list[Presence]] = {call: [] for call in calls}
        self._strange: dict[int, list[bytes]] = {}

    def take(self, calls: Sequence[int], matches: Sequence[bool], shown: bytes = b"") -> None:
        """Add to the signs what one unit (a name, a size, a range of contents) says about the ``calls`` that change it.
        ``matches[k]`` says whether the crash state shows the value that ``calls[k]`` made. ``shown`` is the value that
        the crash state shows; :meth:`parts` uses it if no call made it."""
        places = {place for place, is_match in enumerate(matches) if is_match}
        made = made_by_then(calls, places, self._unmade)
        for place, call in enumerate(calls):
            if call != AT_FIRST:
                self.say(call, presence_at(place, made))
                if not places:
                    self._strange.setdefault(call, []).append(shown)

    def say(self, call: int, says: Presence) -> None:
        self._of[call].append(says)

    def is_missing(self, call: int) -> bool:
        """Return whether the call is certainly missing: there are signs of it, and all of them say that it is
        missing."""
        return set(self._of.get(call, ())) == {Presence.NONE}

    def said(self) -> set[Presence]:
        return {says for several in self._of.values() for says in several}

    def presences(self) -> dict[int, Presence]:
        found = {call: _together(set(said)) for call, said in self._of.items()}
        return {
            call: Presence.NONE if effect is Presence.UNDECIDED and call in self._unmade else effect
            for call, effect in found.items()
        }

    def parts(self) -> dict[int, object]:
        """Return, for each call that persisted in part, a value that stands for that part. Equal values mean the same
        part."""
        presences = self.presences()
        return {
            call: (tuple(said), tuple(self._strange.get(call, ())))
            for call, said in self._of.items()
            if presences[call] is Presence.PARTIAL
        }


def presence_at(place: int, shown: Collection[int]) -> Presence:
    """Return how much of a call has persisted, as one unit shows it. The call made the value at index ``place`` in the
    unit's history. ``shown`` has the indexes of the values that the unit may have in the crash state."""
    if not shown:
        return Presence.PARTIAL
    if min(shown) >= place:
        return Presence.FULL
    return Presence.NONE if max(shown) < place else Presence.UNDECIDED


def made_by_then(calls: Sequence[int], shown: set[int], unmade: Collection[int]) -> set[int]:
    """Return the indexes in ``shown`` whose calls had begun before the crash, or all of ``shown`` if none of the calls
    had begun. ``unmade`` has the calls that had not begun. ``calls[k]`` is the call that made the value with index
    k."""
    return {place for place in shown if calls[place] not in unmade} or shown


def _together(said: set[Presence]) -> Presence:
    clear = said - {Presence.UNDECIDED}
    if not clear:
        return Presence.UNDECIDED
    return clear.pop() if len(clear) == 1 else Presence.PARTIAL


def file_signs(signs: Signs, effects: Effects, number: int, file: TracedFile, node: Node | None) -> None:
    """Add to ``signs`` what a crash state says about the calls that change ``file``. ``node`` is the file in the crash
    state, or None if the file was not found. If the file was not found, and all calls that gave it a name are missing
    from the state, then bob counts the calls that change ``file`` as missing, too. If the file was not found, but some
    call that gave it a name may have persisted, the calls that change ``file`` are undecided."""
    if node is None:
        made = [call for _entry, _place, call in effects.leading_to(number)]
        is_missing = bool(made) and AT_FIRST not in made and all(map(signs.is_missing, made))
        for history in (file.sizes, file.stored, file.modes):
            for change in history:
                if change.call != AT_FIRST:
                    signs.say(change.call, Presence.NONE if is_missing else Presence.UNDECIDED)
        return
    if len(file.sizes) > 1:
        _size_signs(signs, file.sizes, node.size)
    if len(file.modes) > 1 and node.mode is not None:
        calls = [change.call for change in file.modes]
        signs.take(calls, [change.value == node.mode for change in file.modes], str(node.mode).encode())
    for start, end, over in _stored_in_pieces(effects, number, file):
        _content_signs(signs, file, node, start, end, over)


def is_elsewhere_as_at_first(effects: Effects, number: int, file: TracedFile, node: Node) -> bool:
    """Return whether ``node`` (``file`` in a crash state) still has its initial content at all places that no call
    writes to. Such a place beyond the initial end of the file must have zeros."""
    at, length = 0, len(node.content)
    stored = _stored_in_pieces(effects, number, file)
    for begin, piece in (node.pieces or {}).items():  # pieces that the initial file had are stores of it, too
        beside = bytearray(piece)
        for start, end, _over in stored:
            first, last = max(start - begin, 0), min(end - begin, len(piece))
            if first < last:
                beside[first:last] = bytes(last - first)
        if any(beside):
            return False
    for start, end, _over in [*stored, (length, length, [])]:
        there = node.content[at:start]
        if there and there != padded(file.content, at, at + len(there)):
            return False
        at = max(at, end)
    return True


def _size_signs(signs: Signs, sizes: Sequence[Version[int]], size: int) -> None:
    calls = [change.call for change in sizes]
    values = [change.value for change in sizes]
    if size in values or values != sorted(values):
        signs.take(calls, [value == size for value in values], str(size).encode())
        return
    later = [
        change.call for change in sizes if change.value > size
    ]  # the file only grew, and its size is within the growth by the first of these calls
    for change in sizes:
        if change.call != AT_FIRST:
            is_first = bool(later) and change.call == later[0]
            says = Presence.PARTIAL if is_first else Presence.NONE if change.call in later else Presence.FULL
            signs.say(change.call, says)


StoredPiece = tuple[int, int, list[Version[StoredBytes]]]


def _stored_in_pieces(effects: Effects, number: int, file: TracedFile) -> list[StoredPiece]:
    """Cut a file into pieces at the ends of all stores. Return each piece that some store covers, as (start, end, the
    stores that cover it, in order)."""
    key = _stored_in_pieces, number, len(file.stored)
    if key not in effects.memory:
        found: list[StoredPiece] = [(start, end, []) for start, end in pieces(file.stored, BLOCK)]
        starts = [start for start, _end, _over in found]
        for change in file.stored:
            for place in range(bisect_left(starts, change.value.start), bisect_left(starts, change.value.end)):
                found[place][2].append(change)
        effects.memory[key] = found
    made: list[StoredPiece] = effects.memory[key]
    return made


def _content_signs(
    signs: Signs, file: TracedFile, node: Node, start: int, end: int, over: Sequence[Version[StoredBytes]]
) -> None:
    history = [Version(AT_FIRST, padded(file.content, start, end))]
    history += [Version(call, _cut(stored, start, end)) for call, stored in over]
    there = node.read(start, end).ljust(end - start, b"\0")
    matches = [value == there for _call, value in history]
    if not any(matches) and end - start > SECTOR:
        for first in range(start, end, SECTOR):
            _content_signs(signs, file, node, first, min(first + SECTOR, end), over)
        return
    signs.take([call for call, _value in history], matches, there)


def pieces(stored: Iterable[Version[StoredBytes]], grain: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a file that calls have stored to, as (start, end). The ranges are cut at both ends of each
    store, and at multiples of ``grain`` (bytes)."""
    edges: set[int] = set()
    begins = Counter[int]()  # by offset: the number of stores that begin there, minus the number that end there
    for change in stored:
        start, end = change.value.start, change.value.end
        edges.update((start, end), range(start - start % grain + grain, end, grain))
        begins.update({start: 1})
        begins.subtract({end: 1})
    inside = 0
    for start, end in pairwise(sorted(edges)):
        inside += begins[start]
        if inside:
            yield start, end


def padded(content: bytes, start: int, end: int) -> bytes:
    return content[start:end].ljust(end - start, b"\0")


def _cut(stored: StoredBytes, start: int, end: int) -> bytes:
    if stored.data is None:
        return bytes(end - start)
    return stored.data[start - stored.start : end - stored.start]
