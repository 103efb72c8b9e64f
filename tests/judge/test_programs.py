"""From what a checker says to an answer: what is vulnerable, what is safe, and when nothing can be said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.cli.ci import programs_exit
from bob.crash.state import CrashState
from bob.errors import Exit, MalformedError
from bob.judge.explaining import Explaining
from bob.judge.hanging import causes_of, with_its_write
from bob.judge.looked import NOTHING_TOLD, Looked
from bob.judge.modelled import (
    BuiltState,
    ModelLooked,
    change,
    crossed,
    judge_model,
    refused_trees,
    unknown,
)
from bob.judge.program_result import (
    Cross,
    EasiestState,
    ModelResult,
    Predicted,
    ProgramResult,
    Programs,
    Safety,
    from_json,
    to_json,
)
from bob.judge.programs import judge
from bob.judge.reliance import CallWords, Reliances, ReliedOn, Static, statics, together
from bob.judge.unmade import SURELY, Unmade, last_sent
from bob.observe.observations import ExploredState, Observations, StateTrouble
from bob.program.answer import CheckerAnswer, Consequence
from bob.program.program import Program
from bob.program.strace import SystemCall
from bob.protocol.contrast import Explanation, Reliance
from bob.protocol.effects import Effects
from bob.story.decisive import in_words
from bob.witness.document import timeline_of
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


def asked(*windows: Looked) -> ProgramResult:
    return judge("ext4", "rw", windows, ())


def test_what_the_checker_accepts_everywhere_is_safe() -> None:
    found = asked(looked({0: FINE, 1: FINE, 2: FINE}))
    assert (found.safety, found.vulnerabilities, found.reason) == (Safety.SAFE, (), None)
    assert (found.trees, found.checks, found.windows) == (3, 7, 1)


def test_what_was_recorded_otherwise_than_it_was_asked_is_not_safe() -> None:
    """At a pace that could not be kept, no state came in between."""
    fine, lost = ([looked({0: FINE, 1: FINE, 2: one}, b"a")] for one in (FINE, LOST))
    found = judge("ext4-slow", "rw", fine, (), doubts=("not so slow",))
    assert (found.safety, found.reason, found.states.exhaustive) == (Safety.UNKNOWN, "not so slow", None)
    found = judge("ext4-slow", "rw", lost, (), doubts=("not so slow",))
    assert (found.safety, found.notes) == (Safety.VULNERABLE, ("not so slow",))


def test_of_a_program_that_told_nothing_the_answer_says_so() -> None:
    """What it says by its exit code, to its standard error or in a file elsewhere asks for nothing."""
    fine = looked({0: FINE, 1: FINE, 2: FINE})
    assert asked(fine).notes == asked(fine, fine).notes == (NOTHING_TOLD,)
    assert asked(fine, replace(fine, told=b"saved")).notes == ()
    assert by_model(built(FINE)).notes == ("a note", NOTHING_TOLD)
    assert by_model(built(FINE, told=b"saved")).notes == ("a note",)
    assert by_model(built(FINE, tellings={3: b"saved"})).notes == ("a note",), "only states before it were built"


def test_one_refusal_is_a_vulnerability_with_the_easiest_state() -> None:
    found = asked(looked({0: FINE, 1: LOST, 2: LOST}, b"a"))
    assert found.safety is Safety.VULNERABLE
    [one] = found.vulnerabilities
    assert (one.consequence, one.evidence) == (Consequence.LOST, snapshot("lost acknowledged data: 2 of 3 are there"))
    assert (one.states, one.trees, one.told) == (2, 2, b"a")
    assert one.easiest == EasiestState(0, samples.LAST, 1)


def test_sentences_that_differ_in_numbers_are_one_and_others_are_not() -> None:
    other = CheckerAnswer(10, "1 of 3 are there")
    found = asked(looked({0: FINE, 1: LOST, 2: other}), looked({0: STRANGE, 1: FINE, 2: HANG}, b"a"))
    kinds = {one.consequence: one.trees for one in found.vulnerabilities}
    assert kinds == {Consequence.LOST: 2, Consequence.OTHER: 1, Consequence.HANG: 1}


def test_where_no_call_tells_why_the_write_that_decides_is_told() -> None:
    """A write is torn; without it, the checker accepts what is there."""
    window = looked({0: FINE, 1: FINE, 2: LOST}, b"a")
    [found] = asked(window).vulnerabilities
    assert causes_of(window, TORN) == (1,)
    assert causes_of(looked({0: LOST, 1: FINE, 2: LOST}), TORN) == ()
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
    assert last_sent(window) == last
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
    [one] = found.vulnerabilities
    assert (one.states, one.trees) == (2, 2)
    assert found.states.legal_writes == 2 * looked({}).observed.coverage.legal_writes


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
    assert found.safety is Safety.UNKNOWN
    assert found.reason


def test_a_checker_that_contradicts_itself_accuses_nobody() -> None:
    window = replace(looked({0: FINE, 1: LOST, 2: FINE}), disagreed="the checker contradicts itself")
    found = asked(looked({0: FINE, 1: LOST, 2: FINE}), window)
    assert (found.safety, found.reason) == (Safety.UNKNOWN, snapshot("the checker contradicts itself"))
    assert found.vulnerabilities


def test_a_checker_that_does_not_end_is_told_and_accuses_nobody() -> None:
    found = asked(looked({0: FINE, 1: HANG, 2: FINE}))
    assert found.safety is Safety.UNKNOWN and "does not end" in (found.reason or "")
    assert [one.consequence for one in found.vulnerabilities] == [Consequence.HANG]
    assert asked(looked({0: FINE, 1: HANG, 2: LOST})).safety is Safety.VULNERABLE


def test_what_shows_in_states_that_speak_for_none_shows_in_some() -> None:
    window = looked({0: FINE, 1: LOST, 2: FINE})
    states = tuple(ExploredState(one.state, one.outcome, 0) for one in window.observed.states)
    [one] = asked(replace(window, observed=replace(window.observed, states=states))).vulnerabilities
    assert one.states == sum(seen.outcome == 1 for seen in states) > 0


def test_what_mounts_read_only_is_not_safe() -> None:
    found = asked(looked({0: FINE, 1: FINE, 2: FINE}, troubles=(StateTrouble(1, "read-only", "..."),)))
    assert found.safety is Safety.UNKNOWN and "read-only" in (found.reason or "")


def test_what_else_is_wrong_with_states_that_mount_is_told() -> None:
    found = asked(looked({0: FINE, 1: FINE, 2: FINE}, troubles=(StateTrouble(1, "checker", "fsck ends with 4"),)))
    assert found.safety is Safety.SAFE
    assert [note for note in found.notes if note.endswith("fsck ends with 4")]


def test_a_count_of_any_size_can_be_told() -> None:
    window = looked({0: FINE, 1: HANG, 2: FINE})
    states = tuple(ExploredState(one.state, one.outcome, 2**20_000) for one in window.observed.states)
    found = asked(replace(window, observed=replace(window.observed, states=states)))
    assert all(len(text) < 200 for text in (found.reason or "", *found.notes))


def test_a_loss_does_not_hide_a_refusal() -> None:
    found = asked(looked({0: FINE, 1: LOST, 2: FINE}), looked({0: FINE, 1: FINE, 2: FINE}, lost="the guest was lost"))
    assert found.safety is Safety.VULNERABLE
    assert line_with(found.notes, "guest") == snapshot("the guest was lost")


def test_nothing_explored_is_not_safe() -> None:
    empty = Looked(b"", samples.case(), Observations((), samples.observed(found=[]).findings, samples.COVERAGE), {})
    assert asked(empty).safety is Safety.UNKNOWN


def test_states_that_do_not_mount_are_told_and_not_checked() -> None:
    seen = samples.observed((samples.FIRST, 0), (TORN, 1), found=[samples.NOTHING, samples.UNMOUNTABLE])
    found = asked(Looked(b"", samples.case(), seen, {0: FINE}))
    assert found.safety is Safety.SAFE
    assert found.states.unmountable == 1
    assert any("do not mount" in note for note in found.notes)


def test_a_state_speaks_for_others() -> None:
    window = looked({0: FINE, 1: LOST, 2: FINE})
    states = tuple(
        ExploredState(one.state, one.outcome, 2**number) for number, one in enumerate(window.observed.states)
    )
    [one] = asked(replace(window, observed=replace(window.observed, states=states))).vulnerabilities
    assert one.states == 2


def test_the_document_has_all_of_it() -> None:
    found = asked(looked({0: FINE, 1: LOST, 2: HANG}, b"told\n"))
    document = to_json(Program("p", "about", ()), [found], {"id": "x"})
    [column] = document["configurations"]
    assert document["schema"] == "bob.app/1" and document["id"] == "x"
    assert column["safety"] == "vulnerable"
    assert {one["consequence"] for one in column["vulnerabilities"]} == {"lost", "hang"}
    assert all(one["told"] == "told\n" for one in column["vulnerabilities"])


RELIED_ON = ReliedOn(
    Explanation(Reliance.ORDER, (1,), (2,)), "must be there first: ...", (CallWords(1, "rename /a to /b", ("f",)),), 3
)


def test_a_document_is_read_back() -> None:
    found = asked(looked({0: FINE, 1: LOST, 2: HANG}, b"told\n"))
    explained = tuple(replace(one, relied_on=(RELIED_ON,), easiest=None) for one in found.vulnerabilities)
    found = replace(found, vulnerabilities=explained)
    again = from_json(to_json(Program("p", "about", ()), [found], {}))
    assert (again.program, again.about, again.results) == ("p", "about", (found,))


@pytest.mark.parametrize("damage", [{"schema": "bob.try/1"}, {"configurations": [{}]}, {"program": None}])
def test_a_damaged_document_is_refused(damage: dict[str, Any]) -> None:
    document = to_json(Program("p", "about", ()), [asked(looked({0: FINE, 1: FINE, 2: FINE}))], {})
    with pytest.raises(MalformedError):
        from_json({**document, **damage})


def built(*answers: CheckerAnswer | None, told: bytes = b"", **more: Any) -> ModelLooked:
    states = [BuiltState(told, "prefix", answer) for answer in answers]
    found = ModelLooked("weak", "a model", 2, 5, 9, True, states, lambda _place: {}, len(answers))
    return replace(found, **more)


def by_model(looked: ModelLooked) -> ModelResult:
    return judge_model(looked, (), None, ("a note",))


def test_a_model_is_safe_where_the_checker_accepts_all_that_was_built() -> None:
    found = by_model(built(FINE, FINE, told=b"a"))
    assert (found.safety, found.vulnerabilities, found.reason) == (Safety.SAFE, (), None)
    assert (found.tried, found.is_all, found.trees, found.notes) == (9, True, 2, ("a note",))


def test_by_a_model_too_sentences_that_differ_in_numbers_are_one() -> None:
    other = CheckerAnswer(10, "1 of 3 are there")
    found = by_model(built(FINE, LOST, other, STRANGE, HANG, told=b"a"))
    assert found.safety is Safety.VULNERABLE
    assert {one.consequence: one.trees for one in found.vulnerabilities} == {
        Consequence.LOST: 2, Consequence.OTHER: 1, Consequence.HANG: 1,
    }  # fmt: skip
    assert {one.told for one in found.vulnerabilities} == {b"a"}


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
    assert found.safety is Safety.UNKNOWN and found.reason


def test_what_a_model_predicts_is_looked_for_on_the_real_file_system() -> None:
    predicted = by_model(built(FINE, LOST, STRANGE))
    whole = asked(looked({0: FINE, 1: FINE, 2: LOST}))
    some = replace(whole, states=replace(whole.states, exhaustive=None))
    every = replace(whole, states=replace(whole.states, exhaustive="writes"))
    for real, other in ((some, Cross.OPEN), (every, Cross.NOT_REACHABLE)):
        both = {one.consequence: one.crossed["ext4"] for one in crossed(predicted, real, {}).vulnerabilities}
        assert both == {Consequence.LOST: Cross.CONFIRMED, Consequence.OTHER: other}
    two = crossed(crossed(predicted, some, {}), replace(every, configuration="xfs"), {})
    assert all(set(one.crossed) == {"ext4", "xfs"} for one in two.vulnerabilities)


def test_where_the_checker_was_not_asked_of_all_that_was_seen_nothing_is_unreachable() -> None:
    predicted = by_model(built(FINE, LOST, STRANGE))
    whole = replace(looked({}).observed.coverage, exhaustive="writes")
    for answers, other in (({0: FINE, 1: LOST, 2: FINE}, Cross.NOT_REACHABLE), ({0: FINE, 1: LOST}, Cross.OPEN)):
        real = asked(looked(answers, coverage=whole))
        assert real.safety is Safety.VULNERABLE
        both = {one.consequence: one.crossed["ext4"] for one in crossed(predicted, real, {}).vulnerabilities}
        assert both == {Consequence.LOST: Cross.CONFIRMED, Consequence.OTHER: other}


def test_what_the_file_system_leaves_and_the_model_does_not_allow_is_told() -> None:
    window = looked({0: FINE, 1: FINE, 2: LOST}, b"a")
    [(key, told, tree)] = refused_trees([window])
    assert told == b"a" and tree == window.tree(2)
    found = crossed(by_model(built(FINE)), asked(window), {key: ("safe-rename",)})
    [missed] = found.missed
    assert (
        missed.words
        == snapshot(
            "missed by the model: lost acknowledged data: 2 of 3 are there (ext4 leaves a tree that the model does not allow, by 'safe-rename')"
        )
        and not missed.is_wrong
    )
    assert text_with(missed.words, "ext4", "safe-rename") == snapshot(
        "missed by the model: lost acknowledged data: 2 of 3 are there (ext4 leaves a tree that the model does not allow, by 'safe-rename')"
    )
    assert crossed(by_model(built(FINE)), asked(window), {}).missed == ()
    answers = Programs("p", "", (asked(window),), models=(found,))
    assert programs_exit(answers) is Exit.DIFFERENT, "a model of another file system may forbid what this one leaves"


def test_a_model_that_forbids_what_its_own_file_system_leaves_fails_the_run() -> None:
    window = looked({0: FINE, 1: FINE, 2: LOST}, b"a")
    [(key, _told, _tree)] = refused_trees([window])
    found = crossed(by_model(built(FINE)), asked(window), {key: ()}, is_its_own=True)
    assert found.missed[0].words == snapshot(
        "missed by the model: lost acknowledged data: 2 of 3 are there (ext4 leaves a tree that the model does not allow); the model was derived of this file system: it is wrong, or bob"
    )
    later = crossed(found, replace(asked(window), configuration="xfs"), {})
    later = replace(later, missed=(replace(later.missed[0], clauses=("durable names", "safe-rename")),))
    answers = Programs("p", "", (asked(window),), models=(later,))
    assert programs_exit(answers) is Exit.CONTRADICTED
    again = from_json(json.loads(json.dumps(to_json(Program("p", "about", ()), answers.results, {}, answers.models))))
    assert again.models[0].missed == later.missed and programs_exit(again) is Exit.CONTRADICTED


def test_a_document_with_models_is_read_back() -> None:
    real = asked(looked({0: FINE, 1: LOST, 2: FINE}))
    vulnerable = crossed(by_model(built(FINE, LOST)), real, {})
    explained = tuple(
        replace(one, relied_on=(replace(RELIED_ON, kind="ordering"),)) for one in vulnerable.vulnerabilities
    )
    models = (replace(vulnerable, vulnerabilities=explained), unknown("m", "", "not traced: mmap of /a", ("n",)))
    again = from_json(to_json(Program("p", "about", ()), [], {}, models))
    assert again.models == models


def test_what_another_model_changes_is_told_by_consequence_and_sentence() -> None:
    other = CheckerAnswer(10, "1 of 3 are there")
    strong, weak = by_model(built(FINE, LOST)), by_model(built(FINE, other, STRANGE))
    found = change("p", strong, weak)
    assert [one.consequence for one in found.added] == [Consequence.OTHER]
    assert [one.consequence for one in found.kept] == [Consequence.LOST] and not found.mended
    back = change("p", weak, strong)
    assert (back.mended, len(back.kept), back.added) == (found.added, 1, ())
    assert found.before.safety is found.after.safety is Safety.VULNERABLE


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


def harm(consequence: Consequence, evidence: str, *relied_on: ReliedOn) -> Predicted:
    return Predicted(consequence, evidence, 1, b"", "prefix", relied_on)


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

    def lost(words: str, consequence: Consequence = Consequence.LOST) -> Predicted:
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
    reliances = Reliances([window], (), broken, explaining=explaining)
    found = judge("ext4", "rw", [window], (), reliances)
    assert found.safety is Safety.VULNERABLE and [one.relied_on for one in found.vulnerabilities] == [()]
    assert (reliances.steps(), reliances.calls_up_to(0, 1, 0.0)) == ((), [])
    assert any("KeyError" in note and "broken.txt" in note for note in explaining.notes)
    assert "Traceback" in (tmp_path / "broken.txt").read_text()


def test_where_bob_breaks_over_an_explanation_a_model_has_its_answer() -> None:
    states = built(FINE, LOST)
    found = judge_model(states, (), cast(Effects, _Broken()), ("a note",))
    assert found.safety is Safety.VULNERABLE and [one.relied_on for one in found.vulnerabilities] == [()]
    assert any("KeyError" in note or "TypeError" in note for note in found.notes)
