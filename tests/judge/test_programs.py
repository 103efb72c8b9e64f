"""From what a checker says to an answer: what is vulnerable, what is safe, and when nothing can be said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.answer.answer import CallWords, Cross, ReliedOn, Way
from bob.answer.document import from_json, to_json
from bob.answer.result import Allowed, AskedProgram, Checks, Missed, SubjectResult
from bob.claim.verdict import Verdict
from bob.cli.ci import exit_of
from bob.crash.state import CrashState
from bob.errors import Exit, MalformedError
from bob.judge.looked import NOTHING_TOLD, SURELY, Looked, Unmade
from bob.judge.modelled import (
    BuiltState,
    ModelLooked,
    change,
    crossed,
    judge_model,
    refused_trees,
    unknown,
)
from bob.judge.programs import EasiestCrash, judge, with_its_write
from bob.judge.reliance import Explaining, Reliances
from bob.judge.statics import Static, statics, together
from bob.observe.observations import ExploredState, Observations, StateTrouble
from bob.program.answer import CheckerAnswer, Consequence
from bob.program.strace import SystemCall
from bob.protocol.contrast import Explanation, Reliance
from bob.protocol.effects import Effects
from bob.story.decisive import in_words
from bob.witness.document import timeline_of
from samples_of_programs import of_program, way
from wording import line_with, text_with

FINE, LOST, STRANGE, HANG = (
    CheckerAnswer(0, ""),
    CheckerAnswer(10, "3 rows were told\n2 of 3 are there\n"),
    CheckerAnswer(1, ""),
    CheckerAnswer(None, "..."),
)
TORN = CrashState(0, (), ((1, ((0, 1),)),))


def looked(answers: dict[int, CheckerAnswer], told: bytes = b"", **more: Any) -> Looked:
    seen = samples.observed(
        (samples.FIRST, 0), (samples.LAST, 1), (TORN, 2), found=[samples.NOTHING, samples.ALL, samples.TORN]
    )
    return Looked(told, samples.case(), replace(seen, **more), answers, 7)


def subject(name: str) -> SubjectResult:
    """The file system of this ``name``, before anything is known of it."""
    return SubjectResult(name, name.partition("-")[0], effective_mount_options="rw")


def asked(*windows: Looked) -> SubjectResult:
    return judge(subject("ext4"), windows, ())[0]


def missed(found: SubjectResult) -> tuple[Missed, ...]:
    """What real file systems have and the model does not allow."""
    assert found.model is not None
    return found.model.missed


def test_what_the_checker_accepts_everywhere_is_safe() -> None:
    found = asked(looked({0: FINE, 1: FINE, 2: FINE}))
    assert (found.answer.verdict, found.answer.ways, found.answer.reason) == (Verdict.HOLDS, (), None)
    assert found.checks == Checks(windows=1, trees=3, runs=7)


def test_what_was_recorded_otherwise_than_it_was_asked_is_not_safe() -> None:
    """At a pace that could not be kept, no state came in between."""
    fine, lost = ([looked({0: FINE, 1: FINE, 2: one}, b"a")] for one in (FINE, LOST))
    found, _easiest = judge(subject("ext4-slow"), fine, (), doubts=("not so slow",))
    answer = found.answer
    assert (answer.verdict, answer.reason, answer.states.exhaustive) == (Verdict.UNKNOWN, "not so slow", None)
    found, _easiest = judge(subject("ext4-slow"), lost, (), doubts=("not so slow",))
    assert (found.answer.verdict, found.notes) == (Verdict.FAILS, ("not so slow",))


def test_of_a_program_that_told_nothing_the_answer_says_so() -> None:
    """What it says by its exit code, to its standard error or in a file elsewhere asks for nothing."""
    fine = looked({0: FINE, 1: FINE, 2: FINE})
    assert asked(fine).notes == asked(fine, fine).notes == (NOTHING_TOLD,)
    assert asked(fine, replace(fine, told=b"saved")).notes == ()
    assert by_model(built(FINE)).notes == ("a note", NOTHING_TOLD)
    assert by_model(built(FINE, told=b"saved")).notes == ("a note",)
    assert by_model(built(FINE, tellings={3: b"saved"})).notes == ("a note",), "only states before it were built"


def test_one_refusal_is_a_vulnerability_with_the_easiest_state() -> None:
    found, easiest = judge(subject("ext4"), [looked({0: FINE, 1: LOST, 2: LOST}, b"a")], ())
    assert (found.name, found.effective_mount_options) == ("ext4", "rw"), "it is the subject, with an answer"
    assert found.answer.verdict is Verdict.FAILS
    [one] = found.answer.ways
    assert (one.consequence, one.evidence) == (Consequence.LOST, snapshot("lost acknowledged data: 2 of 3 are there"))
    assert (one.states, one.trees, one.told, one.output) == (2, 2, "a", b"a")
    assert easiest == (EasiestCrash(0, samples.LAST, 1, b"a"),)


def test_sentences_that_differ_in_numbers_are_one_and_others_are_not() -> None:
    other = CheckerAnswer(10, "1 of 3 are there")
    windows = looked({0: FINE, 1: LOST, 2: other}), looked({0: STRANGE, 1: FINE, 2: HANG}, b"a")
    found, easiest = judge(subject("ext4"), windows, ())
    said = [windows[one.place].answers[one.outcome].consequence for one in easiest]
    assert said == [one.consequence for one in found.answer.ways], "each way has its easiest crash"
    assert [one.told for one in easiest] == [one.output for one in found.answer.ways]
    kinds = {one.consequence: one.trees for one in found.answer.ways}
    assert kinds == {Consequence.LOST: 2, Consequence.OTHER: 1, Consequence.HANG: 1}


def test_where_no_call_tells_why_the_write_that_decides_is_told() -> None:
    """A write is torn; without it, the checker accepts what is there."""
    window = looked({0: FINE, 1: FINE, 2: LOST}, b"a")
    [found] = asked(window).answer.ways
    assert window.causes(TORN) == (1,)
    assert looked({0: LOST, 1: FINE, 2: LOST}).causes(TORN) == ()
    line = timeline_of(window.case, TORN, (1,))
    [reason] = with_its_write(found, line).relied_on
    assert reason.explanation.reliance is Reliance.UNCLEAR and reason.sentence.endswith(in_words(line))
    assert with_its_write(found, timeline_of(window.case, TORN)) == found
    unclear = Explanation(Reliance.UNCLEAR, beside=("the contents of /a",))
    beside = replace(found, relied_on=(ReliedOn(unclear, "so", (), 1),))
    [reason] = with_its_write(beside, line).relied_on
    assert reason.explanation == unclear and reason.sentence.startswith("so; ")
    known = replace(found, relied_on=(RELIED_ON, *beside.relied_on))
    assert with_its_write(known, line) == known
    unsent = timeline_of(window.case, samples.LAST)
    [reason] = with_its_write(beside, unsent).relied_on
    assert in_words(unsent) in reason.sentence and with_its_write(known, unsent) == known


@pytest.mark.parametrize(
    ("outcomes", "last"),
    [((0, 1, 2), {0: 0.5, 1: 4.5, 2: 3.0}), ((0, 1, 1), {0: 0.5, 1: 3.0}), ((1, 1, 0), {1: 0.5, 0: 3.0})],
)
def test_a_call_that_began_after_the_last_write_on_the_disk_is_not_there(
    outcomes: tuple[int, ...], last: dict[int, float]
) -> None:
    """The writes of the sample were sent at 0.5, 3, 3.5 and 4.5 s; the clock of the calls is 10 s behind."""
    window = looked({})
    states = (samples.FIRST, samples.LAST, TORN)
    seen = tuple(ExploredState(state, outcome) for state, outcome in zip(states, outcomes, strict=True))
    window = replace(window, observed=replace(window.observed, states=seen))
    assert window.last_sent() == last
    calls = [SystemCall(1, tenths / 10 - 10, name, (), 0) for tenths in range(50) for name in ("rename", "store")]
    for outcome, seconds in last.items():
        found = Unmade([window], calls, 10.0).of(0, outcome)
        assert {calls[number].name for number in found} == {"rename"}
        assert {calls[number].seconds + 10 > seconds + SURELY for number in found} == {True}
        later = {number for number, one in enumerate(calls) if one.seconds + 10 > seconds + SURELY + 0.01}
        assert later - found == {number for number in later if calls[number].name == "store"}
        assert Unmade([window], calls, None).of(0, outcome) == frozenset()
    assert Unmade([window], calls, 10.0).of(0, 99) == frozenset()


def test_the_same_state_before_and_after_an_output_counts_twice() -> None:
    found = asked(looked({0: LOST, 1: FINE, 2: FINE}), looked({0: LOST, 1: FINE, 2: FINE}, b"a"))
    [one] = found.answer.ways
    assert (one.states, one.trees) == (2, 2)
    assert found.answer.states.legal_writes == 2 * looked({}).observed.coverage.legal_writes


@pytest.mark.parametrize(
    "window",
    [
        looked({0: FINE, 1: FINE}),
        looked({0: FINE, 1: FINE, 2: FINE}, lost="the guest was lost"),
        replace(looked({0: FINE, 1: FINE, 2: FINE}), disagreed="the checker says 0 and 1 of the same tree"),
        looked({}),
    ],
    ids=["a tree was not checked", "a lost guest", "a checker that contradicts itself", "nothing was checked"],
)
def test_what_is_not_known_is_not_safe(window: Looked) -> None:
    found = asked(looked({0: FINE, 1: FINE, 2: FINE}), window)
    assert found.answer.verdict is Verdict.UNKNOWN
    assert found.answer.reason


def test_a_checker_that_contradicts_itself_accuses_nobody() -> None:
    window = replace(looked({0: FINE, 1: LOST, 2: FINE}), disagreed="the checker contradicts itself")
    found = asked(looked({0: FINE, 1: LOST, 2: FINE}), window)
    assert (found.answer.verdict, found.answer.reason) == (Verdict.UNKNOWN, snapshot("the checker contradicts itself"))
    assert found.answer.ways


def test_a_checker_that_does_not_end_is_told_and_accuses_nobody() -> None:
    found = asked(looked({0: FINE, 1: HANG, 2: FINE}))
    assert found.answer.verdict is Verdict.UNKNOWN and "does not end" in (found.answer.reason or "")
    assert [one.consequence for one in found.answer.ways] == [Consequence.HANG]
    assert asked(looked({0: FINE, 1: HANG, 2: LOST})).answer.verdict is Verdict.FAILS


def test_what_shows_in_states_that_speak_for_none_shows_in_some() -> None:
    window = looked({0: FINE, 1: LOST, 2: FINE})
    states = tuple(ExploredState(one.state, one.outcome, 0) for one in window.observed.states)
    [one] = asked(replace(window, observed=replace(window.observed, states=states))).answer.ways
    assert one.states == sum(seen.outcome == 1 for seen in states) > 0


def test_what_mounts_read_only_is_not_safe() -> None:
    found = asked(looked({0: FINE, 1: FINE, 2: FINE}, troubles=(StateTrouble(1, "read-only", "..."),)))
    assert found.answer.verdict is Verdict.UNKNOWN and "read-only" in (found.answer.reason or "")


def test_what_else_is_wrong_with_states_that_mount_is_told() -> None:
    found = asked(looked({0: FINE, 1: FINE, 2: FINE}, troubles=(StateTrouble(1, "checker", "fsck ends with 4"),)))
    assert found.answer.verdict is Verdict.HOLDS
    assert [note for note in found.notes if note.endswith("fsck ends with 4")]


def test_a_count_of_any_size_can_be_told() -> None:
    window = looked({0: FINE, 1: HANG, 2: FINE})
    states = tuple(ExploredState(one.state, one.outcome, 2**20_000) for one in window.observed.states)
    found = asked(replace(window, observed=replace(window.observed, states=states)))
    assert all(len(text) < 200 for text in (found.answer.reason or "", *found.notes))


def test_a_loss_does_not_hide_a_refusal() -> None:
    found = asked(looked({0: FINE, 1: LOST, 2: FINE}), looked({0: FINE, 1: FINE, 2: FINE}, lost="the guest was lost"))
    assert found.answer.verdict is Verdict.FAILS
    assert line_with(found.notes, "guest") == snapshot("the guest was lost")


def test_nothing_explored_is_not_safe() -> None:
    empty = Looked(b"", samples.case(), Observations((), samples.observed(found=[]).findings, samples.COVERAGE), {})
    assert asked(empty).answer.verdict is Verdict.UNKNOWN


def test_states_that_do_not_mount_are_told_and_not_checked() -> None:
    seen = samples.observed((samples.FIRST, 0), (TORN, 1), found=[samples.NOTHING, samples.UNMOUNTABLE])
    found = asked(Looked(b"", samples.case(), seen, {0: FINE}))
    assert found.answer.verdict is Verdict.HOLDS
    assert found.answer.states.unmountable == 1
    assert any("do not mount" in note for note in found.notes)


def test_a_state_speaks_for_others() -> None:
    window = looked({0: FINE, 1: LOST, 2: FINE})
    states = tuple(
        ExploredState(one.state, one.outcome, 2**number) for number, one in enumerate(window.observed.states)
    )
    [one] = asked(replace(window, observed=replace(window.observed, states=states))).answer.ways
    assert one.states == 2


RELIED_ON = ReliedOn(
    Explanation(Reliance.ORDER, (1,), (2,)), "must be there first: ...", (CallWords(1, "rename /a to /b", ("f",)),), 3
)


def explained(found: SubjectResult, kind: str = "") -> SubjectResult:
    """As ``found``, with what the program relies on."""
    relied_on = (replace(RELIED_ON, kind=kind),)
    ways = tuple(replace(one, relied_on=relied_on) for one in found.answer.ways)
    return replace(found, answers=(replace(found.answer, ways=ways),))


def on_a_file_system() -> SubjectResult:
    return explained(asked(looked({0: FINE, 1: LOST, 2: HANG}, b"told\n")))


def by_models() -> tuple[SubjectResult, ...]:
    """Of a model that is crossed and counted, of one that has no answer, and of one that is contradicted."""
    vulnerable = crossed(by_model(built(FINE, LOST)), asked(looked({0: FINE, 1: LOST, 2: FINE})), {})
    assert vulnerable.model is not None
    vulnerable = replace(vulnerable, model=replace(vulnerable.model, allowed=2**70, is_counted=True))
    window = looked({0: FINE, 1: FINE, 2: LOST}, b"a")
    [(key, _told, _tree)] = refused_trees([window])
    clauses = ("durable names", "safe-rename")
    wrong = crossed(by_model(built(FINE)), asked(window), {key: clauses}, is_its_own=True)
    nothing = replace(unknown("m", "", "not traced: mmap of /a"), notes=("n",))
    return explained(vulnerable, "ordering"), nothing, wrong


def older_document() -> dict[str, Any]:
    """What a bob of before wrote of these answers (``bob.app/1``)."""
    relied_on = {
        "reliance": "order",
        "sentence": "must be there first: ...",
        "missing": [1],
        "there": [2],
        "calls": [{"number": 1, "words": "rename /a to /b", "stack": ["f"]}],
        "trees": 3,
    }
    lost = {"consequence": "lost", "evidence": "lost acknowledged data: 2 of 3 are there", "trees": 1}
    endless = "the checker does not end: it timed out"
    shown = {"states": 1, "trees": 1, "told": "told\n", "relied_on": [{**relied_on, "kind": ""}], "witness": None}
    missed = {"configuration": "ext4", "evidence": lost["evidence"], "is_wrong": True}
    return {
        "schema": "bob.app/1",
        "id": "made-up",
        "started": "2026-11-21T23:00:21Z",
        "finished": "2026-11-21T23:04:33Z",
        "environment": {"kernel": "6.1"},
        "program": {"name": "p", "about": "about", "digest": "f1312f35ff28df19"},
        "refuses": ["emptied"],
        "configurations": [
            {
                "name": "ext4",
                "mounted": "rw",
                "safety": "vulnerable",
                "reason": None,
                "explored": 6,
                "legal_writes": 14,
                "legal_sectors": "1180591620717411303424",
                "exhaustive": None,
                "explored_writes": 2,
                "unmountable": 0,
                "unmountable_writes": 0,
                "mounted_states": 4,
                "windows": 1,
                "trees": 3,
                "checks": 7,
                "vulnerabilities": [
                    {**lost, **shown},
                    {"consequence": "hang", "evidence": endless, **shown},
                ],
                "notes": [],
            }
        ],
        "models": [
            {
                "model": "weak",
                "about": "a model",
                "safety": "vulnerable",
                "reason": None,
                "operations": 2,
                "micro_operations": 5,
                "tried": 9,
                "all": True,
                "allowed": "1180591620717411303424",
                "counted": True,
                "trees": 2,
                "checks": 2,
                "vulnerabilities": [
                    {
                        **lost,
                        "told": "",
                        "step": "prefix",
                        "relied_on": [{**relied_on, "kind": "ordering"}],
                        "crossed": {"ext4": "confirmed"},
                    }
                ],
                "notes": ["a note", NOTHING_TOLD],
                "missed": [],
            },
            {
                "model": "m",
                "about": "",
                "safety": "unknown",
                "reason": "not traced: mmap of /a",
                "operations": 0,
                "micro_operations": 0,
                "tried": 0,
                "all": False,
                "trees": 0,
                "checks": 0,
                "vulnerabilities": [],
                "notes": ["n"],
                "missed": [],
            },
            {
                "model": "weak",
                "about": "a model",
                "safety": "safe",
                "reason": None,
                "operations": 2,
                "micro_operations": 5,
                "tried": 9,
                "all": True,
                "trees": 1,
                "checks": 1,
                "vulnerabilities": [],
                "notes": ["a note", NOTHING_TOLD],
                "missed": [{**missed, "clauses": ["durable names", "safe-rename"]}],
            },
        ],
    }


def test_the_document_has_all_of_it() -> None:
    found = asked(looked({0: FINE, 1: LOST, 2: HANG}, b"told\n"))
    document = to_json(of_program("p", "about", found))
    [column] = document["subjects"]
    [answer] = column["answers"]
    assert document["schema"] == "bob.result/2" and document["run"]["id"] == "made-up"
    assert answer["claim"] == {"kind": "checker", "name": "checker"} and answer["verdict"] == "fails"
    assert column["checks"] == {"windows": 1, "trees": 3, "runs": 7}
    assert {one["consequence"] for one in answer["ways"]} == {"lost", "hang"}
    assert all(one["told"] == "told\n" for one in answer["ways"])


def test_a_document_is_read_back() -> None:
    found = of_program("p", "about", on_a_file_system())
    again = from_json(json.loads(json.dumps(to_json(found))))
    assert (again.program, again.file_systems, again) == (found.program, (on_a_file_system(),), found)


def test_a_document_of_before_is_read() -> None:
    again = from_json(json.loads(json.dumps(older_document())))
    assert again.program == AskedProgram("p", "about", "f1312f35ff28df19", ("emptied",))
    assert (again.run.id, again.environment.kernel) == ("made-up", "6.1")
    assert again.file_systems == (on_a_file_system(),)
    assert again.models == by_models() and again.is_contradicted


def test_a_document_of_before_that_says_less_is_read() -> None:
    """The first ones told nothing of calls, nor of models; with --json they told nothing of the run."""
    document = {name: older_document()[name] for name in ("schema", "program", "configurations")}
    [column] = document["configurations"]
    for one in column["vulnerabilities"]:
        del one["relied_on"]
    for name in ("explored_writes", "unmountable", "unmountable_writes"):
        del column[name]
    again = from_json(document)
    assert again.program == AskedProgram("p", "about", "f1312f35ff28df19")
    bare = asked(looked({0: FINE, 1: LOST, 2: HANG}, b"told\n"))
    [answer] = bare.answers
    less = replace(answer, states=replace(answer.states, explored_writes=None))
    assert (again.subjects, again.environment.kernel) == ((replace(bare, answers=(less,)),), "")


@pytest.mark.parametrize(
    "damage", [{"schema": "bob.try/1"}, {"schema": "bob.app/2"}, {"configurations": [{}]}, {"program": None}]
)
def test_a_damaged_document_of_before_is_refused(damage: dict[str, Any]) -> None:
    document = older_document()
    from_json(document)
    with pytest.raises(MalformedError):
        from_json({**document, **damage})


@pytest.mark.parametrize("damage", [{"schema": "bob.app/1"}, {"subjects": [{}]}, {"program": {}}])
def test_a_damaged_document_is_refused(damage: dict[str, Any]) -> None:
    document = to_json(of_program("p", "about", asked(looked({0: FINE, 1: FINE, 2: FINE}))))
    from_json(document)
    with pytest.raises(MalformedError):
        from_json({**document, **damage})


def built(*answers: CheckerAnswer | None, told: bytes = b"", **more: Any) -> ModelLooked:
    states = [BuiltState(told, "prefix", answer) for answer in answers]
    found = ModelLooked("weak", Allowed("a model", 2, 5, 9, True), states, lambda _place: {}, len(answers))
    return replace(found, **more)


def by_model(looked: ModelLooked) -> SubjectResult:
    return judge_model(looked, (), None, ("a note",)).result


def test_a_model_is_safe_where_the_checker_accepts_all_that_was_built() -> None:
    found = by_model(built(FINE, FINE, told=b"a"))
    assert (found.answer.verdict, found.answer.ways, found.answer.reason) == (Verdict.HOLDS, (), None)
    assert found.model == Allowed("a model", operations=2, micro_operations=5, tried=9, is_all=True)
    assert found.checks == Checks(windows=0, trees=2, runs=2)
    assert (found.name, found.notes) == ("weak", ("a note",))


def test_by_a_model_too_sentences_that_differ_in_numbers_are_one() -> None:
    other = CheckerAnswer(10, "1 of 3 are there")
    found = by_model(built(FINE, LOST, other, STRANGE, HANG, told=b"a"))
    assert found.answer.verdict is Verdict.FAILS
    assert {one.consequence: one.trees for one in found.answer.ways} == {
        Consequence.LOST: 2, Consequence.OTHER: 1, Consequence.HANG: 1,
    }  # fmt: skip
    assert {one.output for one in found.answer.ways} == {b"a"}


def test_the_first_tree_of_each_way_is_shown_also_without_a_reason() -> None:
    other = CheckerAnswer(10, "1 of 3 are there")
    assert judge_model(built(FINE, LOST, other, STRANGE, HANG), (), None, ()).shown == (1, 3, 4)


@pytest.mark.parametrize(
    "looked_at",
    [
        built(FINE, None),
        built(),
        built(FINE, HANG),
        built(FINE, lost="the guest was lost"),
        built(FINE, LOST, disagreed="the checker contradicts itself"),
    ],
    ids=["not checked", "nothing", "a hang", "a lost guest", "a contradiction"],
)
def test_what_is_not_known_of_a_model_is_neither_safe_nor_vulnerable(looked_at: ModelLooked) -> None:
    found = by_model(looked_at)
    assert found.answer.verdict is Verdict.UNKNOWN and found.answer.reason


def test_what_a_model_predicts_is_looked_for_on_the_real_file_system() -> None:
    predicted = by_model(built(FINE, LOST, STRANGE))
    whole = asked(looked({0: FINE, 1: FINE, 2: LOST}))
    some, every = (
        replace(whole, answers=(replace(whole.answer, states=replace(whole.answer.states, exhaustive=exhaustive)),))
        for exhaustive in (None, "writes")
    )
    for real, other in ((some, Cross.OPEN), (every, Cross.NOT_REACHABLE)):
        both = {one.consequence: one.crossed["ext4"] for one in crossed(predicted, real, {}).answer.ways}
        assert both == {Consequence.LOST: Cross.CONFIRMED, Consequence.OTHER: other}
    two = crossed(crossed(predicted, some, {}), replace(every, name="xfs"), {})
    assert all(set(one.crossed) == {"ext4", "xfs"} for one in two.answer.ways)


def test_where_the_checker_was_not_asked_of_all_that_was_seen_nothing_is_unreachable() -> None:
    predicted = by_model(built(FINE, LOST, STRANGE))
    whole = replace(looked({}).observed.coverage, exhaustive="writes")
    for answers, other in (({0: FINE, 1: LOST, 2: FINE}, Cross.NOT_REACHABLE), ({0: FINE, 1: LOST}, Cross.OPEN)):
        real = asked(looked(answers, coverage=whole))
        assert real.answer.verdict is Verdict.FAILS
        both = {one.consequence: one.crossed["ext4"] for one in crossed(predicted, real, {}).answer.ways}
        assert both == {Consequence.LOST: Cross.CONFIRMED, Consequence.OTHER: other}


def test_what_the_file_system_leaves_and_the_model_does_not_allow_is_told() -> None:
    window = looked({0: FINE, 1: FINE, 2: LOST}, b"a")
    [(key, told, tree)] = refused_trees([window])
    assert told == b"a" and tree == window.tree(2)
    found = crossed(by_model(built(FINE)), asked(window), {key: ("safe-rename",)})
    [one] = missed(found)
    assert (
        one.words
        == snapshot(
            "missed by the model: lost acknowledged data: 2 of 3 are there (ext4 leaves a tree that the model does not allow, by 'safe-rename')"
        )
        and not one.is_wrong
    )
    assert text_with(one.words, "ext4", "safe-rename") == snapshot(
        "missed by the model: lost acknowledged data: 2 of 3 are there (ext4 leaves a tree that the model does not allow, by 'safe-rename')"
    )
    assert missed(crossed(by_model(built(FINE)), asked(window), {})) == ()
    answers = of_program("p", "", asked(window), found)
    assert exit_of([answers]) is Exit.DIFFERENT, "a model of another file system may forbid what this one leaves"


def test_a_model_that_forbids_what_its_own_file_system_leaves_fails_the_run() -> None:
    window = looked({0: FINE, 1: FINE, 2: LOST}, b"a")
    [(key, _told, _tree)] = refused_trees([window])
    found = crossed(by_model(built(FINE)), asked(window), {key: ()}, is_its_own=True)
    assert missed(found)[0].words == snapshot(
        "missed by the model: lost acknowledged data: 2 of 3 are there (ext4 leaves a tree that the model does not allow); the model was derived from this file system, so the model or bob is wrong"
    )
    later = crossed(found, replace(asked(window), name="xfs"), {})
    assert later.model is not None
    of_clauses = (replace(missed(later)[0], clauses=("durable names", "safe-rename")),)
    later = replace(later, model=replace(later.model, missed=of_clauses))
    answers = of_program("p", "", asked(window), later)
    assert exit_of([answers]) is Exit.CONTRADICTED
    again = from_json(json.loads(json.dumps(to_json(answers))))
    assert missed(again.models[0]) == of_clauses and exit_of([again]) is Exit.CONTRADICTED


def test_a_document_with_models_is_read_back() -> None:
    found = of_program("p", "about", *by_models())
    again = from_json(json.loads(json.dumps(to_json(found))))
    assert (again.models, again.file_systems) == (by_models(), ()) and again == found


def test_what_another_model_changes_is_told_by_consequence_and_sentence() -> None:
    other = CheckerAnswer(10, "1 of 3 are there")
    strong, weak = by_model(built(FINE, LOST)), by_model(built(FINE, other, STRANGE))
    found = change("p", strong, weak)
    assert [one.consequence for one in found.added] == [Consequence.OTHER]
    assert [one.consequence for one in found.kept] == [Consequence.LOST] and not found.mended
    back = change("p", weak, strong)
    assert (back.mended, len(back.kept), back.added) == (found.added, 1, ())
    assert found.before.answer.verdict is found.after.answer.verdict is Verdict.FAILS


def test_where_a_model_has_no_answer_nothing_is_added_or_mended() -> None:
    strong = unknown("strong", "a model", "too large")
    for sides in ((strong, by_model(built(FINE, LOST))), (by_model(built(FINE, LOST)), strong)):
        found = change("p", *sides)
        assert found.is_unknown and not found.added and not found.mended
    assert not change("p", by_model(built(FINE)), by_model(built(FINE))).is_unknown


def relied(kind: str, missing: dict[int, str], there: dict[int, str]) -> ReliedOn:
    """A reason of a vulnerability: calls by their numbers, in words."""
    calls = tuple(CallWords(number, words, ()) for number, words in sorted({**missing, **there}.items()))
    explanation = Explanation(Reliance.ORDER if there else Reliance.DURABLE, tuple(missing), tuple(there))
    return ReliedOn(explanation, "so", calls, 1, kind)


def harm(consequence: Consequence, evidence: str, *relied_on: ReliedOn) -> Way:
    return way(consequence, evidence, step="prefix", relied_on=relied_on)


OBJECT = "git: append {} bytes at 0 of /.git/objects/{}/tmp_obj_{}"


def test_vulnerabilities_at_one_place_are_one() -> None:
    """Objects of git have hashes for names, and their lengths differ; both sentences of the checker name them."""
    first = relied("ordering: other", {3: OBJECT.format(19, "3e", "BcImON")}, {9: "git: rename /a to /b"})
    other = relied("ordering: other", {5: OBJECT.format(142, "48", "TgnKRf")}, {9: "git: rename /a to /b"})
    late = relied("durability: other", {5: OBJECT.format(142, "48", "TgnKRf")}, {})
    found = statics(
        [
            harm(Consequence.CORRUPT, "object 3e is empty", first),
            harm(Consequence.OTHER, "object 48 is empty", late, other),
            harm(Consequence.HANG, "does not end", relied("ordering: other", {1: "x /y"}, {2: "z /y"})),
        ]
    )
    place = "git: append /.git/objects/#/tmp_obj_#"
    assert found == {Static("ordering: other", place): frozenset({Consequence.CORRUPT, Consequence.OTHER})}


def test_the_shortest_reason_of_each_type_counts_and_what_no_call_tells_is_one_by_its_sentence() -> None:
    long = relied("durability: other", {1: "p: create /a", 2: "p: append 5 bytes at 0 of /a"}, {})
    short = relied("durability: other", {2: "p: append 5 bytes at 0 of /a"}, {})
    cut = relied("atomicity of a truncate", {4: "p: truncate /a to 12 bytes"}, {})
    unclear = ReliedOn(Explanation(Reliance.UNCLEAR), "the calls do not tell", (), 1)
    found = statics(
        [
            harm(Consequence.LOST, "3 rows of 7", long, short, cut, unclear),
            harm(Consequence.LOST, "2 rows are gone", unclear),
            harm(Consequence.LOST, "1 rows are gone"),
            harm(Consequence.CORRUPT, "object .git/objects/3e/757656cf36eca5 is empty", unclear),
            harm(Consequence.CORRUPT, "object .git/objects/e0/19be006cf33489 is empty"),
        ]
    )
    assert set(found) == {
        Static("durability: other", "p: append /a"),
        Static("atomicity of an append or truncate", "p: truncate /a"),
        Static("", "N rows are gone"),
        Static("", "object .git/objects/#/# is empty"),
    }
    assert statics([]) == {}


def test_a_place_whose_function_is_not_known_is_the_one_where_it_is() -> None:
    """If that can be one only."""

    def lost(words: str, consequence: Consequence = Consequence.LOST) -> Way:
        return harm(consequence, "gone", relied("durability: other", {1: words}, {}))

    log, page = "kv: append 4 bytes at 0 of /log", "kv: append 8 bytes at 0 of /page"
    kv, evict, save = "(log_append in kv)", "(evict in kv)", "(save in kv)"
    first = statics([lost(log, Consequence.CORRUPT), lost(f"{log} {kv}"), lost(page), lost(f"{page} {evict}")])
    assert first == {
        Static("durability: other", f"kv: append /log {kv}"): {Consequence.CORRUPT, Consequence.LOST},
        Static("durability: other", f"kv: append /page {evict}"): {Consequence.LOST},
    }
    other = statics([lost(page), lost(f"{page} {save}"), lost(f"{page} {evict}")])
    assert len(other) == 3 and len(together(first, other)) == 4
    assert len(together(first, statics([lost(log)]))) == 2
    said = [harm(Consequence.LOST, "it ends"), harm(Consequence.LOST, "it ends (and says why)")]
    assert len(statics(said)) == 2


class _Broken:
    """Effects over which bob breaks."""

    changing = (1,)

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


def test_where_bob_breaks_over_an_explanation_the_answer_is_given(tmp_path: Path) -> None:
    def keep(trace: str) -> str:
        (tmp_path / "broken.txt").write_text(trace)
        return "broken.txt"

    window, broken, explaining = looked({0: FINE, 1: LOST, 2: FINE}, b"a"), cast(Effects, _Broken()), Explaining(keep)
    reliances = Reliances([window.answered], (), broken, explaining=explaining)
    found, _easiest = judge(subject("ext4"), [window], (), reliances)
    assert found.answer.verdict is Verdict.FAILS and [one.relied_on for one in found.answer.ways] == [()]
    assert (reliances.steps(), reliances.calls_up_to(0, 1, 0.0)) == ((), [])
    assert any("KeyError" in note and "broken.txt" in note for note in explaining.notes)
    assert "Traceback" in (tmp_path / "broken.txt").read_text()


def test_where_bob_breaks_over_an_explanation_a_model_has_its_answer() -> None:
    states = built(FINE, LOST)
    found = judge_model(states, (), cast(Effects, _Broken()), ("a note",)).result
    assert found.answer.verdict is Verdict.FAILS and [one.relied_on for one in found.answer.ways] == [()]
    assert any("KeyError" in note or "TypeError" in note for note in found.notes)
