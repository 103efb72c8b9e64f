"""The table of kinds: who may recognise what a witness is of, in this order. A new kind of claim is one module, and one
line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bob.claim import checking, mounting, recovery, soundness
from bob.claim.claim import Claim, Known
from bob.claim.expectation import expected
from bob.claim.property import of_property
from bob.workload.operations import Workload

KINDS: Sequence[Callable[[Mapping[str, Any], Workload, Known], Claim | None]] = (
    checking.read,
    expected.read,
    soundness.read,
    recovery.read,
    of_property.read,
    mounting.read,  # what is of none of the others
)


def claim_of(document: Mapping[str, Any], workload: Workload, known: Known) -> Claim:
    """What the witness in ``document`` is of; ``known`` has the properties that it need not declare.

    Raises what the kinds raise for what is damaged: KeyError, TypeError, ValueError, UsageError.
    """
    return next(claim for read in KINDS if (claim := read(document, workload, known)) is not None)
