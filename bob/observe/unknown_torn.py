"""The causes why the outcomes (what mounts show) of torn states are unknown. bob draws random legal states, does not
mount them, and finds the torn states whose outcome it cannot predict. In such a state, recovery or bob's look at the
files would read a sector with contents that no mounted state had there. The kind of these contents is the cause."""

from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from fractions import Fraction
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
MOST = Fraction(3, 4)  # if bob knows a smaller share of the torn states, it looks for the causes


class TornCause(StrEnum):
    """The cause why a torn state is unknown, or does not count for a claim (what each crash state should satisfy).

    The first five causes say what recovery reads. ``JOURNAL`` is a journal or log, and ``METADATA`` is everything else
    that is not file data. ``SEVERAL_WRITES`` is data at a place that several writes wrote to. ``APPENDED`` is data at a
    place without earlier data, and ``OVERWRITTEN`` is data over other data.

    The next four causes are about states in a *mixture* (:mod:`bob.observe.mixtures`). A mixture is a set of torn
    states that differ only in sectors of file data. Each of these sectors has the content from before a write, or from
    after it. bob mounts a few states of a mixture, and predicts the other states. For any two of the sectors, the
    mounted states include all four combinations of before and after. bob can judge some claims by pairs of sectors. For
    such a claim, the mounted states show whether any state of the mixture breaks it: bob judges the claim *sector by
    sector*.

    ``BUDGET``: to check the mixture would take too many mounts, so bob predicts nothing. ``UNTESTABLE``: bob cannot
    mount a state that the check needs, since that state is not legal, or the mixture has too many parts (pieces of
    writes). ``MIXED``: bob can predict the state, but cannot judge the claim in question sector by sector.
    ``UNJUDGED``: in this mixture, bob cannot judge any claim sector by sector, so it predicts nothing.

    The last two causes are these. ``UNMOUNTABLE``: the state does not mount. ``UNCOUNTED``: bob knows the state's
    outcome, but cannot count all states whose outcome it knows."""

    JOURNAL = "journal"
    METADATA = "metadata"
    SEVERAL_WRITES = "several-writes"
    APPENDED = "appended-data"
    OVERWRITTEN = "overwritten-data"
    BUDGET = "budget"
    UNTESTABLE = "untestable-data"
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

    ``of_mixtures`` gets the contents of a state. If the state is in a mixture (:class:`TornCause`), the function
    returns the cause why bob does not count the state as known. Otherwise it returns None. ``is_mounted`` gets the
    number of an outcome, and says whether states with this outcome mount. ``counted`` is the number of legal torn
    states that bob has counted as known. ``known`` is the tree of recovery's reads in the mounted states."""
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
    """Return the sectors whose content is new at this gap (a read of a content that no mounted state had there). bob
    takes the most similar content that a mounted state had there, and returns the sectors that differ from it. Return
    no sectors if the tree of reads is empty."""
    if gap.node.places is None:
        return np.zeros(0, dtype=np.intp)
    content = np.frombuffer(gap.content, dtype=np.int32)
    known = (np.frombuffer(one, dtype=np.int32) != content for one in gap.node.by_content)
    differs = min(known, key=lambda differs: int(differs.sum()), default=np.ones(len(content), dtype=np.bool_))
    places: NDArray[np.intp] = gap.node.places[differs]
    return places


class _SectorKinds:
    """A classifier of sectors. It finds the cause (the first five of :class:`TornCause`) that belongs to a sector, from
    the writes to this sector in the recording."""

    def __init__(self, plan: Plan, subject: Subject) -> None:
        self._plan = plan
        self._driver = subject.fs.driver if subject.is_one_disk else ""  # layers have places of their own
        self._names: Sequence[BlockName] | None = None
        self._causes: dict[int, TornCause] = {}

    def most_common(self, places: NDArray[np.intp]) -> TornCause:
        for place in places.tolist():
            if place not in self._causes:
                self._causes[place] = self._cause(place)
        return Counter(self._causes[place] for place in places.tolist()).most_common(1)[0][0]

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
