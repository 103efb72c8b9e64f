"""Make the witness of a refuted clause. A witness is a stored crash state, with a question whose answer shows that the
clause is broken. ``bob replay`` makes the crash state and asks the question again."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from itertools import count
from typing import Any

from bob.answer.result import Environment
from bob.apm.allowed import facts
from bob.apm.clauses import OWN_FIRST, Clause, Durable, InTurn, Never, Ordered, Whole, means_of, without_exception
from bob.apm.evidence import ObservedCase, OutcomeConstraints
from bob.apm.micro import Workings
from bob.catalogue.request import request_from_json
from bob.claim.property.calls import call_of, target_of
from bob.claim.property.of_property import OfProperty
from bob.claim.property.presence import Oracle
from bob.claim.property.readings import inodes_of_things
from bob.claim.property.rules import Property, Question, Rule, violation
from bob.claim.property.subjects import Effect
from bob.crash.case import Case
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan
from bob.witness import document as witness
from bob.witness.document import ShownState
from bob.workload.kinds import OperationChange, relation
from bob.workload.operations import At, Finish
from bob.workload.simulation import simulate

AskedProperty = tuple[Property, Question]


def witness_of(clause: Clause, workload: ObservedCase, sight: OutcomeConstraints) -> dict[str, Any] | None:
    """Return a document with a crash state and a question about it, whose answer shows that ``clause`` is broken.
    ``sight`` is the outcome that refutes the clause (what bob found when it mounted certain crash states). Return None
    if none of bob's questions shows the refutation."""
    about = workload.run.about()
    request, environment = request_from_json(about["request"]), Environment(**about["environment"])
    observation = workload.observation(sight)
    for case, asked in _asked(clause, workload, sight, request.model):
        history = simulate(case.workload)[0]
        oracle = Oracle(history, inodes_of_things(history, *case.inodes))
        reading = oracle.read(observation)
        for prop, question in asked:
            found = violation(prop, question, history, oracle, reading, observation)
            if found is not None:
                return witness.write(
                    ShownState(case, sight.state, OfProperty(prop.name, question, prop), found.evidence),
                    environment=asdict(environment),
                )
    return None


def file_name(clause: Clause) -> str:
    return f"{clause.name.replace(' ', '-')}.json"


def _asked(
    clause: Clause, workload: ObservedCase, sight: OutcomeConstraints, model: DeviceModel
) -> Iterator[tuple[Case, Iterable[AskedProperty]]]:
    prop = Property(clause.name.replace(" ", "-"), "", clause.words, Rule.ATOMIC)
    match clause:
        case Durable():
            prop = replace(prop, family="durability", rule=Rule.DURABLE)
            yield from _of_durability(clause, prop, workload, sight, model)
        case Ordered() | InTurn():
            prop = replace(prop, family="ordering", rule=Rule.ORDERED, subjects=tuple(Effect))
            yield workload.case, ((prop, one) for one in _questions(clause, workload.graph.workings))
        case Whole() | Never():
            prop = replace(prop, family="atomicity", subjects=tuple(Effect))
            yield workload.case, ((prop, one) for one in _questions(clause, workload.graph.workings))


def _questions(clause: Clause, taken: Workings) -> Iterator[Question]:
    for at, change in enumerate(taken.changes):
        if isinstance(clause, Whole | Never):
            if change.kind is clause.kind:
                yield Question((change.number,))
            continue
        for behind, later in enumerate(taken.changes[at + 1 :], start=at + 1):
            if later.number > change.number and _is_ordered(clause, taken, at, behind):
                yield Question((change.number,), later.number)


def _is_ordered(clause: Clause, taken: Workings, before: int, after: int) -> bool:
    earlier, later = taken.changes[before], taken.changes[after]
    order = Ordered(earlier.kind, later.kind, relation(earlier, later))
    if clause == OWN_FIRST:
        return taken.is_of_a_log(order, after)
    if isinstance(clause, InTurn):
        return clause == InTurn(means_of(earlier.kind), taken.means(after)) and after not in taken.asked
    return without_exception(clause) == order and not taken.is_of_a_log(order, after)


def _of_durability(
    clause: Durable, prop: Property, workload: ObservedCase, sight: OutcomeConstraints, model: DeviceModel
) -> Iterator[tuple[Case, Iterable[AskedProperty]]]:
    """Yield questions about changes that are missing although the clause promises them. The clause says that these
    changes are durable when a certain call has returned. That call returned before the crash, but the crash state
    certainly lacks the changes."""
    graph = workload.graph
    known, _broken = facts(graph, sight.constraints, sight.returned)
    missing: dict[int, dict[OperationChange, None]] = {}
    for edge in graph.edges:
        if clause in edge.clauses and known.get(edge.node) is True and known.get(edge.needs) is False:
            change = graph.workings.changes[graph.workings.operations[edge.needs].change]
            missing.setdefault(graph.operation(edge.node), {})[change] = None
    for call, changes in missing.items():
        case = _ending_with(workload.case, call, model)
        history = simulate(case.workload)[0]
        target = target_of(history, call)
        # If a write with O_SYNC refutes a clause about any return, the property still asks about writes with O_SYNC.
        prop = replace(prop, call=call_of(history.operations[call - 1], history, history.steps[call]))
        asked = []
        for change in changes:
            relations = () if target is None else (relation(change, target),)
            one = replace(prop, kinds=(change.kind,), relations=relations)
            asked.append((one, Question((change.number,), returned=call)))
        yield case, asked


def _ending_with(case: Case, call: int, model: DeviceModel) -> Case:
    """Return ``case`` in a form that lets bob ask what was durable after operation number ``call``. If this operation
    is in the workload's finish, the operations of the finish become normal operations of the workload."""
    workload = case.workload
    own = len(workload.operations)
    if call > own:
        workload = replace(
            workload,
            operations=(*workload.operations, *workload.finish.operations),
            finish=Finish("natural", natural=True),
        )
        numbers = {"op 0 begin": count(own + 1), "op 0 end": count(own + 1)}
        marks = (
            replace(mark, text=mark.text.replace("0", str(next(numbers[mark.text])))) if mark.text in numbers else mark
            for mark in case.plan.trace.marks
        )
        case = replace(case, plan=Plan(replace(case.plan.trace, marks=tuple(marks)), case.base, model))
    at = At.END if call == len(workload.operations) else workload.at
    return replace(case, work=replace(workload, at=at))
