"""The table of all kinds of claims. A *claim* is what each crash state should satisfy, such as a property (a rule about
crashes). To add a kind, write one module for it, and add one line to this table (docs/extend.md)."""

from collections.abc import Callable, Mapping
from typing import Any

from bob.claim.checking import CheckerClaim
from bob.claim.claim import NEWER, Claim, PropertyLookup
from bob.claim.expectation.expected import ExpectationClaim
from bob.claim.idempotence import Idempotent
from bob.claim.mounting import Mountable, Sound
from bob.claim.property.of_property import OfProperty
from bob.errors import MalformedError
from bob.workload.operations import Workload

ClaimReader = Callable[[Mapping[str, Any], Workload, PropertyLookup], Claim | None]

KINDS: Mapping[str, ClaimReader] = {
    CheckerClaim.kind: CheckerClaim.read,
    ExpectationClaim.kind: ExpectationClaim.read,
    Sound.kind: Sound.read,
    Idempotent.kind: Idempotent.read,
    OfProperty.kind: OfProperty.read,
    Mountable.kind: Mountable.read,  # last, since it reads every document that no other kind reads
}


def claim_of(document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> Claim:
    """Return the claim that ``document`` is about. The document is a witness: it describes one crash state that breaks
    a claim. A witness about a shipped property may contain the property's name without its declaration; ``known`` then
    returns the property. Raises MalformedError for an unknown kind, and the errors of
    :meth:`bob.claim.claim.Claim.read`."""
    claim = next(claim for read in KINDS.values() if (claim := read(document, workload, known)) is not None)
    named = document.get("claim", claim.kind)  # older witnesses lack this field
    if named not in KINDS:
        raise MalformedError(f"its claim is of the kind {named!r}, which this bob does not know", hint=NEWER)
    if named != claim.kind:
        raise ValueError(f"its claim has the fields of the kind {claim.kind!r}, but names the kind {named!r}")
    return claim
