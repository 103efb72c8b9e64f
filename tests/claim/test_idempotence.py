"""Recovery is idempotent: planted differences fail, and what was not controlled is unknown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from bob.claim.idempotence import difference, judged
from bob.crash.coverage import States
from bob.crash.state import CrashState
from bob.observe.observation import Findings, Node, Observation
from bob.observe.observed import Observed, Seen
from bob.result import Verdict
from bob.workload.operations import Finish, Workload

RECOVERY = Workload("recovery of it", (), (), Finish("mounted"))
WHOLE, SHORT, GONE = ({"/a": {"kind": "file", "size": size}} if size else {} for size in (8, 4, 0))
DAMAGED = None
FIRST, SECOND = CrashState(0), CrashState(1, (2, 3))


def observed(*trees: object, states: Sequence[Seen] = (Seen(FIRST, 0), Seen(SECOND, 1, 7)), lost: str = "") -> Observed:
    """Outcomes with these trees; None for one that does not mount."""
    outcomes = [{"error": "Bad message" if tree is None else None, "repaired": False, "tree": tree} for tree in trees]
    findings = Findings([json.dumps(outcome) for outcome in outcomes])
    return Observed(tuple(states), findings, States(8, 8, 2**20, "writes"), lost or None)


EXPECTED = observed(WHOLE).findings.observation(0)


def test_the_same_tree_holds() -> None:
    result, shown = judged(RECOVERY, observed(WHOLE, WHOLE), EXPECTED)
    assert (result.verdict, shown, result.violations) == (Verdict.HOLDS, None, 0)


@pytest.mark.parametrize(
    ("tree", "words"),
    [(SHORT, "/a is a file of 4 B"), (GONE, "/a is missing"), ({**WHOLE, "/b": WHOLE["/a"]}, "/b is")],
)
def test_another_tree_fails_and_says_how(tree: object, words: str) -> None:
    result, shown = judged(RECOVERY, observed(WHOLE, tree), EXPECTED)
    assert (result.verdict, result.violations) == (Verdict.FAILS, 7)
    assert shown is not None
    assert shown[0] == SECOND
    assert words in shown[1]


def test_the_easiest_state_is_shown() -> None:
    torn = Seen(CrashState(0, (), ((2, ((0, 1),)),)), 1)
    _result, shown = judged(RECOVERY, observed(WHOLE, GONE, states=(Seen(FIRST, 0), torn, Seen(SECOND, 1))), EXPECTED)
    assert shown is not None
    assert shown[0] == SECOND


def test_what_does_not_mount_is_not_judged() -> None:
    result, shown = judged(RECOVERY, observed(WHOLE, DAMAGED), EXPECTED)
    assert (result.verdict, shown) == (Verdict.HOLDS, None)


@pytest.mark.parametrize(
    "seen",
    [
        observed(GONE, GONE),  # recovered anew, it is not what it was
        observed(DAMAGED, WHOLE),
        observed(WHOLE, states=[Seen(SECOND, 0)]),  # without the control
        observed(WHOLE, states=[Seen(FIRST, 0)], lost="the guest was lost"),
        observed(WHOLE, states=[Seen(FIRST, None)], lost="the guest was lost"),
    ],
)
def test_without_its_controls_nothing_holds(seen: Observed) -> None:
    result, shown = judged(RECOVERY, seen, EXPECTED)
    assert (result.verdict, shown) == (Verdict.UNKNOWN, None)
    assert result.reason


def test_a_violation_that_was_seen_stays_one_when_the_guest_is_lost() -> None:
    result, shown = judged(RECOVERY, observed(WHOLE, GONE, lost="the guest was lost"), EXPECTED)
    assert result.verdict is Verdict.FAILS
    assert shown is not None


def test_a_difference_is_of_what_is_observed() -> None:
    one, other = (Observation(True, None, {"/a": Node("file", inode, content=b"x", size=1)}) for inode in (12, 13))
    assert difference(one, one) is None
    assert "inode 13" in (difference(one, other) or "")


def test_a_mode_is_compared_and_a_time_is_not() -> None:
    node = Node("directory", 12, 2, mode=0o755, uid=0, gid=0, mtime=7)
    before = Observation(True, None, {"/d": node})
    assert difference(before, Observation(True, None, {"/d": replace(node, mtime=0)})) is None
    assert "mode 0700" in (difference(before, Observation(True, None, {"/d": replace(node, mode=0o700)})) or "")
