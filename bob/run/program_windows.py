"""Explore a recorded program in guests side by side, and run its checker on each tree. A *window* has the crashes
between two outputs of the program (:class:`bob.program.transcript.Window`)."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random

from bob.agent.client import Agent, AgentBroken, what_happened
from bob.agent.loss import GuestLost
from bob.catalogue.request import ProbeRequest
from bob.crash.state import CrashState
from bob.errors import UsageError
from bob.judge.looked import Looked
from bob.observe.easiest import easiest
from bob.observe.explore import explore
from bob.observe.mount_cache import Sights
from bob.observe.observations import ExploredState, Observations
from bob.observe.session import session_of
from bob.program.answer import Batches, CheckerAnswers, CheckerRun
from bob.program.transcript import ProgramCase, Window
from bob.progress import Progress
from bob.record.recorder import choose_start, put_program
from bob.run.pool import Job, JobQueue, LostGuest, Pool, ProgramGuests, StateSink, clock_to_check
from bob.store.run_directory import RunDirectory

LEAST_SAMPLED = 3  # fewest crash states of a window that bob checks although it has checked their trees already
BATCH = 10  # most states in a request; if a later request loses the guest, the answers to earlier requests stay


@dataclass(frozen=True, slots=True)
class WindowStore:
    """The windows that a run directory keeps of the program that was recorded into ``folder``."""

    run: RunDirectory
    folder: Path

    def kept(self, case: ProgramCase) -> dict[int, Looked]:
        """Return the kept windows of ``case``, by their place."""
        found: dict[int, Looked] = {}
        for place, window in enumerate(case.windows):
            if (known := self.run.checked(self.folder, place)) is not None:
                found[place] = _looked(case.within(window), window.output, *known)
        return found

    def keep(self, place: int, looked: Looked) -> None:
        checked = CheckerAnswers(dict(looked.answers), looked.checks, looked.disagreed)
        self.run.save_checked(self.folder, place, looked.observed, checked)

    def lose(self, case: ProgramCase, reason: str) -> None:
        """Note that a window was lost, so that a resumed run tries it again."""
        self.run.save_loss(self.folder, case.work, reason)


def explore_windows(
    guests: ProgramGuests, case: ProgramCase, request: ProbeRequest, jobs: int, store: WindowStore | None = None
) -> list[Looked]:
    """Explore all windows of ``case`` in ``jobs`` guests side by side. Return the results in the order of the windows.
    Leave out the windows that ``store`` keeps, and keep the others in it as soon as they are done."""
    sights: Sights = {}
    known = {} if store is None else store.kept(case)
    windows = {
        place: _WindowJob(case, place, window, request, sights, guests.progress, store)
        for place, window in enumerate(case.windows)
        if place not in known
    }
    if windows:
        queue = JobQueue(
            clock_to_check([case.work]),
            windows.values(),
            guests.world(case.work),
            lambda agent: put_program(agent, case.work),
        )
        Pool(guests.source, guests.image, guests.progress).do_all(queue, min(jobs, len(windows)))
    return [known[place] if place in known else windows[place].looked for place in range(len(case.windows))]


def _looked(case: ProgramCase, output: bytes, observed: Observations, checked: CheckerAnswers[int]) -> Looked:
    return Looked(output, case, observed, checked.answers, checked.count, checked.disagreed)


class CheckJob(Job):
    """A job that runs the checker on each tree that crashes leave after the program has written ``output``. When the
    job is done, ``looked`` has the result."""

    when = " while checking"
    looked: Looked

    def __init__(
        self,
        case: ProgramCase,
        place: int,
        output: bytes,
        request: ProbeRequest,
        progress: Progress,
        store: WindowStore | None = None,
    ) -> None:
        super().__init__(f"{case.work.name}, window {place + 1}")
        self._case, self._place, self._output, self._request = case, place, output, request
        self._progress, self._store = progress, store

    def observe(self, agent: Agent, tell: StateSink) -> tuple[ProgramCase, Observations]:
        """Return the crash states with their trees, and the case that they belong to."""
        raise NotImplementedError

    def late(self, outcome: int) -> int:
        """Return the node of a cluster that starts late in the check of the tree number ``outcome``, or -1."""
        del outcome
        return -1

    def looked_at(self, case: ProgramCase, observed: Observations, checked: CheckerAnswers[int]) -> Looked:
        return _looked(case, self._output, observed, checked)

    def known_answers(self) -> CheckerAnswers[int]:
        """Return answers that bob already has, by the outcome's number. The job checks the other outcomes."""
        return CheckerAnswers()

    def do(self, agent: Agent, tell: StateSink) -> bool:
        case, observed = self.observe(agent, tell)
        checked = self.known_answers()
        if agent.is_sound:
            try:
                _check(agent, case, self._output, self._request, observed, checked, self._sink(tell), self.late)
            except (GuestLost, AgentBroken, UsageError) as loss:
                observed = replace(observed, lost=what_happened(loss, self.when))
        self.looked = self.looked_at(case, observed, checked)
        if not agent.is_sound:
            raise LostGuest(observed.lost)
        if self._store is not None:
            if observed.lost is None or observed.final:
                self._store.keep(self._place, self.looked)
            else:
                self._store.lose(self._case, observed.lost)
        self._finished()
        return True

    def give_up(self, error: Exception, reason: str, trace: str = "") -> None:
        if not isinstance(error, LostGuest):
            raise error
        if self._store is not None:
            self._store.lose(self._case, reason)
        self._finished()

    def _sink(self, tell: StateSink) -> StateSink:
        return lambda _checks: tell(0)  # the progress counts the states that :meth:`observe` tries

    @property
    def budget(self) -> int:
        """The number of states that the progress expects of this job."""
        return self._request.budget

    def _finished(self) -> None:
        self._progress.finished(self.title, self.budget - self.states)


class _WindowJob(CheckJob):
    """A job that explores one window of a program (the crashes between two outputs), and runs the checker on each tree.
    If two crash states give the same disk, bob mounts it only once. All windows share the table ``sights``, which has
    the disks that bob has mounted."""

    def __init__(
        self,
        case: ProgramCase,
        place: int,
        window: Window,
        request: ProbeRequest,
        sights: Sights,
        progress: Progress,
        store: WindowStore | None,
    ) -> None:
        super().__init__(case, place, window.output, request, progress, store)
        self._window, self._sights = window, sights

    def observe(self, agent: Agent, tell: StateSink) -> tuple[ProgramCase, Observations]:
        case = self._case.within(self._window)
        # A program may see more of a tree than properties are about.
        effort = replace(self._request.effort, closely=True)
        return case, explore(agent, case.subject, case.plan, effort, tell, self._sights)


def _check(
    agent: Agent,
    case: ProgramCase,
    output: bytes,
    request: ProbeRequest,
    observed: Observations,
    checked: CheckerAnswers[int],
    tell: StateSink,
    late: Callable[[int], int],
) -> None:
    """Run the checker on each tree. If several crash states mount with this tree, take the one that is easiest to
    explain to a user. Also run the checker in a sample of other crash states that mount with the same tree. If a check
    did not end in time, run it once more."""
    of: dict[int, list[ExploredState]] = {}
    for seen in observed.states:
        if seen.outcome is not None:
            of.setdefault(seen.outcome, []).append(seen)
    mounted = [one for one in of if observed.findings.mounted(one) and one not in checked.answers]
    first = {one: easiest(of[one]).shown.state for one in mounted}
    others = [(one, seen.state) for one in first for seen in of[one] if seen.state != first[one]]
    wanted = min(len(others), max(LEAST_SAMPLED, round(request.audit * len(others))))
    sample = Random(f"{request.seed} checked {len(output)}").sample(others, wanted)
    plan, session, batches = case.plan, session_of(agent, case), Batches(BATCH)

    def ask(asked: Iterator[tuple[int, CrashState]]) -> None:
        while some := list(islice(asked, batches.size)):
            tell(0)
            began = time.monotonic()
            checkings = [CheckerRun(plan.composer.delta(state), output) for _outcome, state in some]
            answers = session.check_program(checkings, plan.composer.payload_since(0), case.work.seconds)
            batches.took(len(some), time.monotonic() - began)
            tell(len(some))
            for (outcome, _state), answer in zip(some, answers, strict=True):
                checked.take(outcome, answer)

    def ask_in_order(asked: Sequence[tuple[int, CrashState]]) -> None:
        """Ask about the states in groups: the nodes of a cluster start in one order for all states of a group."""
        groups: dict[int, list[tuple[int, CrashState]]] = {}
        for one in asked:
            groups.setdefault(late(one[0]), []).append(one)
        for node, some in groups.items():
            if case.work.nodes:
                choose_start(agent, node)
            ask(iter(some))

    ask_in_order(list(first.items()))
    ask_in_order(sample)
    ask_in_order([(one, first[one]) for one, answer in checked.answers.items() if answer.code is None])
