"""The numbers of legal and of explored crash states. An *outcome* is what a mount of a crash state shows."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bob.counts import Count
from bob.schema import older

_ALL = -1


@dataclass(frozen=True, slots=True)
class States:
    """The extent of an exploration, in numbers of legal states.

    ``legal_writes`` counts only legal states of whole writes; ``legal_sectors`` includes torn states. ``explored``
    counts the states with a known outcome. ``exhaustive`` is ``"writes"`` if bob explored every legal state of whole
    writes, and ``"sectors"`` if it also explored every torn state. None stands for neither (docs/design.md, section 5).
    ``mounted`` counts the states that bob tried to mount. bob knows the outcomes of the other states without a mount.

    For a verdict, :func:`bob.claim.verdict.judged_states` moves the states that do not mount from ``explored`` to
    ``unmountable``. If there are such states, it sets ``exhaustive`` to ``"writes"`` or None. Fields whose names end in
    ``_writes`` count only states of whole writes."""

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
        return self.legal_sectors - self.legal_writes

    @property
    def explored_torn(self) -> int | None:
        """The number of explored states with a torn write; None if unknown."""
        return None if self.explored_writes is None else self.explored - self.explored_writes

    @property
    def is_mostly_torn_unknown(self) -> bool:
        """Return whether less than half of the legal torn states are explored."""
        return self.explored_torn is not None and 2 * self.explored_torn < self.legal_torn


NOTHING = States(0, 0, 0, None)


def total(parts: Sequence[States]) -> States:
    """Return the sum of ``parts``, each with the numbers of states for one workload. In the sum, ``exhaustive`` is the
    lowest level among the workloads: None is lower than "writes", which is lower than "sectors"."""
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
