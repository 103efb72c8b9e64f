from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from enum import StrEnum

from bob.crash.coverage import States
from bob.observe.observations import ExploredState


class Verdict(StrEnum):
    """The verdict on a claim (what each crash state should satisfy). If any workload breaks the claim, the verdict is
    FAILS, whatever the other workloads show. HOLDS means only that all explored states keep the claim."""

    FAILS = "fails"
    HOLDS = "holds"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


def merged_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of ``verdicts``: FAILS, then UNKNOWN, HOLDS, SKIPPED. There must be at least one verdict."""
    return min(verdicts, key=_WORST_FIRST.index)


_WORST_FIRST = (Verdict.FAILS, Verdict.UNKNOWN, Verdict.HOLDS, Verdict.SKIPPED)


def judged_states(coverage: States, states: Sequence[ExploredState], mounting: Container[int]) -> States:
    """Return ``coverage`` without the explored states that do not mount. ``mounting`` has the outcomes of
    the states that mount. An outcome is the index of an observation (what the mount of a crash state showed).

    The field ``exhaustive`` of the result is None if a state of whole writes does not mount. If only torn states do not
    mount, the field changes from ``"sectors"`` (bob explored every state) to ``"writes"`` (every state of whole
    writes)."""
    refused = [seen for seen in states if seen.outcome is not None and seen.outcome not in mounting]
    mounted = [seen for seen in states if seen.outcome is not None and seen.outcome in mounting]
    unmountable = sum(seen.states for seen in refused)
    unmountable_writes = sum(seen.whole_states for seen in refused)
    # If every state is known, bob need not have seen each of several states with equal contents.
    whole = sum(seen.whole_states for seen in mounted)
    if coverage.exhaustive is not None:
        whole = coverage.legal_writes - unmountable_writes
    exhaustive = coverage.exhaustive
    if unmountable and exhaustive == "sectors":
        exhaustive = "writes"
    return replace(
        coverage,
        explored=coverage.explored - unmountable,
        exhaustive=None if unmountable_writes else exhaustive,
        explored_writes=whole,
        unmountable=unmountable,
        unmountable_writes=unmountable_writes,
    )
