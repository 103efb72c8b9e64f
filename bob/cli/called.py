"""Commands in bob's messages, as the user can paste them."""

import re
from functools import cache

from bob.cli.verbs import COMMANDS
from bob.report.nearby import called


def as_called(text: str) -> str:
    """Return ``text`` with each of bob's commands as the user calls bob, such as "./run show" for "bob show". Prose
    such as "bob shows" stays."""
    word = called()
    if word == "bob" or "bob " not in text:
        return text
    return _commands().sub(lambda found: f"{found[1]}{word} ", text)


@cache
def _commands() -> re.Pattern[str]:
    return re.compile(rf"(^|[\s`'\"(])bob (?=(?:{'|'.join(COMMANDS)})(?:[\s`'\").,;:]|$))", re.M)
