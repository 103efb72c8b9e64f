"""States that do not mount are counted apart, no claim of completeness covers them; which kind a claim is of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.claim.counting import judged
from bob.claim.kinds import KINDS, claim_of
from bob.claim.mounting import Mountable
from bob.claim.soundness import Sound
from bob.crash.coverage import States
from bob.crash.state import CrashState
from bob.errors import MalformedError
from bob.observe.observed import Seen
from bob.result import TroubleKind
from bob.workload.operations import Workload

WHOLE, TORN = CrashState(0, (1,)), CrashState(0, (), ((1, ((0, 1),)),))
LEVELS = (None, "writes", "sectors")


@pytest.mark.parametrize(
    ("level", "refused", "claimed"),
    [
        ("sectors", Seen(TORN, 1, 3, 0), "writes"),
        ("sectors", Seen(WHOLE, 1, 3, 1), None),
        ("writes", Seen(TORN, 1, 3, 0), "writes"),
        ("writes", Seen(WHOLE, 1, 3, 2), None),
        (None, Seen(TORN, 1, 3, 0), None),
    ],
)
def test_what_does_not_mount_is_not_covered(level: str | None, refused: Seen, claimed: str | None) -> None:
    found = judged(States(100, 8, 100, level, 4), [Seen(WHOLE, 0, 97, 8 - refused.whole_states), refused], {0})
    assert found == States(97, 8, 100, claimed, 4, 8 - refused.whole_states, 3, refused.whole_states)


@pytest.mark.parametrize("level", LEVELS)
def test_where_all_mount_the_claim_stands(level: str | None) -> None:
    found = judged(States(100, 8, 100, level, 4), [Seen(WHOLE, 0, 97, 8), Seen(TORN, 0, 3, 0)], {0})
    assert found == States(100, 8, 100, level, 4, 8)


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, None]), st.integers(0, 5), st.integers(0, 5)), max_size=8),
    st.sampled_from(LEVELS),
)
def test_each_state_is_counted_once(rows: list[tuple[int | None, int, int]], level: str | None) -> None:
    states = [Seen(CrashState(0), outcome, whole + torn, whole) for outcome, whole, torn in rows]
    known = [row for row in rows if row[0] is not None]
    total_whole, total = sum(row[1] for row in known), sum(row[1] + row[2] for row in known)
    legal = States(total, total_whole + (level is None), total + 1 - (level == "sectors"), level)
    found = judged(legal, states, {0})
    mounting = [row for row in known if row[0] == 0]
    assert found.explored == sum(row[1] + row[2] for row in mounting)
    assert found.explored_writes == sum(row[1] for row in mounting)
    assert found.explored_torn == sum(row[2] for row in mounting)
    assert found.explored + found.unmountable == total
    if found.exhaustive is not None:
        assert found.explored_writes == found.legal_writes
    if found.exhaustive == "sectors":
        assert found.explored == found.legal_sectors


def test_of_an_old_observation_at_least_the_states_themselves_are_whole() -> None:
    found = judged(States(9, 8, 100, None), [Seen(WHOLE, 0, 5), Seen(TORN, 0, 4), Seen(WHOLE, 0, 0)], {0})
    assert (found.explored, found.explored_writes) == (9, 1)


# Which kind of claim a witness is of


NOTHING = Workload("w", (), ())
CLAIMS = (Mountable(), Sound(TroubleKind.READ_ONLY))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.kind)
@pytest.mark.parametrize("is_named", [True, False])
def test_a_claim_is_read_back_by_its_name_and_in_older_documents_without_it(
    claim: Mountable | Sound, is_named: bool
) -> None:
    document = {**({"claim": claim.kind} if is_named else {}), **claim.to_json()}
    assert claim_of(document, NOTHING, {}) == claim
    assert claim.kind in KINDS


def test_a_kind_that_this_bob_does_not_know_is_no_state_that_does_not_mount() -> None:
    with pytest.raises(MalformedError, match="of the kind 'too-long', which this bob does not know"):
        claim_of({"claim": "too-long", **Mountable().to_json()}, NOTHING, {})


def test_a_kind_without_what_it_needs_is_refused() -> None:
    with pytest.raises(ValueError, match="has the fields of the kind 'unmountable'"):
        claim_of({"claim": "trouble", **Mountable().to_json()}, NOTHING, {})
