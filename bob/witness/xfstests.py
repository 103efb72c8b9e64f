"""A witness (a recorded crash that breaks a property) as a case for xfstests: a script that performs the workload,
crashes, and compares the tree.

xfstests can crash in two ways. From a chosen moment on, the target dm-flakey drops all writes. It keeps every earlier
write, even if it was not flushed. A log of dm-log-writes, replayed up to a mark, loses all writes before the mark that
were not flushed. But a crash may also lose only some of the unflushed writes, and xfstests cannot do this
(:func:`loss`)."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from textwrap import wrap

from bob.claim.mounting import Mountable
from bob.claim.property.calls import call_of, makers
from bob.claim.property.of_property import OfProperty
from bob.claim.property.vocabulary import Call
from bob.errors import UsageError
from bob.story.timeline import CallEvent, CrashTimeline, Fate, FlushEvent, WriteEvent
from bob.subject import FileSystem
from bob.witness.document import Witness
from bob.witness.keep import EACH_DISK
from bob.witness.shell import Printer, function, looks, needs, translated
from bob.workload import operations as ops
from bob.workload.history import FileKind, History
from bob.workload.kinds import ChangeKind, changes
from bob.workload.language import write_one
from bob.workload.operations import At, Workload
from bob.workload.simulation import simulate

SILENCE = "Silence is golden"
_MIB = 512  # size of the file system that the case copies before the crash; xfs needs at least 300


class CacheLoss(Enum):
    """How many of the unflushed writes a crash state has lost. The disk had received these writes, but had not made
    them durable."""

    NOTHING = "nothing"
    ALL = "all"
    SOME = "some"


@dataclass(frozen=True, slots=True)
class XfstestsScript:
    """A case (a test) for xfstests. It is the script, and the output that xfstests expects (``golden``). ``remarks``
    are sentences for the user. They say how the crash of the case differs from the crash of the witness, and so whether
    the case can fail."""

    script: str
    golden: str
    remarks: tuple[str, ...]


def to_case(witness: Witness, name: str) -> XfstestsScript:
    """Return the case ``name`` for ``witness``; ``name`` is the last part of the case's path, such as ``900``. Raises
    UsageError if the crash may come before the last operation returns, or if xfstests lack a command for an operation.
    Raises UsageError also if bob cannot tell which parts of the tree a correct file system would keep in this crash."""
    if witness.configuration.layers:
        raise UsageError("the witness is on layers, and a case of xfstests has one disk", hint=EACH_DISK)
    workload = _asked(witness)
    lost, checks = loss(witness), tuple(_checks(witness, workload))
    remarks = tuple(_remarks(witness, lost))
    text = _script(witness, workload, name, lost, checks, remarks)
    return XfstestsScript(text, f"QA output created by {name}\n{SILENCE}\n", remarks)


def loss(witness: Witness) -> CacheLoss:
    """Return how many of the unflushed writes are lost in the crash state of ``witness``. If the witness says that the
    loss of all unflushed writes breaks its claim too, return ``ALL``."""
    lost = _lost(witness.timeline)
    if not lost:
        return CacheLoss.NOTHING
    is_all = not any(one.fate in (Fate.KEPT, Fate.TORN) for one in witness.timeline.writes)
    return CacheLoss.ALL if is_all or witness.all_lost is True else CacheLoss.SOME


def _lost(line: CrashTimeline) -> list[WriteEvent]:
    """Return the writes that the crash lost, in whole or in part. Leave out a write if the kernel perhaps sent it only
    after the crash. The kernel surely sent a write before the crash in two cases: it sent the write before the last
    operation returned, or before another write that is on the medium."""
    returned = (event.end for event in line.events if isinstance(event, CallEvent) and event.end is not None)
    there = (one.seconds for one in line.writes if one.fate in (Fate.KEPT, Fate.TORN))
    until = max((*returned, *there), default=0.0)
    return [one for one in line.writes if one.fate in (Fate.LOST, Fate.TORN) and one.seconds <= until]


def _asked(witness: Witness) -> Workload:
    """Return the workload of ``witness``. Raises UsageError if the crash may come before the last operation has
    returned."""
    claim, workload = witness.claim, witness.workload
    if isinstance(claim, OfProperty):
        workload = claim.asking(workload)
    elif not isinstance(claim, Mountable):
        raise UsageError(
            f"a case for xfstests checks what a call promises, and this witness shows {claim.title}",
            hint="bob replay --keep writes its crash image, with a script that mounts it",
        )
    if workload.at is not At.END:
        raise UsageError(
            "the witness may crash at any time, and xfstests has no helper for that: _log_writes_replay_log_range"
            " replays a log to an entry, but a write has another entry in each recording, and none can be left out",
            hint="bob witness export --dm-log writes a log that replay-log steps through",
        )
    return workload


def _remarks(witness: Witness, lost: CacheLoss) -> Iterator[str]:
    yield _SAID[lost]
    flushes = [event.seconds for event in witness.timeline.events if isinstance(event, FlushEvent)]
    gone = _lost(witness.timeline)
    if any(one.seconds <= flush and (one.end is None or flush < one.end) for one in gone for flush in flushes):
        yield _LATE
    if witness.configuration.fs.check:
        yield f"{_CHECKED} `{shlex.join(witness.configuration.fs.check)}`."


_SAID = {
    CacheLoss.NOTHING: ("In bob's crash state the disk has everything that it was sent. dm-flakey makes such a state."),
    CacheLoss.ALL: (
        "The violation shows if the disk loses everything that was not flushed. dm-flakey loses nothing that was"
        " sent, so the case replays a log of dm-log-writes up to the crash."
    ),
    CacheLoss.SOME: (
        "In bob's crash state the disk has lost some of what was not flushed, and kept some. Neither dm-flakey nor a"
        " log of dm-log-writes makes such a state. The case loses everything that was not flushed, so it may pass."
    ),
}
_LATE = (
    "A flush was sent while a lost write was under way. On a disk that completes each write before the flush comes,"
    " the case passes."
)
_CHECKED = "The case mounts right after the crash. bob first ran what a boot runs before the mount:"


# The checks

_OF_DATA = frozenset(
    {
        *(ChangeKind.OVERWRITE, ChangeKind.APPEND, ChangeKind.TRUNCATE_DOWN, ChangeKind.TRUNCATE_UP),
        *(ChangeKind.FALLOCATE, ChangeKind.ZERO),
    }
)
_OF_ALL_DATA = (Call.FSYNC_FILE, Call.FDATASYNC_FILE, Call.SYNC, Call.SYNCFS)
"""The calls that make all data of their file durable, whichever operation wrote it."""


def _checks(witness: Witness, workload: Workload) -> Iterator[Printer]:
    """Yield the lines that print parts of the tree. The case prints them before and after the crash, and compares the
    output. Raises UsageError if bob cannot tell which parts of the tree a correct file system would keep in this
    crash."""
    claim, history = witness.claim, simulate(workload)[0]
    if not isinstance(claim, OfProperty):
        return  # the case only checks that the file system mounts
    if claim.question.beside:
        yield from _untouched(history)
        return
    for number in claim.question.required:
        if makers(history, number) and call_of(history.operations[-1], history, history.steps[-1]) not in _OF_ALL_DATA:
            raise _unsure(f"operation {number} uses what another operation creates")
        yield from _there(history, number)


def _unsure(why: str) -> UsageError:
    return UsageError(
        f"bob is not sure what xfstests would have to check: {why}", hint="bob witness export --probe can write it"
    )


def _there(history: History, number: int) -> Iterator[Printer]:
    operation, before = history.operations[number - 1], history.steps[number - 1]
    kinds = {change.kind for change in changes(history) if change.number == number}
    for path in _places(history, number):
        later = [n for n in range(number + 1, len(history.operations) + 1) if path in _places(history, n)]
        if later:
            raise _unsure(f"operation {later[0]} changes the name {path} again")
        yield Printer("entry", (path,))
    match operation:
        case ops.Setxattr(path, name) | ops.Removexattr(path, name):
            yield Printer("attribute", _names_of(history, before.names[path]), (name,))
        case ops.Chmod(path):
            yield Printer("status", _names_of(history, before.names[path]), ("%a",))
        case ops.Chown(path):
            yield Printer("status", _names_of(history, before.names[path]), ("%u:%g",))
        case ops.Write(path) | ops.Truncate(path) | ops.Fallocate(path) if kinds & _OF_DATA:
            thing = history.steps[number].names[path]
            call = call_of(history.operations[-1], history, history.steps[-1])
            others = [n for n in range(1, len(history.operations) + 1) if n != number and _has_data(history, n, thing)]
            if others and call not in _OF_ALL_DATA:
                raise _unsure(f"operation {others[0]} changes the same file, and the call does not promise that change")
            yield Printer("content", _names_of(history, thing))


def _places(history: History, number: int) -> tuple[str, ...]:
    before, after = history.steps[number - 1].names, history.steps[number].names
    return tuple(sorted(path for path in {**before, **after} if before.get(path) != after.get(path)))


def _has_data(history: History, number: int, thing: int) -> bool:
    before, after = (history.steps[at].inodes.get(thing) for at in (number - 1, number))
    return after is not None and (before is None or before.content != after.content)


def _names_of(history: History, thing: int) -> tuple[str, ...]:
    """Return the names of a file or directory. ``thing`` is its number in ``history``. The names that it has at the end
    come first, then its earlier names."""
    last = [path for path, identity in history.steps[-1].names.items() if identity == thing]
    if not last:
        raise _unsure("a later operation removes the object")
    return tuple(dict.fromkeys([*sorted(last), *sorted(history.things[thing].names)]))


def _untouched(history: History) -> Iterator[Printer]:
    """Yield the lines that print two parts of the tree: everything that no operation changes, and everything that the
    last operation, an fsync or sync, makes durable."""
    first, last = history.steps[0], history.steps[-1]
    call = history.operations[-1]
    synced = {last.names[call.path]} if isinstance(call, ops.Fsync) else set[int]()
    is_all_synced = isinstance(call, ops.Sync)
    for path, thing in sorted(last.names.items()):
        is_there = all(step.names.get(path) == thing for step in history.steps)
        is_same = is_there and all(step.inodes[thing] == first.inodes[thing] for step in history.steps)
        if path == "/":
            continue
        if is_there or is_all_synced:
            yield Printer("entry", (path,))
        if history.things[thing].kind is FileKind.FILE and (is_same or is_all_synced or thing in synced):
            yield Printer("content", _names_of(history, thing))
            yield Printer("status", _names_of(history, thing), ("%a %u:%g",))


# The script


def _script(
    witness: Witness, workload: Workload, name: str, lost: CacheLoss, checks: Sequence[Printer], remarks: Sequence[str]
) -> str:
    history, setup, performed = simulate(workload)
    for number, operation in enumerate(workload.operations, start=1):
        names = history.steps[number - 1].names
        if isinstance(operation, ops.Rename) and names[operation.old] == names.get(operation.new):
            raise UsageError(
                f"operation {number} renames a file to another name of the same file; mv would remove one of the names",
                hint="bob witness export --probe can write it",
            )
    is_flakey = lost is CacheLoss.NOTHING
    required = [*needs((*workload.setup, *workload.operations)), *_REQUIRED[is_flakey]]
    body = _FLAKEY if is_flakey else _LOGGED
    return "\n".join(
        [
            "#! /bin/bash",
            "# SPDX-License-Identifier: GPL-2.0",
            "#",
            f"# FS QA Test {name}",
            "#",
            *_header(witness, workload, remarks),
            "#",
            ". ./common/preamble",
            "_begin_fstest auto quick log",
            "",
            "_cleanup()",
            "{",
            "\t_cleanup_flakey" if is_flakey else "\t_log_writes_cleanup",
            "\tcd /",
            "\trm -r -f $tmp.*",
            "}",
            "",
            ". ./common/filter",
            *([". ./common/attr"] if "_require_attrs" in required else []),
            *([". ./common/renameat2"] if any(one.startswith("_require_renameat2") for one in required) else []),
            ". ./common/dmflakey" if is_flakey else ". ./common/dmlogwrites",
            "",
            *dict.fromkeys(required),
            *_options(witness),
            "",
            *function("initial_tree", translated(setup)),
            *function("operations", translated(performed)),
            *looks(checks),
            *body,
            "diff $tmp.before $tmp.after",
            "",
            f'echo "{SILENCE}"',
            "status=0",
            "exit",
            "",
        ]
    )


def _header(witness: Witness, workload: Workload, remarks: Sequence[str]) -> Iterator[str]:
    told = [
        f"bob found it on {witness.configuration.name}, Linux {witness.kernel}: {witness.evidence}",
        "",
        *(f"{number}. {write_one(operation)}" for number, operation in enumerate(workload.operations, start=1)),
        "",
        *remarks,
    ]
    for line in told:
        words = "".join(letter if letter.isprintable() else " " for letter in line)
        for part in wrap(words, 76) or [""]:
            yield f"# {part}".rstrip()


def _options(witness: Witness) -> Iterator[str]:
    made = witness.configuration
    mkfs = " ".join(filter(None, (*_features(made.fs), made.mkfs_options)))  # xfstests take quotes as parts of words
    if mkfs or made.mount_options:
        yield f'[ "$FSTYP" = {made.fs.driver} ] || _notrun "its options belong to {made.fs.driver}"'
    if mkfs:
        yield f'export MKFS_OPTIONS="$MKFS_OPTIONS "{shlex.quote(mkfs)}'
    if made.mount_options:
        yield f'export MOUNT_OPTIONS="$MOUNT_OPTIONS "{shlex.quote("-o " + made.mount_options)}'


def _features(fs: FileSystem) -> Iterator[str]:
    """Yield the mkfs options that turn features of ``fs`` on or off (``-O``). The options are needed because xfstests
    know only the driver of a file system. Without the options, xfstests would make a file system with default
    features."""
    for option, value in pairwise(fs.mkfs):
        if option == "-O":
            yield from (option, value)


_REQUIRED = {
    True: ("_require_scratch", "_require_dm_target flakey"),
    False: ("_require_scratch", "_require_log_writes"),
}
_FLAKEY = (
    "_scratch_mkfs >> $seqres.full 2>&1",
    "_scratch_mount",
    "initial_tree >> $seqres.full",
    "_scratch_unmount",
    "",
    "_init_flakey",
    "if type _mount_flakey > /dev/null 2>&1; then # which later xfstests do not have",
    "\t_mount_flakey",
    "else",
    "\t_scratch_mount",
    "fi",
    "operations >> $seqres.full",
    "_load_flakey_table $FLAKEY_DROP_WRITES",
    "promised > $tmp.before 2>&1",
    "_flakey_drop_and_remount",
    "promised > $tmp.after 2>&1",
)
_LOGGED = (
    f"_scratch_mkfs_sized $(({_MIB} * 1024 * 1024)) >> $seqres.full 2>&1",
    "_scratch_mount",
    "initial_tree >> $seqres.full",
    "_scratch_unmount",
    f"dd if=$SCRATCH_DEV of=$tmp.base bs=1M count={_MIB} conv=sparse >> $seqres.full 2>&1",
    "",
    "_log_writes_init $SCRATCH_DEV",
    "_log_writes_mount",
    "operations >> $seqres.full",
    "_log_writes_mark crash",
    "promised > $tmp.before 2>&1",
    "_log_writes_unmount",
    "_log_writes_remove",
    "",
    "# The disk as it was before the operations, then what was flushed before the mark.",
    "dd if=$tmp.base of=$SCRATCH_DEV bs=1M conv=fsync >> $seqres.full 2>&1",
    "_log_writes_replay_log crash $SCRATCH_DEV",
    "_scratch_mount",
    "promised > $tmp.after 2>&1",
)
