"""How much of an effect an observation shows: the one answer to "what survived?", of operations and of calls."""

from __future__ import annotations

from enum import Enum


class Presence(Enum):
    """How much of what one operation, or one call, changes is there."""

    NONE = 0
    PARTIAL = 1
    FULL = 2
    UNDECIDED = 3
    """The observation cannot tell none from full."""
