"""What the units of the effects say of the calls that change them. If a unit shows a value of its history, the calls up
to it are there, and later ones are missing; where the value occurs twice, the calls between are unclear."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from bob.observe.observation import Presence
from bob.protocol.effects import AT_FIRST


class Signs:
    """What units say, by call. Of several equal values of a unit, it shows none that an ``unmade`` call has made."""

    def __init__(self, calls: Iterable[int], unmade: Collection[int] = ()) -> None:
        self._unmade = unmade
        self._of: dict[int, list[Presence]] = {call: [] for call in calls}
        self._strange: dict[int, list[bytes]] = {}

    def take(self, calls: Sequence[int], matches: Sequence[bool], shown: bytes = b"") -> None:
        """Take in which values of its history a unit ``matches``; ``shown`` is its value if it is none of them."""
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
        """Return whether something was taken in, and all of it says that the call is missing."""
        return set(self._of.get(call, ())) == {Presence.NONE}

    def said(self) -> set[Presence]:
        """Return what any unit says of any call."""
        return {says for several in self._of.values() for says in several}

    def presences(self) -> dict[int, Presence]:
        """Return what all units of each call say together."""
        found = {call: _together(set(said)) for call, said in self._of.items()}
        return {
            call: Presence.NONE if effect is Presence.UNDECIDED and call in self._unmade else effect
            for call, effect in found.items()
        }

    def parts(self) -> dict[int, object]:
        """Return which part of each partial call is there: equal ones are the same part."""
        presences = self.presences()
        return {
            call: (tuple(said), tuple(self._strange.get(call, ())))
            for call, said in self._of.items()
            if presences[call] is Presence.PARTIAL
        }


def presence_at(place: int, shown: Collection[int]) -> Presence:
    """Return what a unit says of the call at ``place`` in its history, of which it may show the places ``shown``."""
    if not shown:
        return Presence.PARTIAL
    if min(shown) >= place:
        return Presence.FULL
    return Presence.NONE if max(shown) < place else Presence.UNDECIDED


def made_by_then(calls: Sequence[int], shown: set[int], unmade: Collection[int]) -> set[int]:
    """Return the ``shown`` places without those of ``unmade`` calls, if any are left."""
    return {place for place in shown if calls[place] not in unmade} or shown


def _together(said: set[Presence]) -> Presence:
    clear = said - {Presence.UNDECIDED}
    if not clear:
        return Presence.UNDECIDED
    return clear.pop() if len(clear) == 1 else Presence.PARTIAL
