"""Which kind of claim a witness is of."""

from __future__ import annotations

import pytest

from bob.claim.kinds import KINDS, claim_of
from bob.claim.mounting import Mountable
from bob.claim.soundness import Sound
from bob.result import TroubleKind
from bob.workload.operations import Workload

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
    with pytest.raises(ValueError, match="of the kind 'too-long', which this bob does not know"):
        claim_of({"claim": "too-long", **Mountable().to_json()}, NOTHING, {})


def test_a_kind_without_what_it_needs_is_refused() -> None:
    with pytest.raises(ValueError, match="has the fields of the kind 'unmountable'"):
        claim_of({"claim": "trouble", **Mountable().to_json()}, NOTHING, {})
