"""A queue of the distinct trees that a persistence model (promises about crash states) allows. bob's agents build the
trees in batches, and a program's checker checks each tree."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

from bob.agent.client import Agent, what_happened
from bob.apm.model_states import ModelState
from bob.errors import UsageError
from bob.guest.spec import Clock
from bob.observe.observation import Node
from bob.program.answer import Batches, CheckerAnswer, CheckerAnswers
from bob.run.pool import Errand, Idle, Job, JobQueue, LostGuest, StateSink

BATCH = 20  # most states in one request
MOST_BYTES = 16 * 1024 * 1024  # most bytes in one request, unless a single state has more
MOST_HUNG = 100  # most states that are checked once more because their check did not end in time

BuiltTrees = Sequence[tuple[ModelState, Mapping[str, Node]]]
TreeCheck = Callable[[Agent, BuiltTrees], Sequence[CheckerAnswer]]


class Tries(Protocol):
    """The crash states that a persistence model allows, in the order that bob tries them."""

    def __iter__(self) -> Iterator[ModelState]: ...

    def nodes(self, state: ModelState) -> Mapping[str, Node]:
        """Return the tree of ``state``."""


@dataclass(frozen=True, slots=True)
class Again:
    """Some of the states of ``tries``. bob checks these states a second time, to see whether the checker contradicts
    itself."""

    tries: Tries
    states: Sequence[ModelState]

    def __iter__(self) -> Iterator[ModelState]:
        return iter(self.states)

    def nodes(self, state: ModelState) -> Mapping[str, Node]:
        return self.tries.nodes(state)


class StateQueue(JobQueue):
    """A queue that hands out crash states to agents. An agent builds the tree of a state, and runs a checker on this
    tree. The states are the first ``most`` of ``tries``. The checker's answers about them go into ``answers``. If
    ``answers`` already has an answer for a state, bob does not check that state.

    At the end, some states are checked a second time. These are states whose check did not end in time, and some states
    that bob draws at random with the seed ``seed``. ``again`` is the number of drawn states. The second check of a
    drawn state shows whether the checker contradicts itself. If no guest runs any more, bob starts none for these
    second checks.

    If some states stay without an answer, ``lost`` says why. The progress that the user sees counts each checked state
    once. If ``is_control`` is true, this queue repeats checks of another queue, which has counted the states. So it
    does not count them again."""

    def __init__(
        self,
        name: str,
        tries: Tries,
        most: int,
        answers: dict[bytes, CheckerAnswer],
        check: TreeCheck,
        *,
        again: int = 0,
        seed: int = 1,
        world: Path | None = None,
        begin: Callable[[Agent], None] = lambda _agent: None,
        is_control: bool = False,
    ) -> None:
        super().__init__(Clock.REAL, world=world, begin=begin)
        self.name, self.check, self.batches = name, check, Batches(BATCH)
        self.handed_out = self.rechecks = self.under_way = 0
        self.states: list[ModelState] = []
        self.lost: str | None = None
        self.checked = CheckerAnswers(answers)
        self.lock = threading.Lock()  # guards the answers and the other fields, except in :meth:`next`
        self._made, self._most, self._tries = iter(tries), most, tries
        self._again, self._random = again, Random(seed)
        self.asked: list[ModelState] = []  # the states that had no answer before
        self.is_control = is_control
        self._is_over = self._comes_again = False

    def next(self, *, has_guest: bool) -> Job | Errand | Idle:
        if self._jobs:
            return super().next(has_guest=has_guest)
        if batch := self._new():
            with self.lock:
                self.under_way += 1
            return _BatchJob(self, batch, is_first=True)
        if not has_guest:
            return Idle.OVER
        if self.under_way:
            return Idle.WAIT
        some = [] if self._comes_again else self._to_recheck()
        self._comes_again = True
        size = self.batches.size
        self._jobs.extend(
            _BatchJob(self, self._built(some[at : at + size]), is_first=False) for at in range(0, len(some), size)
        )
        return super().next(has_guest=has_guest)

    def _new(self) -> BuiltTrees:
        new: list[tuple[ModelState, Mapping[str, Node]]] = []
        size = 0
        while len(new) < self.batches.size and size < MOST_BYTES and not self._is_over:
            made = next(self._made, None)
            if made is None or len(self.states) >= self._most:
                self._is_over = True
                break
            self.states.append(made)
            if made.digest not in self.checked.answers:
                new += self._built([made])
                size += sum(node.size for node in new[-1][1].values())
        self.asked += [state for state, _tree in new]
        self.handed_out += len(new)
        return new

    def _to_recheck(self) -> list[ModelState]:
        answers = self.checked.answers
        hung = [one for one in self.asked if (answer := answers.get(one.digest)) and answer.code is None]
        return [*hung[:MOST_HUNG], *self._random.sample(self.asked, min(self._again, len(self.asked)))]

    def _built(self, states: Iterable[ModelState]) -> list[tuple[ModelState, Mapping[str, Node]]]:
        return [(state, self._tries.nodes(state)) for state in states]


class _BatchJob(Job):
    when = " while checking"

    def __init__(self, queue: StateQueue, built: BuiltTrees, *, is_first: bool) -> None:
        super().__init__(queue.name)
        self._queue, self._built, self._is_first = queue, built, is_first

    def do(self, agent: Agent, tell: StateSink) -> bool:
        queue, began = self._queue, time.monotonic()
        try:
            answers = queue.check(agent, self._built)
        except UsageError as refusal:
            raise LostGuest(what_happened(refusal)) from None
        with queue.lock:
            queue.batches.took(len(answers), time.monotonic() - began)
            checked = zip(self._built, answers, strict=True)
            new = sum(queue.checked.take(state.digest, answer) for (state, _tree), answer in checked)
            queue.rechecks += 0 if self._is_first else len(answers)
            self._end()
        tell(0 if queue.is_control else new)
        return True

    def give_up(self, error: Exception, reason: str, trace: str = "") -> None:
        if trace:
            raise error
        with self._queue.lock:
            self._queue.lost = self._queue.lost or reason
            self._end()

    def _end(self) -> None:
        self._queue.under_way -= int(self._is_first)
