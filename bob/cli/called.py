"""Commands as the user can paste them. A user of ./run may lack ``bob`` in PATH, so ./run says how it was called."""

import os
import re
import shlex
from functools import cache

from bob.cli.verbs import COMMANDS

VARIABLE = "BOB_CALLED_AS"


def as_called(text: str) -> str:
    """Return ``text`` with each of bob's commands as the user calls bob, such as "./run show" for "bob show". Prose
    such as "bob shows" stays."""
    called = os.environ.get(VARIABLE)
    if not called or "bob " not in text:
        return text
    return _commands().sub(lambda found: f"{found[1]}{shlex.quote(called)} ", text)


@cache
def _commands() -> re.Pattern[str]:
    return re.compile(rf"(^|[\s`'\"(])bob (?=(?:{'|'.join(COMMANDS)})(?:[\s`'\").,;:]|$))", re.M)
