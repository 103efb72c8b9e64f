"""The sets of rows that a table may have, and the probes of each set. A *row* of the table is a property, and a *probe*
is a property with workloads that test it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache

from bob.catalogue.finer_rows import ATOMICITY, durability_rows, pair_rows, unit_rows
from bob.catalogue.probe_files import Probe, asking, layer_probes, load_workloads, named, shipped_probes
from bob.claim.property.rules import Property
from bob.resources import shipped
from bob.workload.operations import Workload


class RowSet(StrEnum):
    TABLE1 = "table1"
    PAIRS = "pairs"
    DURABILITY = "durability"
    UNITS = "units"


_PROPERTIES: Mapping[RowSet, Callable[[], Iterator[Property]]] = {
    RowSet.PAIRS: pair_rows,
    RowSet.DURABILITY: durability_rows,
    RowSet.UNITS: unit_rows,
}


@cache
def probes_of(rows: RowSet) -> tuple[Probe, ...]:
    """Return the probes of a set of rows, in the order of its table. Leave out each property that none of the set's
    workloads tests."""
    if rows is RowSet.TABLE1:
        return shipped_probes()
    return asking(tuple(_PROPERTIES[rows]()), _workloads(rows))


def _workloads(rows: RowSet) -> tuple[Workload, ...]:
    own = load_workloads(shipped("probes") / "rows" / f"{rows.value}.toml")
    if rows is not RowSet.UNITS:
        return own
    atomic = (probe for probe in shipped_probes() if probe.property.family == ATOMICITY)
    return (*(workload for probe in atomic for workload in probe.workloads), *own)


def asked_probes(
    names: Sequence[str], own: Sequence[Probe], rows: RowSet = RowSet.TABLE1, *, on_layers: bool = False
) -> tuple[Probe, ...]:
    """Return the shipped probes of ``rows`` with these names, then the user's ``own`` probes. Without names and own
    probes, return all probes of ``rows``. If the file system is on layers (``on_layers``), the shipped probes for
    layers are among the probes of ``rows``."""
    every = (*probes_of(rows), *(layer_probes() if on_layers else ()))
    chosen = named(every, names) if names or not own else ()
    return (*chosen, *sorted(own, key=lambda probe: probe.row))
