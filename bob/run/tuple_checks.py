"""The checks of tuples. A tuple has a tree of files for each node of a cluster, and the client's output so far.
Sandboxes on the host do the checks if they can, and guests repeat some of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bob.agent.client import Agent
from bob.catalogue.request import ProbeRequest
from bob.crash.tuples import Chosen
from bob.judge.looked import Looked, places_in_rank
from bob.observe.easiest import rank
from bob.observe.observation import Node
from bob.observe.observations import Observations
from bob.program.answer import CheckerAnswer, CheckerAnswers
from bob.program.transcript import ProgramCase
from bob.progress import Progress
from bob.record.recorder import put_program
from bob.run.host_answers import HostAnswers
from bob.run.host_clusters import HostCluster, TupleCheck
from bob.run.pool import Job, JobQueue, ProgramGuests, StateSink, clock_to_check
from bob.run.program_windows import CheckJob
from bob.text import plural


class TuplesJob(CheckJob):
    """A job that checks tuples after one output of the client. ``known`` has answers of earlier checks, by the place of
    the tuple in ``tuples``; the job checks the others. The function ``tree`` returns the files of a tuple."""

    tuples: tuple[Chosen, ...] = ()
    tree: Callable[[Chosen], Mapping[str, Node]]

    def __init__(
        self,
        case: ProgramCase,
        place: int,
        output: bytes,
        observed: Observations,
        behind: Mapping[int, tuple[int, ...]],
        late: Mapping[int, int],
        request: ProbeRequest,
        progress: Progress,
    ) -> None:
        super().__init__(case, place, output, request, progress)
        self._observed, self._behind, self._late = observed, behind, late
        self.known: Mapping[int, CheckerAnswer] = {}
        self._taken_over: Mapping[int, CheckerAnswer] = {}
        self.looked = self.looked_at(case, observed, self.known_answers())
        self.is_counted = False  # whether the progress has counted the tuples already

    @property
    def checked(self) -> list[tuple[int, Chosen]]:
        """The tuples that have an answer, each with the number of its outcome."""
        return [(place, one) for place, one in enumerate(self.tuples) if place in self.looked.answers]

    @property
    def in_guests(self) -> dict[int, CheckerAnswer]:
        """The answers of the latest guests, without those that they found in ``known`` when they began."""
        return {place: answer for place, answer in self.looked.answers.items() if place not in self._taken_over}

    def on_host(self, place: int) -> TupleCheck:
        """Return the check of the tuple at ``place``, as the host does it."""
        return TupleCheck(self.title, partial(self.tree, self.tuples[place]), self._output, self.late(place))

    def late(self, outcome: int) -> int:
        return self._late[outcome]

    def hardness(self, place: int) -> tuple[int, ...]:
        """Return how hard the tuple at ``place`` is to explain."""
        return rank(self._observed.states[place].state, *places_in_rank(self._behind[place], self._place))

    @property
    def is_needed(self) -> bool:
        """Whether guests must check more tuples, and the last one was not lost."""
        return len(self.known) < len(self.tuples) and self.looked.observed.lost is None

    def end(self, answers: Mapping[int, CheckerAnswer], on_host: int, in_guests: int) -> None:
        """Note that no further checks follow. The job's result has these ``answers``. The host did ``on_host`` checks,
        and guests did ``in_guests``, each on disks that they mounted."""
        coverage = replace(self.looked.observed.coverage, mounted=in_guests)
        observed = replace(self.looked.observed, coverage=coverage)
        self.looked = replace(self.looked, answers=answers, observed=observed, checks=on_host + in_guests)
        self._progress.finished(self.title, self.budget - len(answers))

    @property
    def budget(self) -> int:
        return checks_of_window(self._case, self._request)

    def known_answers(self) -> CheckerAnswers[int]:
        self._taken_over = self.known
        return CheckerAnswers(dict(self.known), len(self.known))

    def observe(self, agent: Agent, tell: StateSink) -> tuple[ProgramCase, Observations]:
        del agent, tell
        return self._case, self._observed

    def looked_at(self, case: ProgramCase, observed: Observations, checked: CheckerAnswers[int]) -> Looked:
        return replace(super().looked_at(case, observed, checked), behind=self._behind, late=self._late)

    def _sink(self, tell: StateSink) -> StateSink:
        return (lambda _checks: tell(0)) if self.is_counted else tell

    def _finished(self) -> None:
        """Do nothing: guests may get further tuples (:meth:`end`)."""


@dataclass(frozen=True, slots=True)
class GuestsShare:
    """The share of the guests in the checks. They ``repeated`` checks of the host (None: the host checked nothing).
    ``why_all`` is the reason that they checked all (empty: they did not, or the user wants that)."""

    repeated: int | None = None
    why_all: str = ""


NO_CHECKS = GuestsShare()


def check_tuples(
    guests: ProgramGuests, case: ProgramCase, windows: Sequence[TuplesJob], host: HostCluster, jobs: int, seed: int
) -> GuestsShare:
    """Check the tuples of ``windows`` on the host, and repeat some of the checks in guests. Without sandboxes, guests
    check all."""
    places = [(window, place) for window in windows for place in range(len(window.tuples))]
    places.sort(key=lambda one: one[0].hardness(one[1]))
    # Most tuples may belong to one window. The progress counts a check for any window, so that all advance alike.
    titles = [window.title for window in windows]
    asked_of_host = [
        replace(window.on_host(place), title=titles[number % len(titles)])
        for number, (window, place) in enumerate(places)
    ]
    found = host.check(asked_of_host)
    answers = HostAnswers(places, {places[number]: answer for number, answer in found.items()}, seed)
    in_guests: dict[tuple[TuplesJob, int], CheckerAnswer] = {}
    for window in windows:
        window.is_counted = bool(found)
    while True:
        for window in windows:
            window.known = _of(window, answers.left_alone | in_guests)
        asked = [window for window in windows if window.is_needed]
        if found and asked:
            number = len(answers.repeated) - len(in_guests)
            guests.progress.step(f"guests repeat {number:,} of {plural(len(found), 'check')}")
        do_with_program(guests, case, asked, jobs)
        for window, place in answers.repeated:
            if (answer := window.in_guests.get(place)) is not None:
                in_guests[window, place] = answer
        if not answers.compare(in_guests):
            break
        if answers.doubt is not None:
            guests.progress.step(f"guests check all: {answers.doubt}")
    on_host = [places[number] for number in found]
    for window in windows:
        done = sum(its is window for its, _place in on_host), sum(its is window for its, _place in in_guests)
        window.end(_of(window, answers.believed | in_guests), *done)
    repeated = sum(one in in_guests for one in on_host) if found else None
    return GuestsShare(repeated, answers.doubt or host.why_not or "")


def _of(window: TuplesJob, answers: Mapping[tuple[TuplesJob, int], CheckerAnswer]) -> dict[int, CheckerAnswer]:
    return {place: answer for (its, place), answer in answers.items() if its is window}


def do_with_program(guests: ProgramGuests, case: ProgramCase, work: Sequence[Job], jobs: int) -> None:
    if not work:
        return
    queue = JobQueue(
        clock_to_check([case.work]), work, guests.world(case.work), lambda agent: put_program(agent, case.work)
    )
    guests.pool().do_all(queue, min(jobs, len(work)))


def checks_of_window(case: ProgramCase, request: ProbeRequest) -> int:
    """Return the number of checks for one output of the client, if each output gets as many."""
    return -(-request.budget // len(case.windows))
