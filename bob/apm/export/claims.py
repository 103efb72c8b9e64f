"""What programs that keep data want to know of a file system: claims, each of which rests on clauses of a model.

They are the idioms that databases, mail servers and version control rest on (OSDI'14, section 2 and Table 3): replacing
a file, a log, a journal that is removed when it is done, and what the calls that sync are for.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from bob.apm.clauses import DIRECTORY_KINDS, NEVERS, Clause, Durable, Fill, Never, Ordered, Whole
from bob.apm.clauses import every_clause as every
from bob.apm.export.standing import Claim, Reader
from bob.claim.property.vocabulary import Call, Unit, What
from bob.workload.kinds import ChangeKind, Relation

_ELSEWHERE = (Relation.SAME_DIRECTORY, Relation.OTHER_DIRECTORY)
_OTHERS = (What.OTHER_OVERWRITES, What.OTHER_APPENDS, What.OTHER_NAMES, What.OTHER_ATTRIBUTES)
_ALL = (What.DATA, What.SIZE, What.ATTRIBUTES, What.ENTRY, What.NAMES)
"""What the changes of any file are to a call that is given none."""


def claims(reader: Reader) -> tuple[Claim, ...]:
    """Every claim, as it stands in a model."""
    return tuple(reader.claim(sentence, clauses) for sentence, clauses in _claims())


def _claims() -> Iterator[tuple[str, list[Clause]]]:
    yield (
        "A file that is replaced (a new one is written and renamed over it) has its old or its new contents, also "
        "without an fsync.",
        [
            Ordered(ChangeKind.APPEND, ChangeKind.RENAME_OVER, Relation.SAME_FILE),
            Whole(ChangeKind.RENAME_OVER, Unit.WHOLE),
        ],
    )
    yield "An fsync of a file makes its data and its size durable.", _after(Call.FSYNC_FILE, What.DATA, What.SIZE)
    yield "An fsync of a new file makes its name durable, too.", _after(Call.FSYNC_FILE, What.ENTRY)
    yield (
        "An fdatasync of a file makes its data and its size durable.",
        _after(Call.FDATASYNC_FILE, What.DATA, What.SIZE),
    )
    yield "An fsync of a directory makes the names in it durable.", _after(Call.FSYNC_DIRECTORY, What.ENTRIES)
    yield "An fsync of one file makes all else durable that was done before it.", _after(Call.FSYNC_FILE, *_OTHERS)
    yield "A sync makes all durable that was done before it.", _after(Call.SYNC, *_ALL)
    yield (
        "What is written with O_SYNC is durable when the write returns.",
        _after(Call.O_SYNC, What.DATA, What.SIZE),
    )
    yield (
        "What is written with O_DSYNC is durable when the write returns.",
        _after(Call.O_DSYNC, What.DATA, What.SIZE),
    )
    yield "Every change is durable when its system call returns, without any sync.", _after(Call.RETURNED, *_ALL)
    yield "An overwrite is all there or not at all.", [Whole(ChangeKind.OVERWRITE, Unit.WHOLE)]
    yield "Each 4 KiB block of an overwrite is all there or not at all.", [Whole(ChangeKind.OVERWRITE, Unit.BLOCK)]
    yield "An append is all there or not at all.", [Whole(ChangeKind.APPEND, Unit.WHOLE)]
    yield (
        "Where a file has grown by an append, the appended data is there: no zeros, no old contents of the disk.",
        [Never(ChangeKind.APPEND, fill) for fill in Fill],
    )
    yield (
        "No file ever shows old contents of the disk.",
        [clause for clause in NEVERS if clause.fill is Fill.STALE],
    )
    yield (
        "Making, linking, renaming and removing a file or a directory are each all there or not at all.",
        [Whole(kind, Unit.WHOLE) for kind in DIRECTORY_KINDS],
    )
    yield (
        "Appends to one file persist in the order in which they were made.",
        [Ordered(ChangeKind.APPEND, ChangeKind.APPEND, Relation.SAME_FILE)],
    )
    yield (
        "An append (to a log, say) persists before a later overwrite of another file.",
        [Ordered(ChangeKind.APPEND, ChangeKind.OVERWRITE, relation) for relation in _ELSEWHERE],
    )
    yield (
        "An overwrite persists before the later removal of another file (a rollback journal, say).",
        [Ordered(ChangeKind.OVERWRITE, ChangeKind.UNLINK, relation) for relation in _ELSEWHERE],
    )
    yield (
        "Names are made, moved and removed on the disk in the order in which the program did it.",
        [Ordered(*three) for three in product(DIRECTORY_KINDS, DIRECTORY_KINDS, Relation)],
    )
    yield (
        "Everything persists in the order in which the program did it.",
        [clause for clause in every() if isinstance(clause, Ordered)],
    )


def _after(call: Call, *things: What) -> list[Clause]:
    return [Durable(call, what) for what in things]
