"""The witness of a refuted durability clause: it reads back, and the state that it holds breaks it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.apm.circumstances import RARE, how_tried
from bob.apm.clauses import Durable, clause_of
from bob.apm.derive import _ClauseCounts, derive
from bob.apm.evidence import ObservedCase
from bob.apm.model import ClauseStatus, Model
from bob.catalogue.request import ProbeRequest, request_to_json
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Question, Rule, questions
from bob.claim.property.vocabulary import Call
from bob.cli.model_runs import with_witnesses
from bob.crash.state import CrashState
from bob.observe.observation import Observation
from bob.store.run_directory import RunDirectory
from bob.story.timeline import CallEvent
from bob.trace.model import Mark, Trace
from bob.witness import document as witness
from bob.witness.document import Witness
from bob.workload.language import parse
from bob.workload.operations import At, Finish, Workload
from bob.workload.simulation import simulate
from claims import broken

MADE = samples.outcome(("/a", 11, [0], 4096), ("/n", 12, [], 0))
"""What is left where /n was made, and nothing else was done."""


def workload(operations: str, finish: str = "", at: At = At.ANY) -> Workload:
    ending = Finish(finish, parse(finish)) if finish else Finish("natural", natural=True)
    return Workload("made up", samples.WORKLOAD.setup, parse(operations), ending, at)


def trace(asked: Workload) -> Trace:
    """Each operation returns when all writes are durable, and before the recording ends."""
    numbers = [*range(1, len(asked.operations) + 1), *(0 for _one in asked.finish.operations)]
    times = [(number, 20 + 2 * place) for place, number in enumerate(numbers)]
    marks = [
        Mark(samples.at(time + later), f"op {number} {when}")
        for number, time in times
        for later, when in enumerate(("begin", "end"))
    ]
    return replace(samples.TRACE, marks=(samples.TRACE.marks[0], *marks, samples.TRACE.marks[-1]))


def derived(path: Path, asked: Workload, found: str, state: CrashState | None = None) -> Model:
    """The model of a run in which this was found in ``state`` (after all had returned), with its witnesses."""
    return with_witnesses(derive([witnessed(path, asked, found, state)]), path)


def witnessed(path: Path, asked: Workload, found: str, state: CrashState | None = None) -> ObservedCase:
    about = {"id": "made-up", "bob": "0", "request": request_to_json(ProbeRequest(samples.CONFIGURATION))}
    run = RunDirectory.create(path / "run", {**about, "environment": samples.ENVIRONMENT})
    case = samples.case(asked, trace(asked))
    seen = samples.observed((state or CrashState(len(case.plan.points) - 1), 0), found=[found])
    return ObservedCase(run, path / "000", case, seen)


def observation(found: str) -> Observation:
    [seen] = samples.observed(found=[found]).findings.observations()
    return seen


def witness_in(path: Path, model: Model, name: str) -> Witness:
    finding = model.finding(clause_of(name))
    assert finding.status is ClauseStatus.REFUTED
    assert finding.refutation is not None and finding.refutation.witness is not None, f"«{name}» has no witness"
    return witness.read(path / finding.refutation.witness)


LOSSES = [  # operations, finish, a clause that is refuted, what was found, which operation is lost after which call
    ("write /a 0 512; fsync /a", "", "fsync-file data", samples.NOTHING, (1, 2)),
    ("write /a 0 512; create /n", "fsync /a", "fsync-file data", MADE, (1, 3)),
    ("write /a 0 512", "fsync /; fsync /a; sync", "fsync-file data", samples.NOTHING, (1, 3)),
    ("write /a 0 512; fsync /a; create /n", "", "fsync-file data", MADE, (1, 2)),
    ("write /a 0 512; create /n; fsync /n", "", "fsync-file other-overwrites", MADE, (1, 3)),
    ("create /n; fsync /n", "", "fsync-file entry", samples.NOTHING, (1, 2)),
    ("create /n; fsync /", "", "fsync-directory entries", samples.NOTHING, (1, 2)),
    ("create /n; fdatasync /", "", "fdatasync-directory entries", samples.NOTHING, (1, 2)),
    ("link /a /n; fdatasync /a", "", "fdatasync-file names", samples.NOTHING, (1, 2)),
    ("write /a 0 512 mmap; msync /a", "", "msync data", samples.NOTHING, (1, 2)),
    ("write /a 0 512 sync", "", "o-sync data", samples.NOTHING, (1, 1)),
    ("append /n 10 dsync", "", "o-dsync entry", samples.NOTHING, (1, 1)),
    ("create /n; syncfs", "", "syncfs entry", samples.NOTHING, (1, 2)),
    ("write /a 0 512", "sync", "sync data", samples.NOTHING, (1, 2)),
    ("setxattr /a user.x 4", "", "returned attributes", samples.NOTHING, (1, 1)),
    ("write /a 0 512; create /n", "", "returned data", MADE, (1, 1)),
]


@pytest.mark.parametrize(("operations", "finish", "name", "found", "shown"), LOSSES, ids=lambda value: str(value)[:40])
def test_a_refuted_clause_has_a_witness_that_its_state_breaks(
    tmp_path: Path, operations: str, finish: str, name: str, found: str, shown: tuple[int, int]
) -> None:
    asked = workload(operations, finish)
    read = witness_in(tmp_path, derived(tmp_path, asked, found), f"durable {name}")
    clause, claim = clause_of(f"durable {name}"), read.claim
    assert isinstance(clause, Durable) and isinstance(claim, OfProperty)
    prop, (lost, call) = claim.resolved, shown
    assert (prop.rule, prop.call, prop.meaning) == (Rule.DURABLE, clause.call, clause.words)
    assert claim.question == Question((lost,), returned=call)
    assert read.evidence.startswith(f"operation {call} (") and " had returned, but nothing of " in read.evidence
    assert broken(read, observation(found)) == read.evidence
    [called] = [one for one in read.timeline.events if isinstance(one, CallEvent) and one.number == call]
    assert called.end is not None and called.end <= read.timeline.crash
    assert " had returned" in read.sentence
    # A workload that ends with the call asks the same; only such a one is shrunk.
    assert (read.workload.at is At.END) == (call == len(read.workload.operations))
    asking = claim.asking(read.workload)
    assert (asking.at, len(asking.operations)) == (At.END, call)
    assert (asking is read.workload) == (read.workload.at is At.END)
    assert claim.question in questions(prop, simulate(asking)[0])


def test_a_synchronous_write_that_returned_is_asked_of_as_such(tmp_path: Path) -> None:
    asked = workload("write /a 0 512 sync")
    read = witness_in(tmp_path, derived(tmp_path, asked, samples.NOTHING), "durable returned data")
    assert isinstance(read.claim, OfProperty)
    assert (read.claim.resolved.call, read.claim.question) == (Call.O_SYNC, Question((1,), returned=1))
    assert read.claim.question in questions(read.claim.resolved, simulate(read.workload)[0])


def test_what_is_there_does_not_break_it(tmp_path: Path) -> None:
    asked = workload("write /a 0 512; create /n", "fsync /a")
    read = witness_in(tmp_path, derived(tmp_path, asked, MADE), "durable fsync-file data")
    assert broken(read, observation(samples.ALL)) is None


def test_a_workload_whose_crashes_come_late_stays_as_it_is(tmp_path: Path) -> None:
    asked = workload("write /a 0 512; fsync /a", at=At.END)
    read = witness_in(tmp_path, derived(tmp_path, asked, samples.NOTHING), "durable fsync-file data")
    assert read.workload == asked


def test_a_crash_before_the_return_refutes_nothing(tmp_path: Path) -> None:
    asked = workload("write /a 0 512; fsync /a")
    model = derived(tmp_path, asked, samples.NOTHING, CrashState(0))
    assert not [one for one in model.findings if one.status is ClauseStatus.REFUTED and isinstance(one.clause, Durable)]
    assert not (tmp_path / "witnesses").exists()


def test_every_refuted_durability_clause_of_a_run_has_one(tmp_path: Path) -> None:
    asked = workload("write /a 0 512; create /n; fsync /a; sync", "fsync /n")
    model = derived(tmp_path, asked, samples.NOTHING)
    refuted = [one for one in model.findings if one.refutation is not None and isinstance(one.clause, Durable)]
    assert len(refuted) > 5
    for one in refuted:
        read = witness_in(tmp_path, model, one.clause.name)
        assert broken(read, observation(samples.NOTHING)) == read.evidence


# What no call asks for, and what is promised of it


def test_what_is_in_turn_is_refuted_with_a_witness_only_where_no_call_asks_for_the_later_change(tmp_path: Path) -> None:
    later = samples.outcome(("/a", 11, [0], 4096), ("/m", 12, [], 0))  # /m is there, /n that was made before it is not
    for finish, is_refuted in (("fsync /a", True), ("fsync /m", False), ("fsync /", False)):
        path = tmp_path / finish.replace(" /", "-")
        path.mkdir()
        model = derived(path, workload("create /n; create /m", finish), later)
        found = model.finding(clause_of("in-turn names names"))
        assert (found.status is ClauseStatus.REFUTED) == is_refuted, finish
        assert model.finding(clause_of("ordered create create same-directory")).status is ClauseStatus.REFUTED
        if is_refuted:
            read = witness_in(path, model, "in-turn names names")
            assert isinstance(read.claim, OfProperty)
            assert (read.claim.resolved.rule, read.claim.question) == (Rule.ORDERED, Question((1,), 2))
            assert broken(read, observation(later)) == read.evidence


def test_what_held_where_nothing_would_break_it_is_not_promised(tmp_path: Path) -> None:
    model = derived(tmp_path, workload("create /n", "fsync /n"), MADE)
    assert model.finding(clause_of("in-turn names names")).status is ClauseStatus.ASSUMED
    (tmp_path / "two").mkdir()
    model = derived(tmp_path / "two", workload("create /n; setxattr /n user.x 3"), MADE)
    found = model.finding(clause_of("in-turn names names"))
    assert not found.promised and found.reason == snapshot("it was not tested with a sync of something else")


def test_a_workload_that_is_there_to_refute_puts_nothing_to_the_test(tmp_path: Path) -> None:
    entry, entries = clause_of("durable fsync-file entry"), clause_of("durable fsync-directory entries")
    held = witnessed(tmp_path / "1", workload("create /n; fsync /n"), MADE)
    lost = witnessed(tmp_path / "2", workload("create /n; fsync /n"), samples.NOTHING)
    other = witnessed(tmp_path / "3", workload("create /n; fsync /"), MADE)
    alone, beside, both = (derive([held], refuting=refuting).model for refuting in ([], [lost], [lost, other]))
    assert alone.finding(entry).status is not ClauseStatus.REFUTED and alone.finding(entry).workloads == 1
    assert beside.finding(entry).status is ClauseStatus.REFUTED and beside.finding(entry).workloads == 1
    assert both.finding(entry) == beside.finding(entry)
    assert both.finding(entries).status is ClauseStatus.ASSUMED, "only what refutes has tried it"
    assert both.promised <= beside.promised <= alone.promised
    assert (both.source["workloads"], both.source["refuting"]) == (1, 2)


def test_old_contents_in_place_of_new_ones_of_the_same_size_are_no_garbage(tmp_path: Path) -> None:
    """A log of btrfs can have the size of a file that was written anew, without its data: the old data stays."""
    model = derived(tmp_path, workload("append /a 2048 trunc"), samples.outcome(("/a", 11, [3], 2048)))
    assert model.finding(clause_of("ordered truncate-down append same-file")).status is ClauseStatus.REFUTED
    assert model.finding(clause_of("never append stale")).status is not ClauseStatus.REFUTED


def test_that_orders_are_kept_by_a_log_is_refuted_by_what_is_an_order_and_by_nothing_else(tmp_path: Path) -> None:
    """An overwrite is in no order with a rename, synced before or not."""
    old, once = samples.outcome(("/c", 11, [0], 4096)), samples.outcome(("/c", 11, [1], 4096))
    synced = witnessed(tmp_path / "1", workload("write /a 0 512; fsync /a; write /a 0 512; rename /a /c"), once)
    plain = witnessed(tmp_path / "2", workload("write /a 0 512; rename /a /c"), old)
    own, order = clause_of("in-turn own-changes synced-names"), clause_of("ordered overwrite rename same-file")
    alone, both = (derive(found).model for found in ([synced], [synced, plain]))
    assert alone.finding(own).status is ClauseStatus.REFUTED and alone.finding(order).status is not ClauseStatus.REFUTED
    assert both.finding(own).status is not ClauseStatus.REFUTED and both.finding(order).status is ClauseStatus.REFUTED


OF_D = Finish("fsync /d", parse("fsync /d"))


@pytest.mark.parametrize(
    ("operations", "finish", "name"),
    [
        ("mkdir /d; create /n; append /n 9000; rename /n /a", OF_D, "never-in append earlier-blocks zeros"),
        ("append /a 100; append /a 100", Finish("natural", natural=True), "never-in append tail-block zeros"),
        ("append /a 100; rename /a /c", Finish("late", natural=True, phase=2.5), "ordered append rename same-file"),
        ("append /a 100; rename /a /c", Finish("natural", natural=True), "ordered append rename same-file"),
    ],
)  # fmt: skip
def test_rare_circumstances_may_be_those_of_workloads_that_refute(
    tmp_path: Path, operations: str, finish: Finish, name: str
) -> None:
    """What else a clause needs must be met where it is put to the test."""
    asked, clause = replace(workload(operations), finish=finish), clause_of(name)
    lent = witnessed(tmp_path / "1", asked, samples.NOTHING)
    met = how_tried(asked, lent.graph, 5.0)[clause]
    counts = _ClauseCounts([], [lent])
    assert counts.of(clause).workloads == 0
    assert counts.circumstances(clause)[0] == met & RARE
    assert _ClauseCounts([lent], []).circumstances(clause)[0] >= met & RARE
