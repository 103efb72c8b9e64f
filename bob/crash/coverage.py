"""The number of crash states, and of the known ones among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bob.counts import Count
from bob.schema import older

_ALL = -1


@dataclass(frozen=True, slots=True)
class States:
    """The extent of an exploration.

    ``legal_writes`` and ``legal_sectors`` are exact numbers of legal states: with whole writes, and with torn ones,
    too. ``explored`` counts those with a known outcome that mount; a verdict rests on these. ``explored_writes`` counts
    the whole ones of them (None in older documents). ``unmountable`` and ``unmountable_writes`` count known states that
    do not mount. ``exhaustive`` is ``"writes"``, ``"sectors"`` or None: every legal state of this kind was explored
    (docs/design.md, section 5). ``mounted`` states were really mounted; the other outcomes were predicted. In documents
    without it, all were mounted.

    Before judgement, ``explored`` and ``exhaustive`` count all states with a known outcome, and the unmountable counts
    are 0 (:func:`bob.claim.verdict.judged_states` separates them).
    """

    explored: Count
    legal_writes: Count
    legal_sectors: Count
    exhaustive: str | None = None
    mounted: Count = field(default_factory=older(_ALL))
    explored_writes: Count | None = field(default_factory=older(None))
    unmountable: Count = field(default_factory=older(0))
    unmountable_writes: Count = field(default_factory=older(0))

    def __post_init__(self) -> None:
        if self.mounted == _ALL:
            object.__setattr__(self, "mounted", self.explored)

    @property
    def legal_torn(self) -> int:
        """Return how many legal states have a torn write."""
        return self.legal_sectors - self.legal_writes

    @property
    def explored_torn(self) -> int | None:
        """Return how many explored states have a torn write; None if unknown."""
        return None if self.explored_writes is None else self.explored - self.explored_writes


NOTHING = States(0, 0, 0, None)
"""Nothing to explore."""


def total(parts: Sequence[States]) -> States:
    """Return the sum over several workloads; exhaustive only as far as each of them is."""
    levels = {part.exhaustive for part in parts}
    exhaustive = None if not parts or None in levels else "writes" if "writes" in levels else "sectors"
    whole = [part.explored_writes for part in parts]
    return States(
        explored=sum(part.explored for part in parts),
        legal_writes=sum(part.legal_writes for part in parts),
        legal_sectors=sum(part.legal_sectors for part in parts),
        exhaustive=exhaustive,
        mounted=sum(part.mounted for part in parts),
        explored_writes=None if None in whole else sum(count for count in whole if count is not None),
        unmountable=sum(part.unmountable for part in parts),
        unmountable_writes=sum(part.unmountable_writes for part in parts),
    )
