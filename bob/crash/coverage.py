"""How many crash states there are, and how many of them are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bob.counts import Count
from bob.schema import older

_ALL = -1


@dataclass(frozen=True, slots=True)
class States:
    """How much was explored.

    ``legal_writes`` and ``legal_sectors`` are the exact numbers of legal states: of whole writes, and of these and torn
    ones together. ``explored`` counts those of them that a verdict rests on: their outcome is known, and they mount.
    ``explored_writes`` are the whole ones among these (None in documents that are older than the field).
    ``unmountable`` and ``unmountable_writes`` count in the same way states of which it is known that they do not mount:
    nothing is judged on them. ``exhaustive`` is ``"writes"``, ``"sectors"`` or None: every legal state of this kind is
    among the explored (docs/design.md, section 5). ``mounted`` is how many states were really mounted; the outcomes of
    the others were predicted. A document without it is older than predictions: all were mounted.

    Of a workload that was observed and not judged yet, ``explored`` and ``exhaustive`` speak of all states with a known
    outcome, and the counts of unmountable ones are 0 (:func:`bob.claim.verdict.judged_states` tells them apart).
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
        """How many legal states have a torn write."""
        return self.legal_sectors - self.legal_writes

    @property
    def explored_torn(self) -> int | None:
        """How many of the explored have a torn write; None where that is not known."""
        return None if self.explored_writes is None else self.explored - self.explored_writes


NOTHING = States(0, 0, 0, None)
"""There is nothing to explore."""


def total(parts: Sequence[States]) -> States:
    """The states of several workloads together; exhaustive only as far as each of them is."""
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
