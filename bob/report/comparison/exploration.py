"""When is a cell *differently explored*: the same verdict in two runs, but not reached by the same experiment?

It is, where

- other workloads or other finishes were run;
- of the workloads that both ran, some gave another verdict than before;
- one of the two covered all legal states (of whole writes, or torn ones too) and the other did not;
- the number of explored crash states differs by more than a tenth of the larger one. Less than that is noise: how
  many legal states a workload has is not always the same in two runs (docs/limits.md);
- the number of workloads that searches tried beside them differs by more than a tenth.
"""

from __future__ import annotations

from collections.abc import Iterator

from bob.answer.answer import Answer, ByRecording
from bob.text import compact, plural

NOISE = 0.1
"""How much the number of explored crash states may differ, as a part of the larger one."""
MANY = 10**6
"""Of so many explored crash states or more the numbers of binary digits are compared: each sector of a long write that
recovery never reads is one digit."""

_NAMED = 3
_LEVELS = {
    None: "not all legal states",
    "writes": "every legal state of whole writes",
    "sectors": "every legal state, torn ones too",
}


def differences(a: Answer, b: Answer) -> tuple[str, ...]:
    """How ``b`` was explored otherwise than ``a``, a phrase each; empty where it was explored alike."""
    return tuple(_differences(a, b))


def _differences(a: Answer, b: Answer) -> Iterator[str]:
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
