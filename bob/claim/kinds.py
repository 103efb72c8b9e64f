"""The table of kinds of claims: a new kind is one module, and one line here (docs/extend.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bob.claim import checking, mounting, recovery, soundness
from bob.claim.claim import NEWER, Claim, PropertyLookup
from bob.claim.expectation import expected
from bob.claim.property import of_property
from bob.errors import MalformedError
from bob.workload.operations import Workload

ClaimReader = Callable[[Mapping[str, Any], Workload, PropertyLookup], Claim | None]

KINDS: Mapping[str, ClaimReader] = {
    "checker": checking.read,
    "expectation": expected.read,
    "trouble": soundness.read,
    "recovery": recovery.read,
    "property": of_property.read,
    "unmountable": mounting.read,  # last: it takes all of which the others say that it is none of theirs
}
"""By its name, who reads a claim of this kind."""


def claim_of(document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> Claim:
    """What the witness in ``document`` is of; ``known`` has the properties that it need not declare.

    The first kind that knows it reads it. Raises MalformedError where the document names another kind, one that is
    newer than this bob perhaps; and what the kinds raise for what is damaged: KeyError, TypeError, ValueError,
    UsageError, MalformedError.
    """
    claim = next(claim for read in KINDS.values() if (claim := read(document, workload, known)) is not None)
    named = document.get("claim", claim.kind)  # which older ones lack
    if named not in KINDS:
        raise MalformedError(f"its claim is of the kind {named!r}, which this bob does not know", hint=NEWER)
    if named != claim.kind:
        raise ValueError(f"it has the fields of the kind {claim.kind!r}, and is said to be of {named!r}")
    return claim
