"""The answers that models of file systems give about a recorded program. A model says which trees of files a crash may
leave (it "allows" them). bob builds these trees, and the program's checker checks each of them. A model is a set of
clauses. A *clause* is one promise about crashes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from bob.agent.client import AgentBroken, what_happened
from bob.agent.loss import GuestLost
from bob.answer.result import Allowed, Checks, SubjectResult
from bob.apm.allowed import TreeOracle
from bob.apm.clauses import Clause, Intact, TreePart
from bob.apm.counting import StateCount, count
from bob.apm.dependencies import Graph, graph
from bob.apm.micro import Workings, workings
from bob.apm.model import Model
from bob.apm.model_graph import graph_under
from bob.apm.model_states import ModelStates
from bob.apm.tree_digests import shape_of
from bob.apm.trees import observed_tree
from bob.catalogue.request import ProbeRequest
from bob.errors import BobError, UsageError
from bob.judge.looked import Looked
from bob.judge.modelled import (
    BuiltState,
    JudgedModel,
    Key,
    ModelLooked,
    disbelieved,
    judge_model,
    refused_trees,
    unknown,
)
from bob.judge.reliance import Explaining
from bob.observe.observation import Node, Observation
from bob.program.answer import CheckerAnswer
from bob.program.program import Program
from bob.program.transcript import ProgramCase
from bob.protocol.diagram import DiagramStep, steps_of
from bob.protocol.presence import known_presence, parts_of_calls
from bob.protocol.replay import ReplayedProgram
from bob.run.checkers import Checkers, TriedStates, checkers_for
from bob.run.pool import ProgramGuests
from bob.run.program_protocol import CannotBeModelled, both_ends, named, protocol_of, without_logs

MOST_TRIED = 50  # most crash states that bob tries for each tree of the budget, since many give known trees
MOST_MICRO_OPERATIONS = 20_000  # the order of micro-operations takes a bit of memory for each pair
MOST_IN_PAIRS = 500  # with at most so many operations, bob can ask whether a model allows an unlisted tree
_STALE = (
    "{} allows old contents in place of missing data. For such a state bob tried three trees: with old contents of the "
    "disk, with what the file itself had before a truncate, and with zeros"
)


@dataclass(frozen=True, slots=True)
class Allows:
    """A model's judgement of trees. Both functions take the program's output before a crash, and a tree. ``says``
    returns whether the model allows that a crash after this output leaves this tree, or None if that is unknown.
    ``clauses`` returns the clauses of the model (its promises) that forbid the tree. The set is empty if they are
    unknown."""

    says: Callable[[bytes, Mapping[str, Node]], bool | None]
    clauses: Callable[[bytes, Mapping[str, Node]], frozenset[Clause]] = lambda _output, _tree: frozenset()


UNKNOWN = Allows(lambda _output, _tree: None)


def by_list(tries: ModelStates, by_pairs: Allows, model: Model) -> Allows:
    """Return a judgement that looks a tree up in ``tries``, the list of all trees that ``model`` allows. If the model
    allows stale data (old contents of the disk) or garbage, the list cannot be complete. In this case, ``by_pairs``
    judges the trees that are not on the list, by the model's promises about pairs of operations."""
    shapes = frozenset(tries.shapes)

    def is_listed(output: bytes, tree: Mapping[str, Node]) -> bool:
        return shape_of(output, observed_tree(Observation(True, None, dict(tree)))) in shapes

    def is_allowed(output: bytes, tree: Mapping[str, Node]) -> bool | None:
        return is_listed(output, tree) or by_pairs.says(output, tree)

    return replace(by_pairs, says=is_allowed if tries.shows_stale or _allows_garbage(model) else is_listed)


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    model: Model
    result: SubjectResult
    allows: Allows


def hold_against(
    guests: ProgramGuests,
    case: ProgramCase,
    request: ProbeRequest,
    models: Sequence[Model],
    jobs: int,
    explaining: Callable[[str], Explaining],
) -> tuple[list[ModelAnswer], tuple[DiagramStep, ...]]:
    """Return the answer of each of ``models`` for a recorded program, and the program's steps: its changes of files,
    its syncs and its outputs. For each model, bob checks at most as many distinct trees as the budget in ``request``.
    bob calls ``explaining`` with a name, such as that of a model. The returned Explaining runs functions that explain
    an answer. If such a function fails, the Explaining saves the traceback under this name."""
    steps: tuple[DiagramStep, ...] = ()
    try:
        before, after = both_ends(guests, case)
        again, notes = protocol_of(case, before, after)
        follow = partial(steps_of, case.transcript.calls, again.effects, case.transcript.tellings)
        steps = explaining("its calls").made(follow, ())
        apart = workings(again.history)
        if len(apart.operations) > MOST_MICRO_OPERATIONS:
            raise CannotBeModelled(f"too large for models: {len(apart.operations):,} micro-operations")
        checkers = checkers_for(guests, case, (before, after), request.host.checks, jobs)
        work = _ModelledProgram(guests, checkers, case, request, again, apart, before)
        guests.progress.planned(len(models), len(models) * request.budget)
    except Exception as broken:
        reason = _reason(broken, explaining("by models"))
        return [ModelAnswer(model, unknown(model.name, model.about, reason), UNKNOWN) for model in models], steps
    answers = [_looked(work, model, notes, explaining(model.name)) for model in models]
    if checkers.differing:
        answers = [replace(one, result=disbelieved(one.result, checkers.differing)) for one in answers]
    return answers, steps


def _looked(work: _ModelledProgram, model: Model, notes: Sequence[str], explaining: Explaining) -> ModelAnswer:
    try:
        return work.look(model, notes, explaining)
    except Exception as broken:
        return ModelAnswer(model, unknown(model.name, model.about, _reason(broken, explaining)), UNKNOWN)


def _reason(broken: Exception, explaining: Explaining) -> str:
    """Return in words why a model lacks an answer. The cause is the error ``broken``. Raise this error again if it
    would also stop the other work of the run."""
    match broken:
        case CannotBeModelled():
            return str(broken)
        case GuestLost() | AgentBroken():
            return what_happened(broken, " before it built anything")
        case UsageError():
            return broken.message
        case BobError() | OSError():
            raise broken
    return explaining.broke(broken)


def allowed_by_models(guests: ProgramGuests, case: ProgramCase, models: Sequence[Model]) -> list[Allows]:
    """Return the judgement of each of ``models``, for trees that crashes of the recording ``case`` left. If bob cannot
    ask models about this recording, for example because it has too many operations, each judgement says None
    (unknown)."""
    try:
        before, after = both_ends(guests, case)
        again, _notes = protocol_of(case, before, after)
        if len(again.history.operations) <= MOST_IN_PAIRS:
            pairs = graph(again.workload, workings(again.history))
            each = [TreeOracle(pairs, model.promised, again.outputs) for model in models]
            return [_but_for_logs(Allows(one.allows, one.clauses), case.work, before) for one in each]
    except (CannotBeModelled, GuestLost, AgentBroken):
        pass  # the caller counts unknown judgements
    return [UNKNOWN] * len(models)


def unpredicted(allows: Allows, looked: Sequence[Looked]) -> tuple[dict[Key, tuple[str, ...]], int]:
    """Return a pair. The first member is about the vulnerabilities that bob saw on a file system, in trees that the
    model forbids. It maps each vulnerability to the names of the clauses (promises of the model) that forbid the first
    such tree. The second member is the number of trees that the checker refuses, but that the model could not judge.
    ``looked`` has the observed crash states, with the checker's answers."""
    found: dict[Key, tuple[str, ...]] = {}
    undecided = 0
    for key, output, tree in refused_trees(looked):
        is_allowed = allows.says(output, tree)
        undecided += is_allowed is None
        if is_allowed is False and key not in found:
            found[key] = tuple(sorted(clause.name for clause in allows.clauses(output, tree)))
    return found, undecided


@dataclass(slots=True)
class _ModelledProgram:
    guests: ProgramGuests
    checkers: Checkers
    case: ProgramCase
    request: ProbeRequest
    again: ReplayedProgram
    apart: Workings
    before: Mapping[str, Node]
    answers: dict[bytes, CheckerAnswer] = field(default_factory=dict)
    pairs: Graph | None = None

    def look(self, model: Model, notes: Sequence[str], explaining: Explaining) -> ModelAnswer:
        """Run the checker on the trees that ``model`` allows. Return the answer: how the program breaks on this
        model."""
        self.guests.progress.step(f"building the states that {model.name} allows for {self.case.work.name}")
        self.guests.progress.recorded(model.name)
        budget = self.request.budget
        asked = graph_under(self.again.workload, self.apart, model.promised)
        tries = ModelStates(asked, model.promised, self.again.outputs, MOST_TRIED * budget, budget)
        done = self.checkers.check(model.name, tries, budget, self.answers, self.request.seed)
        self.guests.progress.finished(model.name, done.unused)
        calls = self.again.calls
        parts = parts_of_calls([one.number for one in self.apart.operations], calls)
        allowed = StateCount(tries.tried, is_exact=True) if tries.is_all else count(tries.lattice, self.again.outputs)
        looked = ModelLooked(
            model=model.name,
            allowed=Allowed(
                about=model.about,
                operations=len(self.again.history.operations),
                micro_operations=len(self.apart.operations),
                tried=tries.tried,
                is_all=tries.is_all,
                allowed=allowed.states,
                is_counted=allowed.is_exact,
            ),
            states=(),
            tree=lambda place: tries.nodes(done.states[place]),
            checks=0,
            presence=lambda place: known_presence(parts, done.states[place].crash.there),
            calls=calls,
            tellings=self.case.transcript.tellings,
        )
        judged = self._judged(looked, model, tries, done, notes, explaining)
        while done.control(model.name, judged.shown):
            judged = self._judged(looked, model, tries, done, notes, explaining)
        left = [f"these states leave out extended attributes: {named(done.without)}"] if done.without else []
        checks = Checks(0, len(done.states), done.runs)
        result = replace(judged.result, checks=checks, notes=(*judged.result.notes, *done.notes, *left))
        is_all = tries.is_all and all(state.digest in self.answers for state in done.states)
        allows = self._allows(model, tries, is_all=is_all)
        return ModelAnswer(model, result, _but_for_logs(allows, self.case.work, self.before))

    def _judged(
        self,
        looked: ModelLooked,
        model: Model,
        tries: ModelStates,
        done: TriedStates,
        notes: Sequence[str],
        explaining: Explaining,
    ) -> JudgedModel:
        """Return the judgement that follows from the checker's answers so far: whether the program is safe on
        ``model``. ``done`` has the states that bob tried."""
        answers = self.answers
        with_answers = replace(
            looked,
            states=[BuiltState(one.output, one.crash.stage.value, answers.get(one.digest)) for one in done.states],
            checks=done.runs,
            accepted=[_is_accepted(answers.get(digest)) if digest else None for digest in tries.prefixes],
            lost=done.lost,
            disagreed=done.disagreed,
        )
        stale = [_STALE.format(model.name)] if tries.shows_stale else []
        is_garbage = [f"{model.name} also allows garbage, which bob cannot list"] if _allows_garbage(model) else []
        notes = (*notes, *stale, *is_garbage)
        return judge_model(with_answers, self.case.transcript.calls, self.again.effects, notes, explaining)

    def _allows(self, model: Model, tries: ModelStates, *, is_all: bool) -> Allows:
        """Return the model's judgement of trees. If ``is_all``, ``tries`` lists all trees that the model allows, and
        the judgement looks trees up in this list. Otherwise the judgement asks for each pair of operations whether the
        model promises that the first persists before the second."""
        by_pairs = UNKNOWN
        if len(self.again.history.operations) <= MOST_IN_PAIRS:
            if self.pairs is None:
                self.pairs = graph(self.again.workload, self.apart)
            foreseen = TreeOracle(self.pairs, model.promised, self.again.outputs)
            by_pairs = Allows(foreseen.allows, foreseen.clauses)
        return by_list(tries, by_pairs, model) if is_all else by_pairs


def unasked(model: Model) -> ModelAnswer:
    """Return an empty answer for a model. On a cluster, one part of the run asks the model whether the program is safe.
    The other parts use this empty answer, since they only ask whether the model allows the trees that file systems
    leave."""
    return ModelAnswer(model, unknown(model.name, model.about, ""), UNKNOWN)


def _but_for_logs(allows: Allows, program: Program, before: Mapping[str, Node]) -> Allows:
    return Allows(
        lambda output, tree: allows.says(output, without_logs(program, before, tree)),
        lambda output, tree: allows.clauses(output, without_logs(program, before, tree)),
    )


def _is_accepted(answer: CheckerAnswer | None) -> bool | None:
    return None if answer is None or answer.code is None else answer.consequence is None


def _allows_garbage(model: Model) -> bool:
    return not {Intact(part) for part in (TreePart.NAMES, TreePart.SIZES, TreePart.CONTENTS)} <= model.promised
