"""Up to which unit changes are whole: the rows of ``bob matrix --rows units``.

The names of the rows are ``KIND.UNIT``. Their workloads are those of Table 1's rows about atomicity, and those in
probes/rows/units.toml.
"""

from __future__ import annotations

from collections.abc import Iterator

from bob.claim.property.rules import Property, Rule
from bob.claim.property.subjects import Span
from bob.claim.property.vocabulary import Unit
from bob.workload.kinds import MODELLED_KINDS, ChangeKind

FAMILY = "atomicity"

_SPANS = {Unit.SECTOR: Span.SECTOR, Unit.BLOCK: Span.BLOCK, Unit.WHOLE: Span.BLOCKS}
_WORDS = {
    Unit.SECTOR: "inside one sector (512 bytes of the file)",
    Unit.BLOCK: "inside one block (4,096 bytes of the file), over several sectors,",
    Unit.WHOLE: "over several blocks",
}


def properties() -> Iterator[Property]:
    """Each kind with its units, the smallest first; what is not a write is whole or not, and has no size."""
    for kind in MODELLED_KINDS:
        if kind not in (ChangeKind.OVERWRITE, ChangeKind.APPEND):
            meaning = f"an operation of the kind {kind.value} is all or nothing"
            yield Property(_name(kind, Unit.WHOLE), FAMILY, meaning, Rule.ATOMIC, kinds=(kind,))
            continue
        for unit in Unit:
            meaning = f"an {kind.value} {_WORDS[unit]} is all or nothing"
            yield Property(_name(kind, unit), FAMILY, meaning, Rule.ATOMIC, spans=(_SPANS[unit],), kinds=(kind,))


def _name(kind: ChangeKind, unit: Unit) -> str:
    return f"{kind.value}.{unit.value}"
