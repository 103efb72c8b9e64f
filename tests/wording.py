"""What a text says whatever its words: the facts that it names. Its words are in a snapshot beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable


def text_with(text: str, *facts: object) -> str:
    """Return ``text``.

    Raises:
        AssertionError: it does not name one of ``facts``: numbers, paths, options, names.
    """
    for fact in facts:
        assert _named(fact, text), f"{fact!r} is not named in: {text}"
    return text


def line_with(text: str | Iterable[str], *facts: object) -> str:
    """Return the lines of ``text`` that name all of ``facts``, without the blanks around them.

    Raises:
        AssertionError: there is none.
    """
    return _part_with(text.split("\n") if isinstance(text, str) else text, facts)


def sentence_with(text: str, *facts: object) -> str:
    """Return the sentences of ``text`` that name all of ``facts``. A semicolon and a colon end one, too.

    Raises:
        AssertionError: there is none.
    """
    return _part_with(re.split(r"(?<=[.;:!?])\s+|\n", text), facts)


def _part_with(parts: Iterable[str], facts: tuple[object, ...]) -> str:
    parts = [part.strip() for part in parts]
    those = [part for part in parts if all(_named(fact, part) for fact in facts)]
    assert those, f"none names {facts}: {parts}"
    return "\n".join(those)


def _named(fact: object, text: str) -> bool:
    """A number stands for itself: 4 is not named in 4096."""
    if isinstance(fact, int):
        return re.search(rf"(?<![\d.,]){fact}(?!\d|[.,]\d)", text) is not None
    return str(fact) in text
