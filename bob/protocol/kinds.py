"""Classify what a program relies on. The classes are those of ALICE (OSDI'14, Table 3a), such as "atomicity of an
append".

Some classes have the name of an assumption that the program makes. *Safe file flush* is the assumption that an fsync of
a new file also makes its name durable. *Safe rename* is the assumption that an append persists before a later rename of
the file."""

import re
from collections.abc import Iterable

from bob.program.recurring import recurring
from bob.protocol.contrast import Explanation, Reliance
from bob.protocol.effects import Deed, Effects
from bob.workload import operations as ops
from bob.workload.operations import Replacing

TYPES = (
    "atomicity across calls",
    "atomicity of an append or truncate",
    "atomicity of an overwrite",
    "atomicity of a rename or unlink",
    "ordering: safe file flush",
    "ordering: safe rename",
    "ordering: other",
    "durability: safe file flush",
    "durability: other",
)  # columns of OSDI'14's Table 3a; appends and truncates share a column, but kind_of separates them
_NAMES = (ops.Rename, ops.Link, ops.Unlink, ops.Rmdir, ops.Mkdir, ops.Symlink, ops.Create)
_MAKES = (ops.Create, ops.Mkdir, ops.Symlink, ops.Link, ops.Rename)


def kind_of(explanation: Explanation, effects: Effects, told_by: int | None = None) -> str:
    """Return ALICE's class (such as "atomicity of an append") of the reliance that an ``explanation`` describes, or ""
    if no class fits. If the explanation says that calls must be durable, they must be so when the call ``told_by``
    writes the program's last output before the crash. Without ``told_by``, they must be so after the program's last
    call."""
    by_call = {deed.call: deed for deed in effects.deeds}
    missing = [by_call[call] for call in explanation.missing if call in by_call]
    there = [by_call[call] for call in explanation.there if call in by_call]
    match explanation.reliance:
        case Reliance.TOGETHER:
            return "atomicity across calls"
        case Reliance.WHOLE if missing or there:
            several = {deed.call for deed in (*missing, *there)}
            return "atomicity across calls" if len(several) > 1 else _whole((*missing, *there)[0], effects)
        case Reliance.ORDER if missing and there:
            if _is_safe_rename(missing, there, effects):
                return "ordering: safe rename"
            last = max(deed.call for deed in there)
            return "ordering: safe file flush" if _is_flushed(missing, last, effects) else "ordering: other"
        case Reliance.DURABLE if missing:
            end = max(deed.call for deed in effects.deeds) + 1 if told_by is None else told_by
            return "durability: safe file flush" if _is_flushed(missing, end, effects) else "durability: other"
    return ""


def type_of(kind: str) -> str:
    one = "atomicity of an append or truncate" if kind in _APPENDS_AND_TRUNCATES else kind
    return one if one in TYPES else ""


def place_of(words: str) -> str:
    """Return ``words``, which describe a call, without sizes, offsets and random names. These differ between runs and
    between rounds of a loop."""
    what, mark, maker = _COUNTS.sub("", words).partition(" (")
    return _PATH.sub(lambda path: recurring(path[0]), what) + mark + maker


_APPENDS_AND_TRUNCATES = ("atomicity of an append", "atomicity of a truncate")
_COUNTS = re.compile(r" (?:\d+ bytes at \d+ of|\d+ bytes at \d+|to \d+ bytes)\b")
_PATH = re.compile(r"/\S*")


def _whole(deed: Deed, effects: Effects) -> str:
    if isinstance(deed.operation, ops.Write):
        return "atomicity of an append" if (deed.file, deed.call) in effects.growing else "atomicity of an overwrite"
    if isinstance(deed.operation, ops.Fallocate) and deed.operation.mode.zeroes:
        return "atomicity of an overwrite"
    if isinstance(deed.operation, (ops.Truncate, ops.Fallocate)):
        return "atomicity of a truncate"
    return "atomicity of a rename or unlink" if isinstance(deed.operation, _NAMES) else ""


def _is_safe_rename(missing: Iterable[Deed], there: Iterable[Deed], effects: Effects) -> bool:
    renamed: dict[int, int] = {}
    for deed in there:
        if isinstance(deed.operation, ops.Rename):
            renamed.update(dict.fromkeys(_moved(deed, effects), deed.call))
    return any(isinstance(one.operation, ops.Write) and one.call < renamed.get(one.file, -1) for one in missing)


def _moved(deed: Deed, effects: Effects) -> set[int]:
    if not isinstance(deed.operation, ops.Rename) or deed.operation.replacing is not Replacing.EXCHANGE:
        return {deed.file}
    made = (one for history in effects.entries.values() for one in history if one.call == deed.call)
    return {one.value for one in made if one.value is not None}


def _is_flushed(missing: Iterable[Deed], before: int, effects: Effects) -> bool:
    """Return whether a call in ``missing`` gave a file a name, and the program called fsync on that file after this
    call, but before the call with the number ``before``. The file must still have a name when call ``before`` is
    made."""
    made = {deed.file: deed.call for deed in missing if isinstance(deed.operation, _MAKES)}
    return any(
        isinstance(deed.operation, ops.Fsync)
        and made.get(deed.file, before) < deed.call < before
        and _has_a_name(deed.file, before, effects)
        for deed in effects.deeds
    )


def _has_a_name(file: int, before: int, effects: Effects) -> bool:
    histories = ([one.value for one in history if one.call < before] for history in effects.entries.values())
    return any(values and values[-1] == file for values in histories)
