"""Models that others wrote: those of OSDI'14, Table 4, and ccfs (FAST'17). In all models of Table 4, directory
operations are atomic, and so is each change of a file's size. The papers say that some changes persist before "sync
operations". bob takes this to mean that each sync persists all such changes that came before it."""

from bob.apm import clauses
from bob.apm.clauses import Clause, matching
from bob.apm.model import ClauseFinding, ClauseStatus, Model
from bob.errors import UsageError, meant
from bob.workload.kinds import MODELLED_KINDS, ChangeKind

ATOMIC_CONTENTS = matching("never any any", "whole overwrite|append block")
"""Clauses that promise that contents persist together with the size that shows them."""
SAFE_FLUSH = matching("durable fsync-file data|size|attributes|entry")
SAFE_RENAME = matching("ordered append rename|rename-over same-file")


SOFT = "soft"
_PROCESS_DIES = (
    "a soft crash: the process dies, and the kernel lives. Each call that returned has its effect, and no later one has"
)


def names() -> tuple[str, ...]:
    """Return the names of the models of file systems. :data:`SOFT` is no file system."""
    return tuple(_MODELS)


def builtin(name: str) -> Model:
    """Return a built-in model: of a file system, or of soft crashes. Raises UsageError if the name is unknown."""
    if name != SOFT and name not in _MODELS:
        raise UsageError(f"unknown built-in model {name!r}", hint=meant(name, (*_MODELS, SOFT)))
    about, own = (_PROCESS_DIES, clauses.every_written()) if name == SOFT else _MODELS[name]
    promised = clauses.closed({*_COMMON, *own})
    findings = tuple(
        ClauseFinding(
            clause, ClauseStatus.ASSUMED, clause in promised, reason=None if clause in promised else "not in the model"
        )
        for clause in clauses.every_written()
    )
    return Model(name, about, findings, {"builtin": name})


_NAMES, _SYNCS = "|".join(clauses.DIRECTORY_KINDS), "|".join(clauses.SYNCS)
_JOURNALED = f"{_NAMES}|truncate-up|truncate-down|fallocate"
"""The kinds of changes whose order a journal of metadata keeps. Appends are not among them, because the order of an
append includes its data: see :data:`bob.apm.clauses.JOURNALED`."""
_ALL_ELSE = "|".join(kind for kind in MODELLED_KINDS if kind is not ChangeKind.OVERWRITE)
_COMMON = matching("intact any", f"whole {_JOURNALED}|setxattr whole", "in-turn own-changes any")
"""The clauses that all of the paper's models have."""
_FLUSHED = (
    *SAFE_FLUSH,
    *matching("durable o-sync|sync|syncfs data|size|attributes|entry", "durable sync|syncfs names"),
    *matching("durable fdatasync-file|o-dsync|msync data|size", "durable fsync-directory|fdatasync-directory entries"),
)
"""Durability by syncs: an fsync or an O_SYNC write (generic_write_sync) persists contents and entry. O_DSYNC and msync
act as fdatasync."""
_ALL_SYNCED = f"durable {_SYNCS} any"  # O_SYNC and O_DSYNC count, too: ALICE adds an fsync of the range
_METADATA_SYNCED = f"durable {_SYNCS} size|attributes|entry|names|entries|parent|other-names|other-attributes"

_MODELS: dict[str, tuple[str, tuple[Clause, ...]]] = {
    "ext3-w": (
        "ext3 data=writeback (OSDI'14, Table 4): directory operations and file sizes ordered among themselves and "
        "before sync operations; contents not atomic",
        (*_FLUSHED, *matching("in-turn metadata any", f"ordered {_JOURNALED} {_JOURNALED} any", _METADATA_SYNCED)),
    ),
    "ext3-o": (
        "ext3 data=ordered (OSDI'14, Table 4): directory operations, appends and truncates ordered among themselves; "
        "overwrites before non-overwrites; all before sync operations; contents atomic",
        (*ATOMIC_CONTENTS, *matching(f"ordered any {_ALL_ELSE} any", _ALL_SYNCED)),
    ),
    "ext3-j": (
        "ext3 data=journal (OSDI'14, Table 4): everything ordered; contents atomic",
        (*ATOMIC_CONTENTS, *matching("ordered any any any", _ALL_SYNCED)),
    ),
    "ext4-o": (
        "ext4 data=ordered (OSDI'14, Table 4): safe rename, safe file flush, directory operations ordered among "
        "themselves; contents atomic",
        (*ATOMIC_CONTENTS, *SAFE_RENAME, *_FLUSHED, *matching(f"ordered {_NAMES} {_NAMES} any")),
    ),
    "btrfs": (
        "btrfs (OSDI'14, Table 4): safe rename and safe file flush only; contents atomic",
        (*ATOMIC_CONTENTS, *SAFE_RENAME, *_FLUSHED),
    ),
    "ccfs": (
        "ccfs (FAST'17): program order within a stream, sector-sized atomic overwrites, atomic appends and directory "
        "operations",
        matching("never any any", "whole append any", "ordered any any any", _ALL_SYNCED),
    ),
}
