"""The text of bob's JSON documents, for people, version control and programs. The last field, ``checksum``, is the
SHA-256 of all bytes before it, so that any program can check the document. Documents by people or other programs lack a
checksum."""

import hashlib
import json
import math
import re
from collections.abc import Sequence
from typing import Any

LONGEST_LINE = 400  # characters: a part of a document that fits into so many stands on one line
CHECKSUM = "checksum"
_KIND = "sha256:"
_SEAL = re.compile(rb',?\s*"checksum":\s*"(sha256:[0-9a-f]{64})"\s*\}\s*\Z')
_LONGEST_SEAL = 160

BY_HAND = f"restore the file; if the change was intended, remove its last field, {CHECKSUM}"  # a hint


class ChangedError(ValueError):
    """A document has changed since bob wrote it."""


def text(document: Any) -> str:
    """Return ``document`` as JSON, with a line break at its end."""
    return _text(document, 0) + "\n"


def sealed(written: str) -> bytes:
    """Return the bytes of a document's file. ``written`` is the text of a JSON object, and the function adds the
    checksum as the object's last field."""
    head = written.rstrip().removesuffix("}").rstrip().encode()
    comma = "" if head == b"{" else ","
    return head + f'{comma}\n "{CHECKSUM}": "{checksum(head)}"\n}}\n'.encode()


def checksum(data: bytes) -> str:
    return _KIND + hashlib.sha256(data).hexdigest()


def checksum_in(data: bytes) -> str | None:
    """Return the checksum that the document ``data`` states, without verifying it. Return None if the document lacks
    one."""
    seal = _seal(data)
    return None if seal is None else seal[1].decode()


def opened(data: bytes, *, required: bool = False) -> dict[str, Any]:
    """Return the document in ``data``, without its checksum. Raise ChangedError if the checksum does not match, or is
    missing although ``required``. Raise ValueError if ``data`` is not a JSON object."""
    seal = _seal(data)
    if seal is not None and checksum(data[: seal.start()]) != seal[1].decode():
        raise ChangedError("it was changed since bob wrote it: its checksum does not match")
    document = parse(data)
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    if seal is None:
        if CHECKSUM in document:
            raise ChangedError("it was changed since bob wrote it: its checksum is not at its end")
        if required:
            raise ChangedError("it was changed since bob wrote it: its checksum is missing")
    document.pop(CHECKSUM, None)
    return document


def parse(data: bytes | str) -> Any:
    """Return the JSON value in ``data``. Raise ValueError for bad JSON, NaN, Infinity, a number too large for a float
    (1e999), a name that occurs twice in an object, and too deep nesting."""
    try:
        return json.loads(data, parse_constant=_number, parse_float=_number, object_pairs_hook=_table)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _number(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"{written[:40]} is not a finite number")
    return number


def _table(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in table if names.count(name) > 1)
        raise ValueError(f"{twice[:80]!r} occurs twice")
    return table


def _seal(data: bytes) -> re.Match[bytes] | None:
    return _SEAL.search(data, max(0, len(data) - _LONGEST_SEAL))


def _text(part: Any, depth: int) -> str:
    line = json.dumps(part, separators=(",", ":"))
    if len(line) <= LONGEST_LINE or not isinstance(part, dict | list | tuple):
        return line
    if isinstance(part, dict):
        brackets, inner = "{}", [f"{json.dumps(name)}: {_text(value, depth + 1)}" for name, value in part.items()]
    else:
        brackets, inner = "[]", [_text(value, depth + 1) for value in part]
    indent = "\n" + " " * depth
    return brackets[0] + ",".join(f"{indent} {one}" for one in inner) + indent + brackets[1]
