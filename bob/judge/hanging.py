"""Which write a vulnerability hangs on: where no call tells why, the disk does."""

from __future__ import annotations

from dataclasses import replace

from bob.answer.answer import ReliedOn, Way
from bob.crash.neighbours import causes
from bob.crash.state import CrashState
from bob.judge.looked import Looked
from bob.program.answer import Consequence
from bob.protocol.contrast import Explanation, Reliance
from bob.story.decisive import in_words
from bob.story.timeline import CrashTimeline, Fate


def causes_of(looked: Looked, state: CrashState) -> tuple[int, ...]:
    """The writes (indexes) without any one of which the checker accepts what ``state`` leaves, as far as it was
    ``looked`` at."""
    accepted = set(looked.accepted)
    fine = {seen.state for seen in looked.observed.states if seen.outcome in accepted}
    return causes(looked.case.plan.points, state, fine.__contains__)


def with_its_write(found: Way, line: CrashTimeline) -> Way:
    """The same; where no reason is of calls alone, with the write that decides, as the time line of its witness has
    it; or that the disk had not been sent what is missing."""
    of_calls = (one.explanation for one in found.relied_on if one.explanation.reliance is not Reliance.UNCLEAR)
    is_told = any(not explanation.beside for explanation in of_calls)
    is_unsent = all(write.fate is Fate.DURABLE for write in line.writes)
    if is_told or not (line.causes or is_unsent) or found.consequence is Consequence.HANG:
        return found
    explanation = Explanation(Reliance.UNCLEAR)
    first, *others = found.relied_on or (ReliedOn(explanation, explanation.sentence({}), (), found.trees),)
    what = "in the witness {}: what is missing had not been sent" if is_unsent else "the witness hangs on a write: {}"
    sentence = f"{first.sentence}; {what.format(in_words(line))}"
    return replace(found, relied_on=(replace(first, sentence=sentence), *others))
