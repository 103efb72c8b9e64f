"""What properties ask for, in the words of the shipped probes, and of recovery."""

from __future__ import annotations

import tomllib
from contextlib import suppress

from bob.judge.idempotence import IDEMPOTENT
from bob.resources import shipped


def meanings() -> dict[str, str]:
    """What the shipped probes say of their properties, as far as their files can be read.

    A probe file that is broken is not the business of a run that is over, so nothing but these two keys is read.
    """
    found = {IDEMPOTENT.name: IDEMPOTENT.meaning}
    for path in sorted(shipped("probes").glob("*.toml")):
        with suppress(OSError, ValueError):
            probe = tomllib.loads(path.read_text())
            found[str(probe.get("name"))] = str(probe.get("meaning", ""))
    return {name: meaning for name, meaning in found.items() if meaning}
