"""Finds the outcomes of many crash states by mounting few of them.

States are dealt with in rounds: those whose outcome is known from what recovery read in others are predicted
(:mod:`bob.observe.predict`); of the rest, one of each kind that may well predict the others is mounted, all of these in
one request. So no mount is wasted, and requests are few.

Two kinds of states that were predicted are mounted after all, before any prediction is believed:

- for each outcome, the state that is easiest to explain: that is the one which a witness is made of, so every witness
  was really mounted;
- a sample drawn from the seed, one in ``CONTROL_EVERY`` and at least one.

If one of these has another outcome than was predicted, no prediction of the workload is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from bob.crash.plan import Plan
from bob.crash.state import CrashState, departure
from bob.errors import BobError
from bob.observe.predict import Contents, Contradiction, Gap, Known, places_read
from bob.observe.session import Mounted, Session

BATCH = 50
"""Crash states per request: few round trips, but a progress display that moves."""
AUDIT_EVERY = 100
"""Mounts between two comparisons of the scratch image with its base, which take as long as some mounts."""
CONTROL_EVERY = 16


class Mispredicted(BobError):
    """A state that was predicted was mounted, and had another outcome."""


class Rounds:
    """The outcomes of a workload's states, by their indexes, as they become known.

    ``outcomes`` has those that are to be believed: of mounted states after the next good audit, of predicted ones when
    the controls have passed too. ``mounted`` are the indexes of the states that were mounted. ``told`` is called with
    how many more states have been dealt with. Where not ``predicting``, all are mounted.
    """

    def __init__(
        self, session: Session, plan: Plan, seed: int, told: Callable[[int], None], *, predicting: bool = True
    ) -> None:
        self.outcomes: dict[int, int] = {}
        self.mounted: set[int] = set()
        self._session = session
        self._plan = plan
        self._random = Random(f"{seed} controls")
        self._told = told
        self._predicting = predicting
        self._known = Known()
        self._states: list[CrashState] = []
        self._found: dict[int, int] = {}
        self._easiest: dict[int, tuple[tuple[int, int], int]] = {}
        self._unaudited = 0

    def observe(self, states: Sequence[CrashState]) -> None:
        """Find the outcomes of more states.

        Raises Mispredicted, and whatever the session raises; ``outcomes`` then has what is to be believed all the same.
        """
        first = len(self._states)
        self._states += states
        waiting = {number: self._plan.composer.contents(state) for number, state in enumerate(states, first)}
        gaps: dict[int, Gap] = {}
        while waiting:
            before = len(waiting)
            batch = self._predict(waiting, gaps)[:BATCH]
            for number, mounted in self._mount(batch).items():
                self._learn(number, waiting.pop(number), mounted)
            self._told(before - len(waiting))
        self._control(range(first, len(self._states)))

    def _predict(self, waiting: dict[int, Contents], gaps: dict[int, Gap]) -> list[int]:
        """Predict what can be, and take it out of ``waiting``; then one state of each kind that is left."""
        if not self._predicting:
            return list(waiting)
        kinds: dict[Gap, int] = {}
        for number, contents in tuple(waiting.items()):
            found = self._known.find(contents, gaps.get(number))
            if isinstance(found, Gap):
                gaps[number] = found
                kinds.setdefault(found, number)
            else:
                self._found[number] = found
                del waiting[number]
        return list(kinds.values())

    def _mount(self, batch: Sequence[int], *, audit: bool = False) -> dict[int, Mounted]:
        """Mount these states, and compare the scratch image with its base where it is time or ``audit`` asks for it."""
        self._unaudited += len(batch)
        if not batch and not self._unaudited:
            return {}
        audit = audit or self._unaudited >= AUDIT_EVERY
        composer = self._plan.composer
        deltas = [composer.delta(self._states[number]) for number in batch]
        answers = self._session.mount(deltas, composer.payload_since(0), audit=audit)
        self.mounted.update(batch)
        if audit:
            self._unaudited = 0
            self.outcomes.update((number, self._found[number]) for number in self.mounted if number in self._found)
            self.outcomes.update((number, answer.outcome) for number, answer in zip(batch, answers, strict=True))
        return dict(zip(batch, answers, strict=True))

    def _learn(self, number: int, contents: Contents, mounted: Mounted) -> None:
        """Take note of what was seen of a state that nothing was known of."""
        self._found[number] = mounted.outcome
        # Only the first state with a refusal is repaired: a state like it would be refused and not repaired.
        if not self._predicting or self._session.findings.repaired(mounted.outcome):
            return
        try:
            self._known.add(contents, places_read(self._plan.composer.sectors, mounted.accesses), mounted.outcome)
        except Contradiction as found:
            raise self._mispredicted(number, found.one, found.other) from None

    def _control(self, window: range) -> None:
        """Mount some states of ``window`` that were predicted, and compare; then all of it is to be believed."""
        predicted = [number for number in window if number not in self.mounted]
        chosen = set(self._random.sample(predicted, -(-len(predicted) // CONTROL_EVERY)))
        for number in window:
            outcome, rank = self._found[number], departure(self._states[number])
            if outcome not in self._easiest or rank < self._easiest[outcome][0]:
                self._easiest[outcome] = rank, number
        chosen.update(number for _rank, number in self._easiest.values() if number not in self.mounted)
        for number, mounted in self._mount(sorted(chosen), audit=True).items():
            if mounted.outcome != self._found[number]:
                raise self._mispredicted(number, self._found[number], mounted.outcome)
        self.outcomes.update((number, self._found[number]) for number in window)

    def _mispredicted(self, number: int, predicted: int, seen: int) -> Mispredicted:
        """Believe no prediction any more; what to say of it."""
        self.outcomes = {known: outcome for known, outcome in self.outcomes.items() if known in self.mounted}
        one, other = (
            f"outcome {outcome} ({self._session.findings.observation(outcome).summary})"
            for outcome in (predicted, seen)
        )
        return Mispredicted(
            f"a control of the predictions failed: by what recovery read, crash state {number} has {one}, "
            f"but when it was mounted it had {other}"
        )
