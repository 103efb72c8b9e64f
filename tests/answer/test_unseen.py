"""Which recording has the torn states that bob did not explore, and how many crash states of layers do not mount, in
notes about properties that hold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from bob.answer.answer import Answer, ByRecording, ClaimWords
from bob.answer.merge import merged
from bob.answer.result import Environment, Result, Run, SubjectResult
from bob.answer.unseen import HIDDEN, hidden, mostly_unknown, notes_of
from bob.claim.verdict import Verdict
from bob.crash.coverage import States, total
from bob.crash.device import DeviceModel, DeviceModelDocument
from bob.observe.unknown_torn import TornCause
from wording import text_with

JOURNAL, BUDGET = TornCause.JOURNAL, TornCause.BUDGET


def recording(name: str, known: int, legal: int, cause: TornCause | None = None) -> ByRecording:
    states = States(known + 4, 4, legal + 4, "writes", explored_writes=4)
    return ByRecording(name, "natural", Verdict.HOLDS, states, unknown_torn=cause)


def answer(name: str, *recordings: ByRecording, verdict: Verdict = Verdict.HOLDS) -> Answer:
    states = total([one.states for one in recordings])
    return Answer(ClaimWords("property", name), verdict, states, recordings=recordings)


def test_the_recording_with_most_of_the_unexplored_torn_states_is_named() -> None:
    small = recording("small", 100, 100)
    large, other = (recording("large", 1, 2**20, cause) for cause in (JOURNAL, BUDGET))
    answers = [
        answer("a", small, large),
        answer("b", small, recording("half", 50, 100)),
        answer("c", recording("bad", 0, 2**20, JOURNAL), verdict=Verdict.FAILS),
        answer("d", large),
        answer("e", other),
        answer("of an older bob", recording("older", 1, 2**20)),
    ]
    notes = list(mostly_unknown(answers))
    assert all(text_with(note, "less than half of the torn states") for note in notes)
    assert notes == snapshot(
        [
            "less than half of the torn states are explored for a, d: most of the others are of 'large' (natural), where recovery reads torn blocks of the journal",
            "less than half of the torn states are explored for e: most of the others are of 'large' (natural), where mixtures of old and new data would take too many mounts",
        ]
    )


def test_the_number_alone_decides_which_recording_is_named() -> None:
    """Smallest input: one that is three quarters explored has no cause, but the most others."""
    many = recording("many", 2_900_000, 4_000_000)
    few = [recording(f"few {number}", 0, 100_000, JOURNAL) for number in range(20)]
    [note] = mostly_unknown([answer("a", many, *few)])
    assert note == snapshot(
        "less than half of the torn states are explored for a: no recording has more of the others than 'many' (natural)"
    )
    [note] = mostly_unknown([answer("a", *few)])
    assert note == snapshot(
        "less than half of the torn states are explored for a: no recording has more of the others than 'few 0' (natural), where recovery reads torn blocks of the journal"
    )


@pytest.mark.parametrize(("rest", "is_most"), [(99, True), (100, False), (101, False)])
def test_most_is_more_than_half(rest: int, is_most: bool) -> None:
    others = [recording(f"other {number}", 0, rest // 3 + (number < rest % 3), JOURNAL) for number in range(3)]
    [note] = mostly_unknown([answer("a", recording("large", 0, 100, JOURNAL), *others)])
    assert "'large' (natural), where recovery reads" in note
    assert ("most of the others are of" in note) == is_most


@pytest.mark.parametrize("cause", TornCause)
def test_each_cause_has_words(cause: TornCause) -> None:
    [note] = mostly_unknown([answer("a", recording("w", 0, 96, cause))])
    assert text_with(note, "'w' (natural), where ")


def of(*answers: Answer) -> Result:
    environment = Environment("6.1", "image", "tcg", "virtual", "7", "9", "1")
    column = SubjectResult("fs", "fs", answers=answers, notes=("a note",))
    return Result(Run("1", "", ""), environment, DeviceModelDocument.of(DeviceModel()), (column,))


def test_a_merged_result_has_notes_about_its_own_numbers() -> None:
    small, large = recording("small", 10, 1000, JOURNAL), recording("large", 9 * 10**8, 10**9)
    lots = [of(answer("a", small)), of(answer("a", large)), of(answer("a", recording("larger", 0, 10**10, BUDGET)))]
    [alone] = lots[0].subjects
    assert text_with(notes_of(alone)[1], "'small'")
    [both] = merged(lots[:2], lots[0].run).subjects
    assert notes_of(both) == ("a note",)
    [every] = merged(lots, lots[0].run).subjects
    first, note = notes_of(every)
    assert first == "a note"
    assert text_with(note, "most of the others are of 'larger'")
    failing = of(answer("a", replace(small, verdict=Verdict.FAILS), verdict=Verdict.FAILS))
    [fails] = merged([lots[0], failing], failing.run).subjects
    assert notes_of(fails) == ("a note",)


def test_a_property_of_layers_does_not_hold_without_a_word_about_states_that_do_not_mount() -> None:
    def one(name: str, hidden: int, verdict: Verdict = Verdict.HOLDS) -> Answer:
        return Answer(ClaimWords("property", name), verdict, States(4, 8, 2**80, unmountable=hidden))

    answers = (one("untouched", 2**75), one("a", 3), one("b", 0), one("c", 5, Verdict.FAILS))
    stacked = SubjectResult("ext4 on raid5", "ext4", answers=answers, stack="raid5")
    assert list(hidden(stacked)) == [f"{HIDDEN}: 2^75 for untouched, 3 for a"]
    assert notes_of(stacked)[-1].startswith(HIDDEN)
    assert not list(hidden(replace(stacked, stack="")))
    assert not list(hidden(replace(stacked, answers=answers[2:])))
