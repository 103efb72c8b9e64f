"""The distinct states of a model, as they are handed out to guests whose checkers look at them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from bob.apm.crashes import ModelState, Tries
from bob.observe.observation import Node
from bob.program.answer import CheckerAnswer

BATCH = 20
"""So many states are built in one request at most."""
MOST_BYTES = 16 * 1024 * 1024
"""So many bytes of files are in one request, unless one state alone has more."""


class StateQueue:
    """The distinct states of a model, handed out in batches to several workers; each is checked once."""

    def __init__(self, tries: Tries, most: int, answers: dict[bytes, CheckerAnswer]) -> None:
        self.handed_out = 0
        self.states: list[ModelState] = []
        self.lost: str | None = None
        self.disagreed: str | None = None
        self._made, self._most, self._answers = iter(tries), most, answers
        self._again: deque[list[ModelState]] = deque()
        self._tries = tries
        self._lock = threading.Lock()
        self._is_over = self._is_stopped = False

    def batch(self, most: int = BATCH) -> list[tuple[ModelState, Mapping[str, Node]]]:
        """The next states that the checker is to look at, ``most`` at the most; none where the work is done."""
        with self._lock:
            if self._is_stopped:
                return []
            if self._again:
                return self._built(self._again.popleft())
            found: list[tuple[ModelState, Mapping[str, Node]]] = []
            size = 0
            while len(found) < most and size < MOST_BYTES and not self._is_over:
                made = next(self._made, None)
                if made is None or len(self.states) >= self._most:
                    self._is_over = True
                    break
                self.states.append(made)
                if made.digest not in self._answers:
                    found += self._built([made])
                    size += sum(node.size for node in found[-1][1].values())
            self.handed_out += len(found)
            return found

    def built(self, states: Sequence[ModelState]) -> list[tuple[ModelState, Mapping[str, Node]]]:
        """These states with their trees, made again."""
        with self._lock:
            return self._built(states)

    def _built(self, states: Iterable[ModelState]) -> list[tuple[ModelState, Mapping[str, Node]]]:
        return [(state, self._tries.nodes(state)) for state in states]

    def put_back(self, states: list[ModelState]) -> None:
        """A guest was lost with these."""
        with self._lock:
            self._again.append(states)

    def take(self, state: ModelState, answer: CheckerAnswer) -> bool:
        """Take in an answer, and say whether it is the first of its tree. One that did not end in time is no answer
        where the same tree has another one."""
        with self._lock:
            known = self._answers.get(state.digest)
            if known is None or known.code is None:
                self._answers[state.digest] = answer
            elif answer.code is not None and answer.code != known.code:
                codes = f"{known.code} and with {answer.code}"
                self.disagreed = f"the checker contradicts itself: of one tree and output it ends with {codes}"
            return known is None

    def answer(self, state: ModelState) -> CheckerAnswer | None:
        """What the checker said so far."""
        return self._answers.get(state.digest)

    def give_up(self, reason: str) -> None:
        """Some states have no answer, for this ``reason``."""
        with self._lock:
            self.lost = self.lost or reason

    def stop(self) -> None:
        """Hand out nothing more."""
        self._is_stopped = True
