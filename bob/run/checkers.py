"""Guests, or sandboxes on the host, run a program's checker on trees that models allow. Guests control sandboxes: they
run the checker again on each tree that it refuses, and on a sample of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from bob.agent.client import Agent, AgentBroken, what_happened
from bob.agent.loss import GuestLost
from bob.apm.model_states import ModelState
from bob.catalogue.request import CheckPlace
from bob.errors import GuestError, ImageError, UsageError
from bob.guest.spec import Clock
from bob.image import unpacked
from bob.observe.observation import Node
from bob.observe.tree_builder import TreeBuilder
from bob.program.answer import CheckerAnswer, CheckerRun
from bob.program.program import Program
from bob.program.transcript import ProgramCase
from bob.record.recorder import put_program
from bob.run.agents import Sandboxes
from bob.run.pool import ProgramGuests
from bob.run.program_protocol import CannotBeModelled
from bob.run.program_recording import Mistrust, first_mistrust, trust_trials
from bob.run.state_queue import Again, BuiltTrees, StateQueue, Tries
from bob.sandbox.agents import why_none
from bob.sandbox.bubblewrap import owner
from bob.text import plural

SAMPLED = 3  # trees for each guest that are checked again: a checker may contradict itself
Ends = tuple[Mapping[str, Node], Mapping[str, Node]]  # the trees after the setup and after a clean end
Answers = Mapping[bytes, CheckerAnswer]


@dataclass(frozen=True, slots=True)
class TriedStates:
    """The distinct ``states`` that were tried, the ``runs`` of the checker, and how many fewer than planned were
    ``unused``. ``lost`` says why some were not checked, ``disagreed`` how the checker contradicted itself; ``without``
    are extended attributes that no built tree has."""

    states: Sequence[ModelState]
    runs: int
    unused: int
    lost: str | None
    disagreed: str | None
    without: Sequence[str]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Checkers:
    """The ``hands`` that run the checker of ``program``: ``guests``, or sandboxes over ``jobs`` processors. ``root`` is
    that of each tree. ``why_guests`` says why not sandboxes; empty if the user wants it so."""

    program: Program
    root: Node
    jobs: int
    guests: ProgramGuests
    hands: ProgramGuests
    why_guests: str = ""

    def check(
        self, title: str, tries: Tries, budget: int, answers: dict[bytes, CheckerAnswer], seed: int
    ) -> TriedStates:
        """Run the checker on states of ``tries`` without an answer, ``budget`` at the most, and fill ``answers``."""
        builders: dict[Agent, TreeBuilder] = {}

        def begin(agent: Agent) -> None:
            put_program(agent, self.program)
            builders[agent] = TreeBuilder(agent, self.root)

        def check(agent: Agent, built: BuiltTrees) -> list[CheckerAnswer]:
            asked = [CheckerRun(tree, state.output) for state, tree in built]
            return builders[agent].check(asked, self.program.seconds)

        world, again = self.guests.world(self.program), SAMPLED * self.jobs
        queue = StateQueue(title, tries, budget, answers, check, again=again, seed=seed, world=world, begin=begin)
        self.hands.pool().do_all(queue, self.jobs)
        chosen = Controlled() if self.hands is self.guests else Controlled.of(queue.asked, answers, again, seed)
        control = StateQueue(
            title, Again(tries, chosen.states), budget, {}, check, world=world, begin=begin, is_control=True
        )
        if chosen.states:
            self.guests.progress.step(f"{title}: guests check {plural(len(chosen.states), 'tree')}, too")
            self.guests.pool().do_all(control, self.jobs)
        in_guests = control.checked.answers
        disagreed = queue.checked.disagreed or _differing(answers, in_guests)
        answers.update({tree: one for tree, one in in_guests.items() if tree not in answers or one.code is not None})
        return TriedStates(
            states=queue.states,
            runs=queue.checked.count + control.checked.count,
            unused=budget - queue.handed_out,
            lost=queue.lost if self.hands is self.guests else control.lost,
            disagreed=disagreed,
            without=sorted({name for builder in builders.values() for name in builder.without}),
            notes=self._notes(chosen, queue.lost),
        )

    def _notes(self, chosen: Controlled, lost: str | None) -> tuple[str, ...]:
        if self.hands is self.guests:
            return (f"the checker ran in guests: {self.why_guests}",) if self.why_guests else ()
        again = f"the {plural(len(chosen.refused), 'tree')} that it refused, and on {len(chosen.sample)} others"
        told = [f"the checker ran on the host, in sandboxes; guests ran it again on {again}"]
        if chosen.unanswered:
            told.append(f"only guests ran the checker on {plural(len(chosen.unanswered), 'tree')}: {lost}")
        return tuple(told)


@dataclass(frozen=True, slots=True)
class Controlled:
    """States whose trees a guest checks after the host: those that the checker ``refused``, a ``sample`` of those that
    it accepted, and those that the host has left ``unanswered``."""

    refused: Sequence[ModelState] = ()
    sample: Sequence[ModelState] = ()
    unanswered: Sequence[ModelState] = ()

    @classmethod
    def of(cls, asked: Sequence[ModelState], answers: Answers, most: int, seed: int) -> Controlled:
        unanswered = [state for state in asked if state.digest not in answers]
        answered = [(state, answers[state.digest]) for state in asked if state.digest in answers]
        refused = [state for state, answer in answered if answer.consequence is not None]
        accepted = [state for state, answer in answered if answer.consequence is None]
        return cls(refused, Random(seed).sample(accepted, min(most, len(accepted))), unanswered)

    @property
    def states(self) -> list[ModelState]:
        return [*self.refused, *self.sample, *self.unanswered]


def _differing(on_host: Answers, in_guests: Answers) -> str | None:
    """Return how the checker answers differently on one tree after one output; None if it does not."""
    for digest, answer in in_guests.items():
        first = on_host[digest].code if digest in on_host else None
        if first is not None and answer.code is not None and first != answer.code:
            ends = f"of one tree and output it ends with {first} and with {answer.code}"
            return f"the checker answers differently on the host and in a guest: {ends}"
    return None


def checkers_for(guests: ProgramGuests, case: ProgramCase, ends: Ends, checks: CheckPlace, jobs: int) -> Checkers:
    """Try the checker on built trees, in a guest and on the host. Raise CannotBeModelled if it does not judge them as
    the real ones, GuestError if it must run on the host and cannot."""
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
    program, said = case.work, case.transcript.output

    def ask(agent: Agent) -> list[CheckerAnswer]:
        put_program(agent, program)
        asked = trust_trials(program, before, after, said)
        return TreeBuilder(agent, root_of(ends[0])).check(asked, program.seconds)

    try:
        return hands.ask(program, Clock.REAL, ask, title="trust", is_spoilt=True)
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
