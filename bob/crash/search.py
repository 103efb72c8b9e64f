"""The order of search: which legal crash states bob tries if the budget does not suffice for all (docs/design.md,
section 3).

A *stage* yields the states of one kind. A *growth point* is a time when the set of possible states changes. The stage
takes states from all growth points in turn. Stages take turns, too, so even a small budget has room for states of every
kind. If all states of whole writes fit into three quarters of the budget, the search covers all of them. Then torn
states get only the room that these states leave."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from bob.crash.drafts import (
    Draft,
    SearchPoint,
    interleave,
    parts_lost,
    prefixes,
    settled,
    single_kept,
    single_lost,
    spread,
    torn_once,
    view,
)
from bob.crash.image import Composer
from bob.crash.legal import GrowthPoint, count_sectors, count_writes
from bob.crash.sampling import every_state, random_subsets, random_tears
from bob.crash.state import CrashState, TornWrites
from bob.trace.model import Trace

# Legal states: if there are no more than these, bob tries them one by one in a random order, since contents may recur.
ENUMERABLE_STATES = 1 << 16

FRUITLESS_DRAFTS = 2000  # an endless stage stops after so many drafts in a row without a new state


@dataclass(frozen=True, slots=True)
class Candidate:
    """A crash state to explore, of the kind ``stage``. ``key`` stands for its contents; no earlier candidate has the
    same key."""

    state: CrashState
    key: bytes
    stage: str


@dataclass(frozen=True, slots=True, eq=False)
class _StateKind:
    """A kind of state. When it is this kind's turn, the search takes ``turn`` new states from ``drafts``. ``tears``
    says that the states may be torn, and ``endless`` says that the drafts never end."""

    name: str
    turn: int
    drafts: Iterator[Draft]
    tears: bool = False
    endless: bool = False


class StateSearch(Iterator[Candidate]):
    """A search of ``trace``: an iterator of up to ``budget`` candidates. Equal arguments give equal candidates.

    ``points`` are the growth points of ``trace``, the times when the set of possible crash states changes
    (:mod:`bob.crash.legal`). The growth points depend on the device model, ``composer.model``. ``focus`` has, for each
    operation that wrote data, the indexes of the writes that carry its data. Some candidates lose only such writes.
    ``torn`` allows only states with torn writes (True) or only states without (False). ``legal_writes`` is the number
    of legal states of whole writes, and ``legal_sectors`` the number of all legal states, torn ones included."""

    def __init__(
        self,
        trace: Trace,
        points: Sequence[GrowthPoint],
        composer: Composer,
        *,
        budget: int,
        seed: int,
        focus: Sequence[frozenset[int]] = (),
        torn: bool | None = None,
    ) -> None:
        self._composer = composer
        self._budget = budget
        self.legal_writes = count_writes(points)
        self.legal_sectors = count_sectors(points)
        self._views = [view(number, point) for number, point in enumerate(points)]
        self._keys: set[bytes] = set()
        self._known_whole: set[int] = set()
        self._known_torn: set[tuple[int, TornWrites]] = set()
        self._only_torn = torn is True
        stages = self._all_stages(trace, seed, focus)
        self._stages = [stage for stage in stages if torn in (None, stage.tears)]
        self._candidates = self._run()

    def __next__(self) -> Candidate:
        return next(self._candidates)

    @property
    def write_states(self) -> int:
        """The number of legal states of whole writes that the search covers so far. The search covers a state if it
        yields the state, or finds that the state has the same contents as an earlier candidate. So bob knows the
        outcomes of all these states when all candidates have outcomes."""
        return len(self._known_whole)

    @property
    def sector_states(self) -> int:
        return len(self._known_whole) + len(self._known_torn)

    @property
    def exhaustive(self) -> str | None:
        """The largest kind of legal states that the search covers completely so far. "sectors" means that it covers all
        legal states, torn ones included. "writes" means that it covers all states of whole writes. None means that it
        covers neither kind completely. The search covers a state if it yields the state, or finds that the state has
        the same contents as an earlier candidate."""
        if self.sector_states == self.legal_sectors:
            return "sectors"
        return "writes" if self.write_states == self.legal_writes else None

    def _all_stages(self, trace: Trace, seed: int, focus: Sequence[frozenset[int]]) -> list[_StateKind]:
        model = self._composer.model
        units = [model.units(write) for write in trace.writes]
        enumerable = max(ENUMERABLE_STATES, self._budget)
        few_writes, few_sectors = self.legal_writes <= enumerable, self.legal_sectors <= enumerable
        ones = [1] * len(units)
        subsets, tears = Random(f"{seed} subsets"), Random(f"{seed} tears")

        def around(drafts: Callable[[SearchPoint], Iterator[Draft]]) -> Iterator[Draft]:
            return interleave(drafts(self._views[number]) for number in spread(len(self._views)))

        return [
            _StateKind("prefix", 4, around(prefixes)),
            _StateKind("lost", 2, around(single_lost)),
            _StateKind("alone", 2, around(single_kept)),
            _StateKind("torn", 4, around(lambda point: torn_once(point, trace, model)), tears=True),
            _StateKind("focus", 4, around(lambda point: parts_lost(point, focus))),
            _StateKind("subset", 2, every_state(self._views, ones, subsets))
            if few_writes
            else _StateKind("subset", 2, random_subsets(self._views, subsets), endless=True),
            _StateKind("tears", 2, every_state(self._views, units, tears), tears=True)
            if few_sectors
            else _StateKind("tears", 2, random_tears(self._views, units, tears), tears=True, endless=True),
        ]

    def _run(self) -> Iterator[Candidate]:
        while self._stages:
            for stage in tuple(self._stages):
                if stage in self._stages:
                    yield from self._turn(stage)

    def _turn(self, stage: _StateKind) -> Iterator[Candidate]:
        new = known = 0
        while new < stage.turn and not (stage.tears and self._set_aside()):
            draft = next(stage.drafts, None)
            if draft is None or (stage.endless and known == FRUITLESS_DRAFTS):
                self._stages.remove(stage)
                return
            known += 1
            medium = self._views[draft.point].durable | draft.kept
            if self._only_torn and not draft.torn:
                continue
            if medium in self._known_whole if not draft.torn else (medium, draft.torn) in self._known_torn:
                continue
            state = settled(self._views, medium, draft.torn, draft.point)
            key = self._composer.key(state)
            fresh = key not in self._keys
            if fresh and len(self._keys) >= self._budget:
                # The budget is used up, and this state has new contents. So bob cannot explore all torn states. If this
                # state is whole, bob cannot explore all states of whole writes either. If it is torn, the remaining
                # states of whole writes may still have contents that were explored.
                self._stages = [other for other in self._stages if draft.torn and not other.tears]
                return
            self._keys.add(key)
            if draft.torn:
                self._known_torn.add((medium, draft.torn))
            else:
                self._known_whole.add(medium)
            if fresh:
                new, known = new + 1, 0
                yield Candidate(state, key, stage.name)

    def _set_aside(self) -> bool:
        missing = self.legal_writes - self.write_states
        fits = self.legal_writes <= self._budget * 3 // 4 and not self._only_torn
        return fits and missing > 0 and self._budget - len(self._keys) <= missing
