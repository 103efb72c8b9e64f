"""The causes why the outcomes of torn states are unknown. bob draws some random torn states with an unknown outcome.
The cause is what recovery, or the look at the files, reads in them, and did not read in any mounted state."""

from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bob.blocks.naming import BlockKind, BlockName, names
from bob.crash.cubes import Cube
from bob.crash.plan import Plan
from bob.observe.predict import Contents, Gap, ReadTree
from bob.subject import Subject
from bob.workload.pattern import operations_in

SAMPLED = 100  # random torn states


class TornCause(StrEnum):
    """The cause why a torn state is unknown, or does not count for a claim.

    The first five causes say what recovery reads. ``JOURNAL`` is a journal or log, and ``METADATA`` is all else that is
    not file data. ``SEVERAL_WRITES`` is data at a place that several writes wrote to. ``APPENDED`` is data at a place
    without earlier data, and ``OVERWRITTEN`` is data over other data.

    The other causes are these. ``BUDGET``: the state is in a mixture (:mod:`bob.observe.mixtures`) that would take too
    many mounts. ``MIXED``: the state is in a known mixture, but bob does not judge the claim sector by sector.
    ``UNJUDGED``: it is in a mixture, and bob judges no claim about this mixture sector by sector. ``UNMOUNTABLE``: the
    state does not mount. ``UNCOUNTED``: bob knows the state's outcome, but cannot count all such states."""

    JOURNAL = "journal"
    METADATA = "metadata"
    SEVERAL_WRITES = "several-writes"
    APPENDED = "appended-data"
    OVERWRITTEN = "overwritten-data"
    BUDGET = "budget"
    MIXED = "mixed-data"
    UNJUDGED = "unjudged-data"
    UNMOUNTABLE = "unmountable"
    UNCOUNTED = "uncounted"


class CauseCount(NamedTuple):
    """The number of ``states`` in a random sample that are unknown for this ``cause``."""

    cause: TornCause
    states: int


def causes_of_unknown(
    plan: Plan,
    subject: Subject,
    known: ReadTree,
    seed: int,
    of_mixtures: Callable[[Contents], TornCause | None],
    is_mounted: Callable[[int], bool],
    counted: int,
) -> tuple[CauseCount, ...]:
    """Return the causes why torn states are unknown, from a sample of torn states. The most frequent cause comes first.

    ``of_mixtures`` returns the cause for a state in a mixture, by its contents; None for other states. ``is_mounted``
    says whether an outcome is one of a state that mounts. ``counted`` is the number of torn states that are known."""
    random = Random(f"{seed} unknown")
    drawn = (plan.parts.legal.sample(Cube(), random) for _ in range(SAMPLED))
    found, blocks, mounting = Counter[TornCause](), _SectorKinds(plan, subject), 0
    for state in drawn:
        if not state.torn:
            continue
        contents = plan.composer.contents(state)
        gap = known.find(contents)
        if not isinstance(gap, Gap):
            mounting += is_mounted(gap)
            found[TornCause.UNMOUNTABLE] += not is_mounted(gap)
        elif (cause := of_mixtures(contents)) is not None:
            found[cause] += 1
        elif len(places := new_places(gap)):
            found[blocks.most_common(places)] += 1
    if known.forgets:  # else all torn states with a known course are counted
        found[TornCause.UNCOUNTED] = mounting - -(-SAMPLED * counted // plan.nothing_explored().legal_torn)
    order = list(TornCause)
    ranked = sorted((+found).items(), key=lambda pair: (-pair[1], order.index(pair[0])))
    return tuple(CauseCount(cause, count) for cause, count in ranked)


def new_places(gap: Gap) -> NDArray[np.intp]:
    """Return the sectors whose content is new at this gap (a read that found a content which no mounted state had
    there). These are the sectors that differ from the most similar known content. If no content is known there, return
    all sectors of the read."""
    if gap.node.places is None:
        return np.zeros(0, dtype=np.intp)
    content = np.frombuffer(gap.content, dtype=np.int32)
    known = (np.frombuffer(one, dtype=np.int32) != content for one in gap.node.by_content)
    differs = min(known, key=lambda differs: int(differs.sum()), default=np.ones(len(content), dtype=np.bool_))
    places: NDArray[np.intp] = gap.node.places[differs]
    return places


class _SectorKinds:
    """A finder of the cause that a sector stands for, by what the writes of the plan put into it."""

    def __init__(self, plan: Plan, subject: Subject) -> None:
        self._plan = plan
        self._driver = "" if subject.layers else subject.fs.driver  # layers have places of their own
        self._names: Sequence[BlockName] | None = None

    def most_common(self, places: NDArray[np.intp]) -> TornCause:
        return Counter(map(self._cause, places.tolist())).most_common(1)[0][0]

    def _cause(self, place: int) -> TornCause:
        composer, trace = self._plan.composer, self._plan.trace
        if self._names is None:
            self._names = names(self._driver, self._plan.base, trace, {})
        layers = composer.layers[place]
        kinds = {self._names[layer.write].kind for layer in layers}
        if BlockKind.JOURNAL in kinds:
            return TornCause.JOURNAL
        has_data = any(operations_in(composer.content(place, layer.content)) for layer in layers)
        if BlockKind.DATA not in kinds and not has_data:
            return TornCause.METADATA
        if len(layers) > 1:
            return TornCause.SEVERAL_WRITES
        return TornCause.OVERWRITTEN if operations_in(composer.content(place, 0)) else TornCause.APPENDED
