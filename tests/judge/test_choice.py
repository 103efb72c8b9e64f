"""Whose recoveries are crashed: one of each outcome, drawn from the seed, and none of a lost guest."""

from __future__ import annotations

import json

from bob.crash.coverage import States
from bob.crash.state import CrashState
from bob.judge.recovered import Recovered, chosen
from bob.observe.observation import Findings
from bob.observe.observed import Observed, Seen

OUTCOMES = [json.dumps({"error": error, "repaired": False, "tree": {}}) for error in (None, None, "Bad message")]


def observed(lost: str | None = None) -> Observed:
    torn = CrashState(1, (), ((3, ((0, 1),)),))
    states = (
        Seen(CrashState(0), 0),
        Seen(torn, 0),
        Seen(CrashState(1, (3,)), 0),
        Seen(CrashState(2), 1),
        Seen(CrashState(2, (4,)), 2),
        Seen(CrashState(3), None),
    )
    return Observed(states, Findings(OUTCOMES), States(), lost)


def test_the_easiest_state_of_each_outcome_that_mounts() -> None:
    every = chosen([(7, observed()), (8, observed("the guest was lost"))], 100, 1)
    assert every == [Recovered(7, CrashState(2), 1), Recovered(7, CrashState(1, (3,)), 0)]
    assert [Recovered.from_json(json.loads(json.dumps(one.to_json()))) for one in every] == every


def test_the_seed_draws_them() -> None:
    runs = [(number, observed()) for number in range(30)]
    drawn = [chosen(runs, 10, seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert [len(one) for one in drawn] == [10, 10, 10]
    assert set(drawn[2]) < set(chosen(runs, 60, 1))
