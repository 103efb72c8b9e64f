"""What properties ask for, in the words of the shipped probes, and of recovery."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from contextlib import suppress

from bob.answer.result import SubjectResult
from bob.claim.idempotence import IDEMPOTENT
from bob.resources import shipped


def meanings(columns: Iterable[SubjectResult] = ()) -> dict[str, str]:
    """What the shipped probes say of their properties, as far as their files can be read, and ``columns`` of theirs.

    The latter is the only place for properties of the user's own.

    A probe file that is broken is not the business of a run that is over, so nothing but these two keys is read.
    """
    found = {IDEMPOTENT.name: IDEMPOTENT.meaning}
    for path in sorted(shipped("probes").glob("*.toml")):
        with suppress(OSError, ValueError):
            probe = tomllib.loads(path.read_text())
            found[str(probe.get("name"))] = str(probe.get("meaning", ""))
    found |= {cell.name: cell.meaning for column in columns for cell in column.answers if cell.meaning}
    return {name: meaning for name, meaning in found.items() if meaning}
