"""Numbers of crash states as people read them: 4,096 and 2^88, not 309,485,009,821,345,068,724,781,056."""

from __future__ import annotations

import math

from bob.result import ConfigurationResult, States, total

_LARGEST_IN_DIGITS = 10**6
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def compact(count: int) -> str:
    """``count`` in digits, or as the nearest power of two where there are too many of them."""
    return f"{count:,}" if count < _LARGEST_IN_DIGITS else f"2^{round(math.log2(count))}"


def explored(states: States) -> str:
    """How much was explored of what is legal: ``812/2^88``, ``all 4,096``, or ``812/2^88 (all whole)``.

    The legal states are those with torn writes. "All whole" says that no state without torn writes is missing. Of
    powers of two the one below what was explored is given, and that above what is legal: they are not the same.
    """
    if states.exhaustive == "sectors":
        return f"all {compact(states.legal_sectors)}"
    if not states.legal_sectors:
        return ""
    some, every = states.explored, states.legal_sectors
    if some >= _LARGEST_IN_DIGITS:
        part = f"2^{some.bit_length() - 1}/2^{(every - 1).bit_length()}"
    else:
        part = f"{compact(some)}/{compact(every)}"
    return f"{part} (all whole)" if states.exhaustive == "writes" else part


def in_words(states: States) -> str:
    """How much was explored: ``812 of 2^88 legal crash states explored``."""
    if not states.legal_sectors:
        return ""
    legal = f"{compact(states.legal_sectors)} legal crash states"
    if states.exhaustive == "sectors":
        return f"all {legal} explored"
    whole = ", all whole" if states.exhaustive == "writes" else ""
    return f"{compact(states.explored)} of {legal} explored{whole}"


def size(count: int) -> str:
    """A number of bytes in the largest unit that keeps it at one or more: ``32 MiB``, ``1.4 GiB``."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if value >= 10 or value.is_integer() else f"{value:.1f} {_UNITS[unit]}"


def plural(count: int, what: str) -> str:
    """``1 crash state``, ``3 crash states``, ``2^88 crash states``."""
    return f"{compact(count)} {what}" if count == 1 else f"{compact(count)} {what}s"


def looked_at(column: ConfigurationResult) -> States:
    """What was explored of ``column``.

    A recording that several properties ask about counts once: the sum over the cells would count it in each.
    """
    recordings: dict[tuple[str, str], States] = {}
    for workload in (workload for cell in column.properties for workload in cell.workloads):
        before = recordings.setdefault((workload.name, workload.finish), workload.states)
        if workload.states.explored > before.explored:
            recordings[workload.name, workload.finish] = workload.states
    return total(list(recordings.values()))


def examined(column: ConfigurationResult) -> str:
    """How many outcomes had a closer look, in words."""
    return (
        f"{column.examined:,} of {plural(column.examinable, 'outcome')} were looked at by the file system's checker, "
        "and by the removal of all that is there"
    )
