"""The account of one operation: every fact about the operation in an observation (the files that bob sees after a
crash).

An operation's effect has several parts, such as a name and a size. Each fact is about one part. After a crash, one part
may be on the disk and another part missing. So one part alone does not show that the whole operation survived."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from bob.claim.property.contents import Fact
from bob.observe.observation import Presence


class EffectPart(StrEnum):
    """A part of an operation's effect. ``FILE`` means that the changed file or directory exists and can be read."""

    NAME = "name"
    FILE = "file"
    SIZE = "size"
    DATA = "data"
    LINKS = "links"
    ATTRIBUTE = "attribute"


@dataclass(frozen=True, slots=True)
class EffectFact:
    """A fact about one part of an operation's effect, in words. The words ``about`` name the part, such as the size of
    a file. ``expected`` says in words how the part looks after the operation, and ``found`` how bob found it.
    ``plainly``, unless empty, is a shorter sentence in place of these words.

    ``suspects`` are operations. If there are suspects, at least one of them is torn. ``is_unseen`` is True if bob could
    not see all of the part. ``is_change`` is True if, without a crash, the part differs before and after the operation.
    ``is_there`` is True if the part shows some of the operation's effect. If ``fact`` is BEFORE (the part looks as if
    the operation had not happened), another operation may have left this instead."""

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
        if self.plainly:
            return self.plainly
        said = f"{self.about}: {self.found or 'nothing'}"
        return said if self.fact is Fact.AFTER else f"{said} instead of {self.expected}"

    def blaming(self, number: int, suspects: frozenset[int]) -> EffectFact:
        """Return a copy of this fact with other ``suspects``. At least one of them is torn, since nothing else explains
        what bob found. ``number`` is the operation that the fact is about."""
        return replace(self, fact=Fact.NEITHER if suspects == {number} else Fact.EITHER, suspects=suspects)


class EffectExtent(StrEnum):
    """A measure of an operation's effect in an observation: whether all, a part or nothing of it is there.

    ``PART``: a part of the effect is there, and another part is missing or torn. ``BROKEN``: a part is torn, and bob
    cannot say of any part that it is there. ``UNCLEAR``: other operations explain some of the effect as well, or bob
    cannot see some of it."""

    WHOLE = "whole"
    PART = "part"
    NOTHING = "nothing"
    BROKEN = "broken"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Account:
    """The account of operation ``number``. ``findings`` has every fact about the operation in an observation."""

    number: int
    findings: tuple[EffectFact, ...]

    @property
    def presence(self) -> Presence:
        return presence_of({finding.fact for finding in self.findings})

    @property
    def there(self) -> tuple[EffectFact, ...]:
        """The facts that show parts of the operation's effect. No other operation explains these parts."""
        return tuple(finding for finding in self.findings if finding.fact is Fact.AFTER)

    @property
    def lacking(self) -> tuple[EffectFact, ...]:
        """The facts that show a part of the operation's effect as missing or torn."""
        return tuple(finding for finding in self.findings if finding.fact in (Fact.BEFORE, Fact.NEITHER))

    @property
    def extent(self) -> EffectExtent:
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
        """Words about at most two facts that show a part of the effect, and at most two facts that show a missing part.
        If a file's name is missing, the words do not add that the file itself is missing."""
        lacks_name = any(finding.part is EffectPart.NAME for finding in self.lacking)
        wrong = [finding for finding in self.lacking if not (lacks_name and finding.part is EffectPart.FILE)][:2]
        there = self.there[:2] if self.extent in (EffectExtent.PART, EffectExtent.UNCLEAR) else ()
        told = (*there, *wrong) or self.findings[:2]
        return "; ".join(finding.words for finding in told)

    def lacks(self, who: str) -> str:
        """Return a sentence which says that not all of the operation's effect is there. In the sentence, ``who`` stands
        for the operation."""
        said = _LACKS.get(self.extent, "not all of {} is there")
        return f"{said.format(who)} ({self.details})"

    def appears(self, who: str) -> str:
        if self.extent is EffectExtent.WHOLE:
            return f"{who} survived"
        said = _APPEARS.get(self.extent, "at least a part of {} is there")
        return f"{said.format(who)} ({self.details})"


_LACKS = {
    EffectExtent.NOTHING: "nothing of {} is there",
    EffectExtent.PART: "only a part of {} is there",
    EffectExtent.BROKEN: "{} is neither there nor left out",
}
_APPEARS = {EffectExtent.PART: "a part of {} is there", EffectExtent.BROKEN: "{} left a trace"}


def presence_of(facts: Iterable[Fact]) -> Presence:
    said = set(facts)
    if Fact.NEITHER in said or {Fact.BEFORE, Fact.AFTER} <= said:
        return Presence.PARTIAL
    if Fact.BEFORE in said:
        return Presence.NONE
    return Presence.FULL if Fact.AFTER in said else Presence.UNDECIDED
