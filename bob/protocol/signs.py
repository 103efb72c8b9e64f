"""What the units of the effects say of the calls that change them.

A unit shows one value. Where that is a value of its history, the calls up to it are there, and those after it are
missing; where the same value stands in the history twice, the calls between are unclear. A call whose units do not
agree is partly there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from bob.observe.observation import Presence
from bob.protocol.effects import AT_FIRST


class Signs:
    """By call, what its units say, of ``calls``. Where a unit has the same value several times, it is none that an
    ``unmade`` call has made."""

    def __init__(self, calls: Iterable[int], unmade: Collection[int] = ()) -> None:
        self._unmade = unmade
        self._of: dict[int, list[Presence]] = {call: [] for call in calls}
        self._strange: dict[int, list[bytes]] = {}

    def take(self, calls: Sequence[int], matches: Sequence[bool], shown: bytes = b"") -> None:
        """Take in that a unit shows those values of its history that are among the ``matches``; ``shown`` is what it
        shows where it is none of them."""
        places = {place for place, is_match in enumerate(matches) if is_match}
        made = made_by_then(calls, places, self._unmade)
        for place, call in enumerate(calls):
            if call != AT_FIRST:
                self.say(call, presence_at(place, made))
                if not places:
                    self._strange.setdefault(call, []).append(shown)

    def say(self, call: int, says: Presence) -> None:
        """Take in what a unit says of a call."""
        self._of[call].append(says)

    def is_missing(self, call: int) -> bool:
        """Whether all that was taken in says so, and something was."""
        return set(self._of.get(call, ())) == {Presence.NONE}

    def said(self) -> set[Presence]:
        """What any unit says of any call."""
        return {says for several in self._of.values() for says in several}

    def presences(self) -> dict[int, Presence]:
        """What all units of each call say together."""
        found = {call: _together(set(said)) for call, said in self._of.items()}
        return {
            call: Presence.NONE if effect is Presence.UNDECIDED and call in self._unmade else effect
            for call, effect in found.items()
        }

    def parts(self) -> dict[int, object]:
        """Of each call that is partly there, which part of it is: two with the same part are equal."""
        presences = self.presences()
        return {
            call: (tuple(said), tuple(self._strange.get(call, ())))
            for call, said in self._of.items()
            if presences[call] is Presence.PARTIAL
        }


def presence_at(place: int, shown: Collection[int]) -> Presence:
    """What a unit says of the call with this ``place`` in its history, where it may be at any of those ``shown``."""
    if not shown:
        return Presence.PARTIAL
    if min(shown) >= place:
        return Presence.FULL
    return Presence.NONE if max(shown) < place else Presence.UNDECIDED


def made_by_then(calls: Sequence[int], shown: set[int], unmade: Collection[int]) -> set[int]:
    """The places at which a history may be: not those that ``unmade`` calls have made, if there are others."""
    return {place for place in shown if calls[place] not in unmade} or shown


def _together(said: set[Presence]) -> Presence:
    clear = said - {Presence.UNDECIDED}
    if not clear:
        return Presence.UNDECIDED
    return clear.pop() if len(clear) == 1 else Presence.PARTIAL
