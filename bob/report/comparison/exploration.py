"""Differences between two runs in how they explored a cell of the table. bob looks for them if both runs have the same
verdict for the cell. There are four kinds of differences. bob records a workload once with each of its finishes (how
the workload ends, such as with an fsync). The first kind is that only one run has a certain recording. The second is
that a recording has different verdicts in the two runs, although the verdict for the cell is the same. The third is
that only one run explored all legal crash states, or that only one run explored all of those without torn writes. The
fourth is that the numbers of explored crash states differ by more than a tenth of the larger number. A smaller
difference is noise (docs/limits.md)."""

from collections.abc import Iterator

from bob.answer.answer import Answer, ByRecording
from bob.text import compact, plural

NOISE = 0.1  # share of the larger number of explored crash states
MANY = 10**6
"""If counts are at least as large as this, bob compares the numbers of their binary digits. Each sector of a long write
that recovery never reads adds one digit."""

_NAMED = 3
_LEVELS = {
    None: "not all legal states",
    "writes": "every legal state of whole writes",
    "sectors": "every legal state, torn ones too",
}


def differences(a: Answer, b: Answer) -> Iterator[str]:
    """Yield phrases that say how the exploration of ``b`` differs from that of ``a``."""
    old, new = _by_name(a), _by_name(b)
    gone = [name for name in old if name not in new]
    come = [name for name in new if name not in old]
    if gone:
        yield f"{plural(len(gone), 'workload')} run in A only: {_some(gone)}"
    if come:
        yield f"{plural(len(come), 'workload')} run in B only: {_some(come)}"
    turned = [
        f"{name} ({old[name].verdict.value} in A, {new[name].verdict.value} in B)"
        for name in old
        if name in new and old[name].verdict is not new[name].verdict
    ]
    if turned:
        yield f"another verdict from {plural(len(turned), 'workload')}: {_some(turned)}"
    if a.states.exhaustive != b.states.exhaustive:
        yield f"A explored {_level(a)}, B {_level(b)}"
    explored = (a.states.explored, b.states.explored)
    sizes = explored if max(explored) < MANY else tuple(count.bit_length() for count in explored)
    if max(sizes) - min(sizes) > NOISE * max(sizes):
        yield f"A explored {compact(explored[0])} crash states, B {compact(explored[1])}"


def _by_name(cell: Answer) -> dict[str, ByRecording]:
    return {f"{workload.name} [{workload.finish}]": workload for workload in cell.recordings}


def _some(names: list[str]) -> str:
    more = len(names) - _NAMED
    return "; ".join([*names[:_NAMED], *([f"and {more} more"] if more > 0 else [])])


def _level(cell: Answer) -> str:
    return _LEVELS.get(cell.states.exhaustive, str(cell.states.exhaustive))
