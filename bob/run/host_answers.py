"""Answers of a checker that ran on the host, and the choice of those that guests repeat. bob believes the host only as
far as guests confirm it. Guests repeat what the host could not judge, some of the accepted states, and some of each
*way* to fail (an exit code and a message)."""

from collections.abc import Hashable, Mapping, Sequence
from random import Random
from typing import Generic, TypeVar

from bob.observe.observations import without_numbers
from bob.program.answer import CheckerAnswer

K = TypeVar("K", bound=Hashable)
SAMPLED = 3  # fewest accepted states that guests repeat
SHARE = 20  # guests repeat at least one of so many accepted states
OF_EACH_WAY = 2  # states that guests repeat of each way to fail


class HostAnswers(Generic[K]):
    """The host's ``answers`` about the crash states ``asked``, of which the first is the easiest to explain.
    ``repeated`` has the states that guests check. ``doubt`` says why bob does not believe the host at all (None: it
    does)."""

    def __init__(self, asked: Sequence[K], answers: Mapping[K, CheckerAnswer], seed: int) -> None:
        self._asked, self._answers = asked, answers
        self._ways: dict[tuple[int | None, str], list[K]] = {}
        self.doubt: str | None = None
        accepted: list[K] = []
        self.repeated = dict.fromkeys(one for one in asked if one not in answers or not answers[one].is_judgement)
        for one in asked:
            if one in self.repeated:
                continue
            if answers[one].consequence is None:
                accepted.append(one)
            else:
                self._ways.setdefault(_way(answers[one]), []).append(one)
        self._confirmed: set[tuple[int | None, str]] = set()
        random = Random(seed)
        wanted = max(SAMPLED, -(-len(accepted) // SHARE))
        self._repeat(random.sample(accepted, min(wanted, len(accepted))))
        for some in self._ways.values():
            self._repeat(some[:1] + random.sample(some[1:], min(OF_EACH_WAY - 1, len(some) - 1)))

    @property
    def left_alone(self) -> dict[K, CheckerAnswer]:
        """The host's answers about all other states."""
        return {one: answer for one, answer in self._answers.items() if one not in self.repeated}

    @property
    def believed(self) -> dict[K, CheckerAnswer]:
        """The host's answers that guests have not repeated, but have confirmed by a state with the same answer."""
        return {one: answer for one, answer in self.left_alone.items() if _way(answer) in self._confirmed}

    def compare(self, in_guests: Mapping[K, CheckerAnswer]) -> bool:
        """Compare the host's answers with those of guests. Return whether guests must check more states. If a guest
        refuses what the host accepted, guests check all states. If a guest accepts what the host refused, or refuses it
        in another way, guests check all states that fail this way."""
        before = len(self.repeated)
        for one, answer in in_guests.items():
            on_host = self._answers.get(one)
            if on_host is None or not on_host.is_judgement:
                continue
            if _way(on_host) == _way(answer):
                self._confirmed.add(_way(on_host))
            elif on_host.consequence is None:
                ends = f"it ends with 0 on the host, and with {answer.code} in a guest"
                self.doubt = self.doubt or f"the checker answers differently: {ends}"
                self._repeat(self._asked)
            else:
                self._repeat(self._ways[_way(on_host)])
        return len(self.repeated) > before

    def _repeat(self, some: Sequence[K]) -> None:
        self.repeated |= dict.fromkeys(some)


def _way(answer: CheckerAnswer) -> tuple[int | None, str]:
    return answer.code, without_numbers(answer.evidence) if answer.code else ""
