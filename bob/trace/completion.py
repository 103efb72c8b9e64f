"""When the recorded disk told that a write was done."""

from __future__ import annotations

from enum import Enum


class Completion(Enum):
    """When the recorded disk completes a write: at once (``PROMPT``), or as late as can be and one at a time, of those
    that are under way the youngest first or the oldest first.

    A file system that sends a flush without having waited for a write looks on a prompt disk as if it had. The value
    is what recordings, run directories and witnesses say; one that says nothing is older than the choice, and prompt.
    """

    PROMPT = "prompt"
    YOUNGEST_FIRST = "youngest-first"
    OLDEST_FIRST = "oldest-first"
