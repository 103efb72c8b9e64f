"""What of one operation is in an observation, as data and in words: its findings, and how much of it they show.

An operation's effect has parts: names, the file itself, its size, its data, its attributes. A crash may leave each of
them on its own. So nobody may say that an operation survived because something of it is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from bob.claim.property.contents import Fact
from bob.observe.observation import Presence


class EffectPart(StrEnum):
    """A part of an operation's effect. ``FILE`` is that what it changed is there, and can be read."""

    NAME = "name"
    FILE = "file"
    SIZE = "size"
    DATA = "data"
    LINKS = "links"
    ATTRIBUTE = "attribute"


@dataclass(frozen=True, slots=True)
class EffectFact:
    """One fact of an operation in an observation, in words for people.

    ``plainly`` says in a sentence what was found, where there is a shorter one than what was found instead of what.
    ``suspects`` are those of which only a torn one explains it; it is known of none of them. ``is_unseen``: what it
    speaks of, or some of it, was out of sight. ``is_there``: something of the operation is there, though the fact is
    that it was torn; or may be, though others explain it. ``is_change``: in program order the operation changed it.
    """

    fact: Fact
    part: EffectPart
    about: str
    expected: str
    found: str
    suspects: frozenset[int] = frozenset()
    plainly: str = ""
    is_unseen: bool = False
    is_there: bool = False
    is_change: bool = True

    @property
    def words(self) -> str:
        """The finding in one line: what is there, and instead of what, where that is something else."""
        if self.plainly:
            return self.plainly
        said = f"{self.about}: {self.found or 'nothing'}"
        return said if self.fact is Fact.AFTER else f"{said} instead of {self.expected}"

    def blaming(self, number: int, suspects: frozenset[int]) -> EffectFact:
        """This finding about ``number`` where only a torn one of ``suspects`` explains it."""
        return replace(self, fact=Fact.NEITHER if suspects == {number} else Fact.EITHER, suspects=suspects)


class EffectExtent(StrEnum):
    """How much of an operation an observation shows.

    ``WHOLE``: all of it. ``PART``: something of it, and something of it is missing or torn. ``NOTHING``: all that it
    changed is as if it had not been performed. ``BROKEN``: what it changed is neither as before nor as after, and
    nothing there is its own. ``UNCLEAR``: other operations, or a torn one of several, explain some of it as well, or
    some of it is out of sight.
    """

    WHOLE = "whole"
    PART = "part"
    NOTHING = "nothing"
    BROKEN = "broken"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Account:
    """What of operation ``number`` an observation shows: every fact of it."""

    number: int
    findings: tuple[EffectFact, ...]

    @property
    def presence(self) -> Presence:
        """How the rules count it."""
        return presence_of({finding.fact for finding in self.findings})

    @property
    def there(self) -> tuple[EffectFact, ...]:
        """What is there, and by this operation alone."""
        return tuple(finding for finding in self.findings if finding.fact is Fact.AFTER)

    @property
    def lacking(self) -> tuple[EffectFact, ...]:
        """What is as if it had not been performed, or torn."""
        return tuple(finding for finding in self.findings if finding.fact in (Fact.BEFORE, Fact.NEITHER))

    @property
    def extent(self) -> EffectExtent:
        """How much of it is there."""
        torn = [finding for finding in self.findings if finding.fact is Fact.NEITHER]
        is_some = bool(self.there) or any(finding.is_there for finding in torn)
        suspected = any(finding.suspects - {self.number} for finding in self.findings)
        may_be_there = any(finding.is_there and finding.fact is Fact.BEFORE for finding in self.findings)
        untold = [finding for finding in self.findings if finding.fact is Fact.EITHER and finding.is_change]
        if is_some and self.lacking:
            return EffectExtent.PART
        if torn:
            return EffectExtent.BROKEN
        if is_some:
            is_whole = not suspected and not any(finding.is_unseen and finding.is_change for finding in self.findings)
            return EffectExtent.WHOLE if is_whole else EffectExtent.UNCLEAR
        is_told = self.lacking and not suspected and not untold and not may_be_there
        return EffectExtent.NOTHING if is_told else EffectExtent.UNCLEAR

    @property
    def details(self) -> str:
        """What is there, then what is not, shortly: two findings that are wrong, and up to two that are there. That a
        file is not there is not said again where its name is not."""
        lacks_name = any(finding.part is EffectPart.NAME for finding in self.lacking)
        wrong = [finding for finding in self.lacking if not (lacks_name and finding.part is EffectPart.FILE)][:2]
        there = self.there[:2] if self.extent in (EffectExtent.PART, EffectExtent.UNCLEAR) else ()
        told = (*there, *wrong) or self.findings[:2]
        return "; ".join(finding.words for finding in told)

    def lacks(self, who: str) -> str:
        """The sentence that not all of it is there; ``who`` is the operation in words. Of one that is whole, or of
        which that is not known, it says no more than that."""
        match self.extent:
            case EffectExtent.NOTHING:
                said = f"nothing of {who} is there"
            case EffectExtent.PART:
                said = f"only a part of {who} is there"
            case EffectExtent.BROKEN:
                said = f"{who} is neither there nor left out"
            case _:
                said = f"not all of {who} is there"
        return f"{said} ({self.details})"

    def appears(self, who: str) -> str:
        """The sentence that something of it is there; that it survived only where it is whole."""
        match self.extent:
            case EffectExtent.WHOLE:
                return f"{who} survived"
            case EffectExtent.PART:
                return f"a part of {who} is there ({self.details})"
            case EffectExtent.BROKEN:
                return f"{who} left a trace ({self.details})"
            case _:
                return f"at least a part of {who} is there ({self.details})"


def presence_of(facts: Iterable[Fact]) -> Presence:
    """What the facts of an operation say of it together."""
    said = set(facts)
    if Fact.NEITHER in said or {Fact.BEFORE, Fact.AFTER} <= said:
        return Presence.PARTIAL
    if Fact.BEFORE in said:
        return Presence.NONE
    return Presence.FULL if Fact.AFTER in said else Presence.UNDECIDED
