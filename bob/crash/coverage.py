"""How many crash states there are, and how many of them are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bob import counts
from bob.typed import typed


@dataclass(frozen=True, slots=True)
class States:
    """How much was explored.

    ``legal_writes`` and ``legal_sectors`` are the exact numbers of legal states: of whole writes, and of these and torn
    ones together. ``explored`` counts those of them that a verdict rests on: their outcome is known, and they mount.
    ``explored_writes`` are the whole ones among these (None in documents that are older than the field).
    ``unmountable`` and ``unmountable_writes`` count in the same way states of which it is known that they do not mount:
    nothing is judged on them. ``exhaustive`` is ``"writes"``, ``"sectors"`` or None: every legal state of this kind is
    among the explored (docs/design.md, section 5). ``mounted`` is how many states were really mounted; the outcomes of
    the others were predicted.

    Of a workload that was observed and not judged yet, ``explored`` and ``exhaustive`` speak of all states with a known
    outcome, and the counts of unmountable ones are 0 (:func:`bob.claim.counting.judged` tells them apart).
    """

    explored: int = 0
    legal_writes: int = 0
    legal_sectors: int = 0
    exhaustive: str | None = None
    mounted: int = 0
    explored_writes: int | None = None
    unmountable: int = 0
    unmountable_writes: int = 0

    @property
    def legal_torn(self) -> int:
        """How many legal states have a torn write."""
        return self.legal_sectors - self.legal_writes

    @property
    def explored_torn(self) -> int | None:
        """How many of the explored have a torn write; None where that is not known."""
        return None if self.explored_writes is None else self.explored - self.explored_writes


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


def states_from_json(document: Mapping[str, Any]) -> States:
    """The states in a plain document, where counts may be text (:mod:`bob.counts`).

    One without ``mounted`` is older than predictions: all of its states were mounted. One without ``explored_writes``
    does not tell whole states from torn ones, nor those that do not mount from the others.
    """
    known = {name: counts.read(document[name]) for name in ("explored", "legal_writes", "legal_sectors")}
    more = {name: counts.read(document.get(name, 0)) for name in ("unmountable", "unmountable_writes")}
    mounted = counts.read(document.get("mounted", known["explored"]))
    whole = document.get("explored_writes")
    found = States(
        **known,
        **more,
        exhaustive=document["exhaustive"],
        mounted=mounted,
        explored_writes=None if whole is None else counts.read(whole),
    )
    return typed(found)
