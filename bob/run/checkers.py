"""The runs of a program's checker on the trees of files that models of file systems allow after a crash. The checker
runs in guests, or in sandboxes on the host. If it runs in sandboxes, it runs again in guests on some of the trees, so
that bob can compare the answers (whether the checker accepts the tree). Some of these trees are a random sample. The
others are examples of trees that the checker refuses: the first tree of each *way* (a consequence and a message of the
checker). If a way has several kinds of causes, bob also takes the first tree of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from bob.agent.client import Agent, AgentBroken, what_happened
from bob.agent.loss import GuestLost
from bob.apm.model_states import ModelState
from bob.catalogue.request import CheckPlace
from bob.errors import GuestError, ImageError, UsageError
from bob.guest.given_machine import GivenImage
from bob.guest.spec import Clock
from bob.image import unpacked
from bob.observe.observation import Node
from bob.observe.observations import without_numbers
from bob.observe.tree_builder import TreeBuilder
from bob.program.answer import CheckerAnswer, CheckerRun
from bob.program.program import EMPTIED, Program
from bob.program.transcript import ProgramCase
from bob.record.recorder import put_program
from bob.run.agents import Sandboxes
from bob.run.pool import ProgramGuests
from bob.run.program_protocol import CannotBeModelled
from bob.run.program_recording import Mistrust, first_mistrust, trust_trials
from bob.run.state_queue import MOST_HUNG, Again, BuiltTrees, StateQueue, Tries
from bob.sandbox.agents import why_none
from bob.sandbox.bubblewrap import owner
from bob.text import plural

SAMPLED = 3  # fewest trees for each guest or sandbox that are checked twice: a checker may contradict itself
SHARE = 20  # guests check at least one of so many trees that the host has checked
Ends = tuple[Mapping[str, Node], Mapping[str, Node]]  # the trees after the setup and after a clean end


@dataclass(slots=True)
class Checkers:
    """The machines that run the checker of ``program``. ``hands`` is the source of these machines. It is the same
    object as ``guests``, or a source of sandboxes on the host. ``jobs`` is the number of machines that work side by
    side. The root directory of each tree gets its mode and owner from ``root``. ``why_guests`` is the reason that bob
    does not use sandboxes; it is empty if the user wants guests. The checker may run on a tree both in a guest and on
    the host. ``controlled`` has the digests of the trees that got the same answer from both runs. ``differing``
    describes two runs with different answers, or says why guests could not check (None: neither has happened).
    ``is_worded_otherwise`` is true if two runs gave the same answer, but printed different messages."""

    program: Program
    root: Node
    jobs: int
    guests: ProgramGuests
    hands: ProgramGuests
    why_guests: str = ""
    controlled: set[bytes] = field(default_factory=set)
    differing: str | None = None
    is_worded_otherwise: bool = False

    @property
    def is_on_host(self) -> bool:
        return self.hands is not self.guests

    def check(
        self, title: str, tries: Tries, budget: int, answers: dict[bytes, CheckerAnswer], seed: int
    ) -> TriedStates:
        """Run the checker on the states of ``tries`` that ``answers`` still lacks. Stop after ``budget`` states. Add
        the new answers to ``answers``."""
        tried = TriedStates(self, tries, budget, answers, Random(seed))
        tried.ask(title, SAMPLED * self.jobs, seed)
        return tried


class TriedStates:
    """The crash states that bob tried, of those that a model allows. For each of them, the checker judges the tree of
    files and the program's output. ``tries`` yields the states, and bob tries at most ``most`` of them. ``states`` has
    the tried states. No two of these have the same tree and output. ``runs`` is how often the checker ran. ``lost``
    says why some states were not checked, and ``disagreed`` says why bob does not trust the checker."""

    def __init__(
        self, checkers: Checkers, tries: Tries, most: int, answers: dict[bytes, CheckerAnswer], random: Random
    ) -> None:
        self._checkers, self._tries, self._most, self._answers, self._random = checkers, tries, most, answers, random
        self.states: Sequence[ModelState] = ()
        self.runs = self.unused = 0
        self.lost: str | None = None
        self._disagreed: str | None = None
        self._builders: dict[Agent, TreeBuilder] = {}
        self._asked: Sequence[ModelState] = ()  # states that had no answer
        self._controlled: set[bytes] = set()
        self._has_sample = False
        self._left: Sequence[ModelState] = ()  # states that the host could not check
        self._why_left: str | None = None

    @property
    def disagreed(self) -> str | None:
        return self._disagreed or self._checkers.differing

    @property
    def without(self) -> list[str]:
        """The names of extended attributes that the model's trees have, but that bob could not set when it built a tree
        for the checker."""
        return sorted({name for builder in self._builders.values() for name in builder.without})

    @property
    def notes(self) -> tuple[str, ...]:
        if not self._checkers.is_on_host:
            why = self._checkers.why_guests
            return (f"the checker ran in guests: {why}",) if why else ()
        which = "all that it refused" if self._checkers.is_worded_otherwise else "one of each class of each way"
        again = f"{plural(len(self._controlled), 'tree')}: {which}, and a sample"
        told = [f"the checker ran on the host, in sandboxes; guests ran it again on {again}"]
        if self._left:
            told.append(f"only guests ran the checker on {plural(len(self._left), 'tree')}: {self._why_left}")
        return tuple(told)

    def ask(self, title: str, again: int, seed: int) -> None:
        queue = self._queue(title, self._tries, self._answers, again=again, seed=seed)
        self._checkers.hands.pool().do_all(queue, self._checkers.jobs)
        self.states, self.unused, self._asked = queue.states, self._most - queue.handed_out, queue.asked
        self.runs, self.lost, self._disagreed = queue.checked.count, queue.lost, queue.checked.disagreed
        if self._checkers.is_on_host:
            self._left = [one for one in self._asked if one.digest not in self._answers]
            self._why_left, self.lost = queue.lost, None

    def control(self, title: str, shown: Iterable[int]) -> bool:
        """Let guests check trees again that the host has checked. ``shown`` has the indexes of the states to check, in
        the list ``states``. The first call also checks a sample, and the states that the host could not check. The
        answers of guests replace those of the host. Return whether an answer has changed. The caller must then judge
        the states again."""
        if not self._checkers.is_on_host:
            return False
        chosen = [self.states[place] for place in shown]
        left: Sequence[ModelState] = ()
        if not self._has_sample:
            self._has_sample = True
            chosen += self._sample()
            hung = [one for one in self._asked if self._has_hung(one)]
            left = [*self._left, *hung[:MOST_HUNG]]
        if self._checkers.is_worded_otherwise:  # else each sentence from the host counts as one more way
            chosen += [one for one in self.states if (answer := self._answers.get(one.digest)) and answer.code]
        known = self._checkers.controlled | self._controlled
        new = {one.digest: one for one in (*chosen, *left) if one.digest not in known}
        self._controlled.update(one.digest for one in chosen)
        before = self._seen(new)
        if new:
            self._ask_guests(title, list(new.values()))
        return before != self._seen(new)

    def _seen(self, trees: Iterable[bytes]) -> tuple[object, ...]:
        return [self._answers.get(digest) for digest in trees], self.disagreed, self.lost

    def _sample(self) -> list[ModelState]:
        """Return some of the tried states, drawn at random. The sample may contain trees that guests have already
        checked for another model."""
        ended = [one for one in self.states if one.digest in self._answers and not self._has_hung(one)]
        most = max(SAMPLED * self._checkers.jobs, -(-len(ended) // SHARE))
        return self._random.sample(ended, min(most, len(ended)))

    def _has_hung(self, state: ModelState) -> bool:
        answer = self._answers.get(state.digest)
        return answer is not None and answer.code is None

    def _ask_guests(self, title: str, states: Sequence[ModelState]) -> None:
        checkers = self._checkers
        checkers.guests.progress.step(f"{title}: guests check {plural(len(states), 'tree')}, too")
        queue = self._queue(title, Again(self._tries, states), {}, is_control=True)
        checkers.guests.pool().do_all(queue, min(checkers.jobs, len(states)))
        self.runs += queue.checked.count
        self._disagreed = self._disagreed or queue.checked.disagreed
        self.lost = self.lost or queue.lost
        for state in states:
            on_host, in_guest = self._answers.get(state.digest), queue.checked.answers.get(state.digest)
            if on_host is None or on_host.code is None:
                if in_guest is not None:
                    self._answers[state.digest] = in_guest
            elif in_guest is None or in_guest.code is None:
                why = queue.lost or "the checker did not end in a guest"
                checkers.differing = checkers.differing or f"guests could not control the checker on the host: {why}"
            elif in_guest.code != on_host.code:
                checkers.differing = checkers.differing or _differing(on_host.code, in_guest.code)
            else:
                self._answers[state.digest] = in_guest  # in the words of the guest
                checkers.controlled.add(state.digest)
                checkers.is_worded_otherwise |= without_numbers(in_guest.evidence) != without_numbers(on_host.evidence)

    def _queue(
        self,
        title: str,
        tries: Tries,
        answers: dict[bytes, CheckerAnswer],
        *,
        again: int = 0,
        seed: int = 1,
        is_control: bool = False,
    ) -> StateQueue:
        checkers = self._checkers

        def begin(agent: Agent) -> None:
            put_program(agent, checkers.program)
            self._builders[agent] = TreeBuilder(agent, checkers.root)

        def check(agent: Agent, built: BuiltTrees) -> list[CheckerAnswer]:
            asked = [CheckerRun(tree, state.output) for state, tree in built]
            return self._builders[agent].check(asked, checkers.program.seconds)

        world = checkers.guests.world(checkers.program)
        return StateQueue(
            title,
            tries,
            self._most,
            answers,
            check,
            again=again,
            seed=seed,
            world=world,
            begin=begin,
            is_control=is_control,
        )


def _differing(on_host: int | None, in_guest: int | None) -> str:
    ends = f"of one tree and output it ends with {on_host} and with {in_guest}"
    return f"the checker answers differently on the host and in a guest: {ends}"


def checkers_for(guests: ProgramGuests, case: ProgramCase, ends: Ends, checks: CheckPlace, jobs: int) -> Checkers:
    """Try the checker on trees that bob built, in a guest and on the host, and return the machines that shall run it.
    ``ends`` has the program's trees after the setup and after a clean end. The trial uses copies of these trees, some
    of them damaged. Raise CannotBeModelled if the checker refuses an undamaged copy, or accepts a damaged one. Raise
    GuestError if the user wants the checker to run on the host, but it cannot run there."""
    in_guest = _tried(guests, case, ends)
    _check(case, in_guest)
    by_guests = Checkers(case.work, root_of(ends[0]), jobs, guests, guests)
    if checks is CheckPlace.GUEST:
        return by_guests
    hands = replace(guests, source=Sandboxes(guests.progress.step))
    why_not = _why_not_on_host(hands, case, ends, in_guest)
    if why_not is None:
        return replace(by_guests, hands=hands)
    if checks is CheckPlace.HOST:
        raise GuestError(f"the checker cannot run on the host: {why_not}", hint="--checks auto runs it in guests then")
    return replace(by_guests, why_guests=why_not)


def _why_not_on_host(
    hands: ProgramGuests, case: ProgramCase, ends: Ends, in_guest: Sequence[CheckerAnswer]
) -> str | None:
    if isinstance(hands.image, GivenImage):
        return "the files of a given machine are not on the host"
    try:
        disk = hands.world(case.work) or hands.image.root
        if (why := why_none(unpacked(disk, owner(), hands.progress.step))) is not None:
            return why
        on_host = _tried(hands, case, ends)
    except (GuestLost, AgentBroken) as failure:
        return what_happened(failure)
    except (ImageError, CannotBeModelled) as failure:
        return str(failure)
    codes = [answer.code for answer in on_host], [answer.code for answer in in_guest]
    return None if codes[0] == codes[1] else f"on trials it ends with {codes[0]} there, and with {codes[1]} in a guest"


def _tried(hands: ProgramGuests, case: ProgramCase, ends: Ends) -> list[CheckerAnswer]:
    before, after = ({path: node for path, node in end.items() if path != "/"} for end in ends)
    program = case.work
    asked = trust_trials(program, before, after, case.transcript.output)

    def ask(agent: Agent) -> list[CheckerAnswer]:
        put_program(agent, program)
        return TreeBuilder(agent, root_of(ends[0])).check(asked, program.seconds)

    try:
        is_spoilt = any(one.spoiler not in ("", EMPTIED) for one in asked)
        return hands.ask(program, Clock.REAL, ask, title="trust", is_spoilt=is_spoilt)
    except UsageError as error:
        raise CannotBeModelled(f"its tree cannot be built in memory: {error.message}") from None


def _check(case: ProgramCase, answers: Sequence[CheckerAnswer]) -> None:
    match first_mistrust(case.work, answers):
        case Mistrust(what, answer, must_refuse=False):
            raise CannotBeModelled(f"the checker refuses {what}, built in memory: {answer.evidence}")
        case Mistrust(what):
            raise CannotBeModelled(f"the checker does not refuse {what}, built in memory")


def root_of(tree: Mapping[str, Node]) -> Node:
    return tree.get("/", Node("directory"))
