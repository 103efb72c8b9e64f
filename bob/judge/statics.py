"""Vulnerabilities of a program, counted as the tool ALICE counts them: by their place in the text of the program."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from bob.answer.answer import ReliedOn, Way
from bob.observe.observations import without_numbers
from bob.program.answer import Consequence
from bob.protocol.kinds import place_of, type_of


def told_once(relied_on: Iterable[ReliedOn]) -> list[tuple[ReliedOn, int]]:
    """Group the reliances that have the same kind and the same explaining sentence, since programs repeat calls. Return
    the first reliance of each group, and the size of the group."""
    every: dict[tuple[str, str], list[ReliedOn]] = {}
    for one in relied_on:
        every.setdefault((one.sentence, one.kind), []).append(one)
    return [(alike[0], len(alike)) for alike in every.values()]


@dataclass(frozen=True, slots=True, order=True)
class Static:
    """A vulnerability in the text of a program. ``type`` is one of :data:`bob.protocol.kinds.TYPES` (empty if not
    known). ``place`` says where in that text the program makes the call whose effect was incomplete after the crash."""

    type: str
    place: str


Statics = dict[Static, frozenset[Consequence]]


def together(*several: Statics) -> Statics:
    """Return the vulnerabilities of all given mappings as one mapping. The place of a vulnerability may lack the name
    of the function. If exactly one other vulnerability has the same type, and the same place with a function name, bob
    counts both as one."""
    every: Statics = {}
    for one, consequences in chain.from_iterable(found.items() for found in several):
        every[one] = every.get(one, frozenset()) | consequences
    for one in list(every):
        within = [other for other in every if other.type == one.type and other.place.startswith(f"{one.place} (")]
        if one.type and one.place and len(within) == 1:
            every[within[0]] |= every.pop(one)
    return every


def statics(harms: Iterable[Way]) -> Statics:
    """Return the vulnerabilities that ALICE would count in ``harms``, the ways to break a program (OSDI'14, section
    4.2). Harms at one place of the program are one vulnerability.

    Each harm has reasons. A reason is a set of calls that the program relies on. It has a type, such as atomicity of an
    append. All reasons of one type count as one vulnerability of the harm. The place of this vulnerability is that of
    the first missing call in the shortest reason. If one place has a vulnerability of ordering and one of durability,
    only the one of ordering counts. If no call explains a harm, the checker's sentence replaces the place. Hangs do not
    count."""
    found: Statics = {}
    for harm in harms:
        if harm.consequence is None or harm.consequence is Consequence.HANG:
            continue
        shortest: dict[str, ReliedOn] = {}
        for relied in sorted(harm.relied_on, key=lambda one: len(one.calls)):
            if type_of(relied.kind) and relied.calls:
                shortest.setdefault(type_of(relied.kind), relied)
        places = {kind: _place(relied) for kind, relied in shortest.items()}
        ordered = {place for kind, place in places.items() if kind.startswith("ordering")}
        told = [
            Static(kind, place)
            for kind, place in places.items()
            if not (kind.startswith("durability") and place in ordered)
        ]
        for one in told or [Static("", without_numbers(place_of(harm.evidence)))]:
            found[one] = found.get(one, frozenset()) | {harm.consequence}
    return together(found)


def _place(relied: ReliedOn) -> str:
    return place_of(relied.first.words if relied.first else "")
