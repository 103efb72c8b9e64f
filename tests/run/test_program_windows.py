"""The windows of a program, explored in guests that are made up: what is lost is begun anew, and counts once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import samples_of_runs as samples
from bob.agent.client import AgentBroken
from bob.agent.loss import GuestLost, Loss, LossCause
from bob.catalogue.request import ProbeRequest
from bob.errors import UsageError
from bob.judge.looked import Looked
from bob.observe.observations import Observations
from bob.program.answer import CheckerAnswer
from bob.program.program import Program
from bob.program.transcript import ProgramCase, Transcript, Window
from bob.progress import Silent
from bob.run import pool, program_windows
from bob.run.program_windows import WindowStore, explore_windows
from bob.schema import encode
from bob.store.run_directory import RunDirectory
from bob.store.run_documents import ObservedDocument

LOSS = GuestLost(Loss(LossCause.HUNG, ""), "no answer")
BUDGET, STATES = 10, 3
SEEN = samples.observed((samples.FIRST, 0), (samples.LAST, 1), found=[samples.NOTHING, samples.ALL])


@dataclass
class Guests:
    """Made-up guests; ``exploring`` is told how many windows were explored before, ``checking`` the output of the
    window. Both may raise."""

    exploring: Callable[[int], Observations] = lambda _time: SEEN
    checking: Callable[[bytes], None] = lambda _told: None
    agents: list[Any] = field(default_factory=list)
    given: int = 0
    explored: int = 0

    @contextmanager
    def agent_in(self, *_: object) -> Iterator[object]:
        self.agents.append(SimpleNamespace(is_sound=True))
        yield self.agents[-1]

    def put_program(self, *_: object) -> None:
        self.given += 1

    def explore(self, _agent: object, _made: object, _plan: object, _effort: object, told: Any, _sights: object) -> Any:
        told(STATES)
        self.explored += 1
        seen = self.exploring(self.explored - 1)
        self.agents[-1].is_sound = not seen.died
        return seen

    def session_of(self, agent: Any, *_: object) -> Any:
        def check_program(asked: Sequence[Any], _payload: object, _seconds: object) -> list[CheckerAnswer]:
            agent.is_sound = False
            for one in asked:
                self.checking(one.output)
            agent.is_sound = True
            return [CheckerAnswer(0, "") for _one in asked]

        return SimpleNamespace(check_program=check_program)


@dataclass
class Watching(Silent):
    """Counts what it is told."""

    states: Counter[str] = field(default_factory=Counter)
    steps: list[str] = field(default_factory=list)
    finishes: dict[str, int] = field(default_factory=dict)

    def expected(self, windows: int) -> Counter[str]:
        """How many states there are of so many windows."""
        return Counter({f"mine, window {place + 1}": STATES for place in range(windows)})

    def step(self, text: str) -> None:
        self.steps.append(text)

    def observed(self, workload: str, states: int) -> None:
        self.states[workload] += states

    def finished(self, workload: str, unused: int) -> None:
        self.finishes[workload] = unused


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch) -> Guests:
    made = Guests()
    for name in ("explore", "session_of", "put_program"):
        monkeypatch.setattr(program_windows, name, getattr(made, name))
    monkeypatch.setattr(pool, "agent_in", made.agent_in)
    return made


class Alike(ProgramCase):
    """A program that told one letter after the other; the disk is the same in each window."""

    @property
    def windows(self) -> tuple[Window, ...]:
        told = self.transcript.output
        return tuple(Window(told[:place], samples.TRACE) for place in range(len(told) + 1))


def looked(watching: Watching, windows: int = 3, store: WindowStore | None = None) -> list[Looked]:
    """What is seen of so many windows by one guest after the other."""
    told, request = b"abc"[: windows - 1], ProbeRequest(samples.CONFIGURATION, budget=BUDGET)
    program, transcript = Program("mine", "", ()), Transcript(told, (), 7, (), None)
    case = Alike(samples.CONFIGURATION, program, samples.BASE, samples.RECORDING, samples.plan(), transcript)
    found = explore_windows(pool.ProgramGuests(None, None, watching), case, request, 1, store)  # type: ignore[arg-type]
    assert [one.told for one in found] == [told[:place] for place in range(windows)]
    return found


def lost_with(found: Sequence[Looked]) -> list[bool]:
    return [one.observed.lost is not None for one in found]


def test_each_window_is_explored_and_each_tree_is_checked(guests: Guests) -> None:
    found = looked(watching := Watching())
    assert lost_with(found) == [False] * 3
    assert all(one.answers.keys() == {0, 1} and one.checks == 2 for one in found)
    assert len(guests.agents) == guests.given == 1
    assert watching.states == watching.expected(3) and watching.finishes.keys() == watching.states.keys()
    assert set(watching.finishes.values()) == {BUDGET - STATES}


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("error", [LOSS, AgentBroken("the checker's agent failed")])
def test_a_window_whose_guest_is_lost_is_begun_anew_and_its_states_count_once(
    guests: Guests, place: int, error: Exception
) -> None:
    left = [error]

    def checking(told: bytes) -> None:
        if len(told) == place and left:
            raise left.pop()

    guests.checking = checking
    found = looked(watching := Watching())
    assert lost_with(found) == [False] * 3
    assert len(guests.agents) == guests.given == 2
    assert watching.states == watching.expected(3)
    assert len(watching.steps) == 1 and f"window {place + 1}" in watching.steps[0]


def test_a_window_that_is_lost_twice_is_not_known_and_keeps_what_was_seen(guests: Guests) -> None:
    died = replace(SEEN, lost="the guest was lost", died=True)
    guests.exploring = lambda time: died if time in (1, 2) else SEEN
    found = looked(watching := Watching())
    assert lost_with(found) == [False, True, False]
    assert found[1].observed == died and not found[1].answers
    assert len(guests.agents) == 3
    assert watching.states == watching.expected(3) and watching.finishes.keys() == watching.states.keys()


def test_what_the_guest_refuses_is_told_of_its_window_and_the_guest_goes_on(guests: Guests) -> None:
    def checking(told: bytes) -> None:
        if told == b"a":
            guests.agents[-1].is_sound = True
            raise UsageError("no such thing")

    guests.checking = checking
    found = looked(Watching())
    assert lost_with(found) == [False, True, False] and "no such thing" in str(found[1].observed.lost)
    assert len(guests.agents) == 1


def test_a_kept_window_is_not_explored_again_and_a_lost_one_is(guests: Guests, tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", {})
    store = WindowStore(run, run.folder(0, Program("mine", "", ())))
    store.folder.mkdir()
    died = replace(SEEN, lost="the guest was lost", died=True)
    guests.exploring = lambda time: died if time in (1, 2) else SEEN
    first = looked(Watching(), store=store)
    assert lost_with(first) == [False, True, False] and run.losses() == 1
    run.clear_loss(store.folder)
    second = looked(watching := Watching(), store=store)
    assert lost_with(second) == [False] * 3 and run.losses() == 0
    assert watching.states.keys() == {"mine, window 2"}
    assert [(one.answers, one.checks) for one in second] == [(second[1].answers, 2)] * 3
    ours, theirs = (encode(ObservedDocument.of(one[0].observed, None)) for one in (second, first))
    assert ours == theirs and second[0].answers == first[0].answers
    before = guests.explored
    assert lost_with(looked(Watching(), store=store)) == [False] * 3
    assert guests.explored == before
