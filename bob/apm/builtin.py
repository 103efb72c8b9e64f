"""Models that others wrote: OSDI'14, Table 4 (all with atomic directory operations and size changes), and ccfs
(FAST'17). We read their "sync operations" as "everything before the sync"."""

from __future__ import annotations

from bob.apm import clauses
from bob.apm.clauses import Clause, durable, orders
from bob.apm.model import ClauseFinding, ClauseStatus, Model
from bob.claim.property.vocabulary import Call, Unit, What
from bob.errors import UsageError, meant
from bob.workload.kinds import MODELLED_KINDS, ChangeKind, Relation

_SIZES = (*clauses.GROWING_KINDS, ChangeKind.TRUNCATE_DOWN)
_ALL_ELSE = tuple(kind for kind in MODELLED_KINDS if kind is not ChangeKind.OVERWRITE)


ATOMIC_CONTENTS: tuple[Clause, ...] = (
    *clauses.NEVERS,
    *(clauses.Whole(kind, Unit.BLOCK) for kind in clauses.DATA_KINDS),
)  # contents come with the size that shows them
FLUSHED = (What.DATA, What.SIZE, What.ATTRIBUTES, What.ENTRY)  # durable after a safe file flush
SAFE_RENAME = orders((ChangeKind.APPEND,), (ChangeKind.RENAME, ChangeKind.RENAME_OVER), (Relation.SAME_FILE,))


def names() -> tuple[str, ...]:
    return tuple(_MODELS)


def builtin(name: str) -> Model:
    """Return a built-in model. Raises UsageError if the name is unknown."""
    if name not in _MODELS:
        raise UsageError(f"there is no built-in model {name!r}", hint=meant(name, _MODELS))
    about, own = _MODELS[name]
    promised = clauses.closed(frozenset(own))
    findings = tuple(
        ClauseFinding(
            clause, ClauseStatus.ASSUMED, clause in promised, reason=None if clause in promised else "not in the model"
        )
        for clause in clauses.every_written()
    )
    return Model(name, about, findings, {"builtin": name})


_JOURNALED = (*clauses.DIRECTORY_KINDS, *(kind for kind in _SIZES if kind is not ChangeKind.APPEND))
"""The order of an append includes its data: see :data:`bob.apm.clauses.JOURNALED`."""
_COMMON: tuple[Clause, ...] = (
    *(clauses.Intact(part) for part in clauses.TreePart),
    *(clauses.Whole(kind, Unit.WHOLE) for kind in (*_JOURNALED, ChangeKind.SETXATTR)),
    clauses.OWN_FIRST,
)  # clauses of all of the paper's models
_SAFE_FLUSH = (
    *durable((Call.FSYNC_FILE, Call.O_SYNC, Call.SYNC, Call.SYNCFS), FLUSHED),
    *durable((Call.SYNC, Call.SYNCFS), (What.NAMES,)),
    *durable((Call.FDATASYNC_FILE, Call.O_DSYNC, Call.MSYNC), (What.DATA, What.SIZE)),
    *durable((Call.FSYNC_DIRECTORY, Call.FDATASYNC_DIRECTORY), (What.ENTRIES,)),
)
"""An fsync or O_SYNC write (generic_write_sync) persists contents and entry. O_DSYNC and msync act as fdatasync."""
_ALL_SYNCED = durable(clauses.SYNCS, clauses.WHATS)  # with O_SYNC, O_DSYNC: ALICE adds an fsync of the range
_METADATA = tuple(what for what in clauses.WHATS if what not in (What.DATA, What.OTHER_OVERWRITES, What.OTHER_APPENDS))

_MODELS: dict[str, tuple[str, tuple[Clause, ...]]] = {
    "ext3-w": (
        "ext3 data=writeback (OSDI'14, Table 4): directory operations and file sizes ordered among themselves and "
        "before sync operations; contents not atomic",
        (*_COMMON, clauses.JOURNALED, clauses.SYNCED, *orders(_JOURNALED, _JOURNALED),
         *durable(clauses.SYNCS, _METADATA), *_SAFE_FLUSH),
    ),
    "ext3-o": (
        "ext3 data=ordered (OSDI'14, Table 4): directory operations, appends and truncates ordered among themselves; "
        "overwrites before non-overwrites; all before sync operations; contents atomic",
        (*_COMMON, *ATOMIC_CONTENTS, *orders(_ALL_ELSE, _ALL_ELSE), *orders((ChangeKind.OVERWRITE,), _ALL_ELSE),
         *_ALL_SYNCED),
    ),
    "ext3-j": (
        "ext3 data=journal (OSDI'14, Table 4): everything ordered; contents atomic",
        (*_COMMON, *ATOMIC_CONTENTS, *orders(ChangeKind, ChangeKind), *_ALL_SYNCED),
    ),
    "ext4-o": (
        "ext4 data=ordered (OSDI'14, Table 4): safe rename, safe file flush, directory operations ordered among "
        "themselves; contents atomic",
        (*_COMMON, *ATOMIC_CONTENTS, *SAFE_RENAME, *_SAFE_FLUSH,
         *orders(clauses.DIRECTORY_KINDS, clauses.DIRECTORY_KINDS)),
    ),
    "btrfs": (
        "btrfs (OSDI'14, Table 4): safe rename and safe file flush only; contents atomic",
        (*_COMMON, *ATOMIC_CONTENTS, *SAFE_RENAME, *_SAFE_FLUSH),
    ),
    "ccfs": (
        "ccfs (FAST'17): program order within a stream, sector-sized atomic overwrites, atomic appends and directory "
        "operations",
        (*_COMMON, *clauses.NEVERS,
         *(clauses.Whole(ChangeKind.APPEND, unit) for unit in clauses.UNITS), *orders(ChangeKind, ChangeKind),
         *_ALL_SYNCED),
    ),
}  # fmt: skip
