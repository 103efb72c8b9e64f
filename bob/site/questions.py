"""The questions of the page "Can I rely on ...?", in groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bob.apm.clauses import Durable, Fill, Never, Ordered, Whole
from bob.claim.property.vocabulary import Call, Unit, What
from bob.site.rely import Answer, Question, clauses, program, row
from bob.site.results import Results
from bob.workload.kinds import ChangeKind, Relation


def _after(call: Call, *things: What) -> Callable[[Results], Iterator[Answer]]:
    return clauses(*(Durable(call, what) for what in things))


_DURABLE = (
    Question(
        "fsync-data",
        "After fsync of a file, are its data and its size there?",
        _after(Call.FSYNC_FILE, What.DATA, What.SIZE),
        "This is what fsync is for.",
    ),
    Question(
        "fsync-entry",
        "After fsync of a new file, is its name there?",
        _after(Call.FSYNC_FILE, What.ENTRY),
        "POSIX does not promise it. An fsync of the directory is what asks for the name.",
    ),
    Question(
        "fsync-names",
        "After a link or a rename and an fsync of the file, are the new names there, and the old ones gone?",
        _after(Call.FSYNC_FILE, What.NAMES),
        "To be safe everywhere, fsync the directories, too: the one that got the name and the one that lost it.",
    ),
    Question(
        "fsync-directory",
        "After fsync of a directory, is every name in it there, and every removed one gone?",
        _after(Call.FSYNC_DIRECTORY, What.ENTRIES),
    ),
    Question(
        "fsync-new-directory",
        "After fsync of a new directory, is its own name there?",
        _after(Call.FSYNC_DIRECTORY, What.ENTRY),
    ),
    Question(
        "fsync-others",
        "After fsync of one file, is there what was written to other files before?",
        _after(Call.FSYNC_FILE, What.OTHER_OVERWRITES, What.OTHER_APPENDS),
        "Do not build on it: fsync each file that matters.",
    ),
    Question(
        "fsync-other-names",
        "After fsync of one file, is there every name that was made, moved or removed before, also elsewhere?",
        _after(Call.FSYNC_FILE, What.OTHER_NAMES),
    ),
    Question(
        "fdatasync-data",
        "After fdatasync of a file, are its data and its size there?",
        _after(Call.FDATASYNC_FILE, What.DATA, What.SIZE),
    ),
    Question("msync-data", "After msync of a mapping, is the data there?", _after(Call.MSYNC, What.DATA)),
    Question(
        "o-sync-data",
        "When a write with O_SYNC has returned, are the data and the size there?",
        _after(Call.O_SYNC, What.DATA, What.SIZE),
    ),
    Question(
        "o-dsync-data", "When a write with O_DSYNC has returned, is the data there?", _after(Call.O_DSYNC, What.DATA)
    ),
    Question(
        "sync-all",
        "After sync, is all there that was done before: data, sizes and names?",
        _after(Call.SYNC, What.DATA, What.SIZE, What.ENTRY, What.NAMES),
    ),
    Question(
        "syncfs-all",
        "After syncfs, is all there that was done before: data, sizes and names?",
        _after(Call.SYNCFS, What.DATA, What.SIZE, What.ENTRY, What.NAMES),
    ),
    Question(
        "returned-all",
        "Is a change there as soon as its system call has returned, without any sync?",
        _after(Call.RETURNED, What.DATA, What.SIZE, What.ENTRY, What.NAMES),
        "A program that acknowledges something has to sync first.",
    ),
)
_REPLACE = (
    Question(
        "replace-whole",
        "A file is replaced: a new one is written and renamed over it, without fsync. Are its old or its new contents "
        "there?",
        clauses(
            Ordered(ChangeKind.APPEND, ChangeKind.RENAME_OVER, Relation.SAME_FILE),
            Whole(ChangeKind.RENAME_OVER, Unit.WHOLE),
        ),
        "A program that calls fsync on the new file before the rename need not rely on it.",
    ),
    Question(
        "replace-rename",
        "A program replaces a file in this way, without fsync, and says that it is done. Is the new file there, and "
        "never a broken one?",
        program("replace-rename"),
    ),
    Question(
        "replace-fsync-rename",
        "A program replaces a file with an fsync of the new one before the rename, and says that it is done. Is the "
        "new file there, and never a broken one?",
        program("replace-fsync-rename"),
        "An fsync of the file comes before the rename here, so it cannot ask for that.",
    ),
    Question(
        "replace-fsync-rename-fsync",
        "A program replaces a file with an fsync of the new one before the rename and one of the directory after it, "
        "and says that it is done. Is the new file there, and never a broken one?",
        program("replace-fsync-rename-fsync"),
        "This asks for all of it: the contents, the name, and the one before the other.",
    ),
    Question(
        "replace-truncate",
        "A program truncates a file, writes it again in place, syncs it, and says that it is done. Are the new "
        "contents there, and never a broken file?",
        program("replace-truncate"),
    ),
)
_WHOLE = (
    Question(
        "overwrite-sector",
        "Is an overwrite inside one sector (512 bytes) all there or not at all?",
        row("single-sector-overwrite"),
        "The disk sees to it: in the model of the disk a sector is written whole.",
    ),
    Question(
        "overwrite-block",
        "Is an overwrite inside one block (4 KiB) all there or not at all?",
        row("single-block-overwrite"),
    ),
    Question(
        "append-sector",
        "Is an append inside one sector all there or not at all, size and data together?",
        row("single-sector-append"),
    ),
    Question("append-block", "Is an append inside one block all there or not at all?", row("single-block-append")),
    Question(
        "append-blocks",
        "Is a write over several blocks all there or not at all?",
        row("multi-block-append"),
        "Give each record a length and a checksum.",
    ),
    Question(
        "append-prefix",
        "Is there of an append over several blocks a beginning, and nothing behind a gap?",
        row("multi-block-prefix-append"),
    ),
    Question(
        "append-zeros",
        "Where a file has grown, is the appended data there, and never zeros in its place?",
        clauses(Never(ChangeKind.APPEND, Fill.ZEROS)),
    ),
    Question(
        "append-stale",
        "Where a file has grown, does it never show what others had on the disk before?",
        clauses(Never(ChangeKind.APPEND, Fill.STALE)),
    ),
    Question(
        "directory-whole",
        "Are rename, link, unlink, mkdir and create each all there or not at all?",
        row("directory-op"),
    ),
    Question("collateral", "Is what no operation was to change left as it was?", row("collateral")),
)
_ORDER = (
    Question(
        "append-append",
        "Does an append to a file come before a later append to the same file?",
        row("append-append-same-file"),
    ),
    Question("append-any", "Does an append come before whatever is done later?", row("append-any")),
    Question("overwrite-any", "Does an overwrite come before whatever is done later?", row("overwrite-any")),
    Question(
        "directory-any",
        "Does a rename, link, unlink, mkdir or create come before whatever is done later?",
        row("directory-op-any"),
    ),
)
GROUPS = (
    (
        "What is there when a call has returned",
        "The crash comes after the call. The table of durability and the models say what of before is there then.",
        _DURABLE,
    ),
    (
        "Replacing a file",
        "What most programs do that save something. Whole programs were tested with a checker of their own.",
        _REPLACE,
    ),
    ("One change: all or nothing", "A crash may come at any time. Nothing is synced, or something else.", _WHOLE),
    (
        "One change before another, without a sync in between",
        "Whenever there is anything of the later one after a crash, is the earlier one there as a whole?",
        _ORDER,
    ),
)
"""Title, what the group is about, questions."""
