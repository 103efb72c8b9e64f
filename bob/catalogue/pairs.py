"""Is X persisted before Y: the rows of ``bob matrix --rows pairs``.

The names of the rows are ``X-then-Y.RELATION``. Their workloads are in probes/rows/pairs.toml.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from bob.claim.property.rules import Property, Rule
from bob.workload.kinds import ChangeKind, Relation

FAMILY = "ordering"

_KINDS = tuple(kind for kind in ChangeKind if kind not in (ChangeKind.ZERO, ChangeKind.SHIFT))
"""Those that the table pairs: no workload of it makes zeros of a range, or shifts what is behind it."""
_SET_THE_SIZE = (ChangeKind.TRUNCATE_DOWN, ChangeKind.TRUNCATE_UP, ChangeKind.FALLOCATE)
UNTELLABLE = frozenset(
    {
        *product(_SET_THE_SIZE, (*_SET_THE_SIZE, ChangeKind.APPEND)),
        (ChangeKind.APPEND, ChangeKind.TRUNCATE_DOWN),
    }
    - {(ChangeKind.TRUNCATE_DOWN, ChangeKind.APPEND)}
)
"""Pairs on one file of which no tree can tell that X is missing where Y is there: the size is the one that Y makes."""

_WHERE = {
    Relation.SAME_FILE: "on the same file",
    Relation.SAME_DIRECTORY: "in the same directory, on another file",
    Relation.OTHER_DIRECTORY: "in another directory",
}


def properties() -> Iterator[Property]:
    """Every ordered pair of kinds, in each relation, but those that no tree can tell."""
    for relation, first, later in product(Relation, _KINDS, _KINDS):
        if relation is Relation.SAME_FILE and (first, later) in UNTELLABLE:
            continue
        yield Property(
            name=f"{first.value}-then-{later.value}.{relation.value}",
            family=FAMILY,
            meaning=f"an operation of the kind {first.value} is persisted before a later one of the kind "
            f"{later.value} {_WHERE[relation]}",
            rule=Rule.ORDERED,
            kinds=(first,),
            later_kinds=(later,),
            relations=(relation,),
        )
