"""Guarantees that programs want: idioms of databases, mail servers, version control (OSDI'14, section 2, Table 3)."""

from __future__ import annotations

from dataclasses import dataclass

from bob.apm.clauses import DIRECTORY_KINDS, NEVERS, Clause, Fill, Never, Ordered, Whole, durable, orders
from bob.apm.export.standing import Guarantee
from bob.apm.model import Model
from bob.claim.property.vocabulary import Call, Unit, What
from bob.workload.kinds import MODELLED_KINDS, ChangeKind, Relation

_ELSEWHERE = (Relation.SAME_DIRECTORY, Relation.OTHER_DIRECTORY)


@dataclass(frozen=True, slots=True)
class Idiom:
    """A guarantee that a program may want. A model answers by ``clauses``; the site by the ``row`` of Table 1, the
    tests of the ``program``, or the clauses. ``id`` is its place on the site (empty: not there)."""

    id: str
    sentence: str
    clauses: tuple[Clause, ...] = ()
    row: str = ""
    program: str = ""
    advice: str = ""


def claims(model: Model) -> tuple[Guarantee, ...]:
    return tuple(
        Guarantee(idiom.sentence, tuple(map(model.finding, idiom.clauses)))
        for _title, _about, group in GROUPS
        for idiom in group
        if idiom.clauses
    )


def _after(call: Call, *things: What) -> tuple[Clause, ...]:
    return durable((call,), things)


_DURABLE = (
    Idiom(
        "fsync-data",
        "After an fsync of a file, its data and its size are there.",
        _after(Call.FSYNC_FILE, What.DATA, What.SIZE),
        advice="This is what fsync is for.",
    ),
    Idiom(
        "fsync-entry",
        "After an fsync of a new file, its name is there.",
        _after(Call.FSYNC_FILE, What.ENTRY),
        advice="POSIX does not promise it. An fsync of the directory is what asks for the name.",
    ),
    Idiom(
        "fsync-names",
        "After a link or a rename and an fsync of the file, the new names are there, and the old ones gone.",
        _after(Call.FSYNC_FILE, What.NAMES),
        advice="To be safe everywhere, fsync the directories, too: the one that got the name and the one that lost it.",
    ),
    Idiom(
        "fsync-directory",
        "After an fsync of a directory, every name in it is there, and every removed one gone.",
        _after(Call.FSYNC_DIRECTORY, What.ENTRIES),
    ),
    Idiom(
        "fsync-new-directory",
        "After an fsync of a new directory, its own name is there.",
        _after(Call.FSYNC_DIRECTORY, What.ENTRY),
    ),
    Idiom(
        "fsync-others",
        "After an fsync of one file, what was written to other files before is there.",
        _after(Call.FSYNC_FILE, What.OTHER_OVERWRITES, What.OTHER_APPENDS),
        advice="Do not build on it: fsync each file that matters.",
    ),
    Idiom(
        "fsync-other-names",
        "After an fsync of one file, every name that was made before is there, and every removed one gone, also "
        "elsewhere.",
        _after(Call.FSYNC_FILE, What.OTHER_NAMES),
    ),
    Idiom(
        "fdatasync-data",
        "After an fdatasync of a file, its data and its size are there.",
        _after(Call.FDATASYNC_FILE, What.DATA, What.SIZE),
    ),
    Idiom("msync-data", "After an msync of a mapping, the data is there.", _after(Call.MSYNC, What.DATA)),
    Idiom(
        "o-sync-data",
        "When a write with O_SYNC has returned, the data and the size are there.",
        _after(Call.O_SYNC, What.DATA, What.SIZE),
    ),
    Idiom(
        "o-dsync-data", "When a write with O_DSYNC has returned, the data is there.", _after(Call.O_DSYNC, What.DATA)
    ),
    Idiom(
        "sync-all",
        "After a sync, all is there that was done before: data, sizes and names.",
        _after(Call.SYNC, What.DATA, What.SIZE, What.ENTRY, What.NAMES),
    ),
    Idiom(
        "syncfs-all",
        "After a syncfs, all is there that was done before: data, sizes and names.",
        _after(Call.SYNCFS, What.DATA, What.SIZE, What.ENTRY, What.NAMES),
    ),
    Idiom(
        "returned-all",
        "A change is there as soon as its system call has returned, without any sync.",
        _after(Call.RETURNED, What.DATA, What.SIZE, What.ENTRY, What.NAMES),
        advice="A program that acknowledges something has to sync first.",
    ),
)
_REPLACE = (
    Idiom(
        "replace-whole",
        "A file that is replaced (a new one is written and renamed over it, without fsync) has its old or its new "
        "contents.",
        (
            Ordered(ChangeKind.APPEND, ChangeKind.RENAME_OVER, Relation.SAME_FILE),
            Whole(ChangeKind.RENAME_OVER, Unit.WHOLE),
        ),
        advice="A program that calls fsync on the new file before the rename need not rely on it.",
    ),
    Idiom(
        "replace-rename",
        "A program replaces a file in this way, without fsync, and says that it is done. The new file is there, and "
        "never a broken one.",
        program="replace-rename",
    ),
    Idiom(
        "replace-fsync-rename",
        "A program replaces a file with an fsync of the new one before the rename, and says that it is done. The new "
        "file is there, and never a broken one.",
        program="replace-fsync-rename",
        advice="An fsync of the file comes before the rename here, so it cannot ask for that.",
    ),
    Idiom(
        "replace-fsync-rename-fsync",
        "A program replaces a file with an fsync of the new one before the rename and one of the directory after it, "
        "and says that it is done. The new file is there, and never a broken one.",
        program="replace-fsync-rename-fsync",
        advice="This asks for all of it: the contents, the name, and the one before the other.",
    ),
    Idiom(
        "replace-truncate",
        "A program truncates a file, writes it again in place, syncs it, and says that it is done. The new contents "
        "are there, and never a broken file.",
        program="replace-truncate",
    ),
)
_WHOLE = (
    Idiom(
        "overwrite-sector",
        "An overwrite inside one sector (512 bytes) is all there or not at all.",
        row="single-sector-overwrite",
        advice="The disk sees to it: in the model of the disk a sector is written whole.",
    ),
    Idiom(
        "overwrite-block",
        "An overwrite inside one block (4 KiB) is all there or not at all.",
        (Whole(ChangeKind.OVERWRITE, Unit.BLOCK),),
        row="single-block-overwrite",
    ),
    Idiom("", "An overwrite is all there or not at all.", (Whole(ChangeKind.OVERWRITE, Unit.WHOLE),)),
    Idiom(
        "append-sector",
        "An append inside one sector is all there or not at all, size and data together.",
        row="single-sector-append",
    ),
    Idiom("append-block", "An append inside one block is all there or not at all.", row="single-block-append"),
    Idiom(
        "append-blocks",
        "A write over several blocks is all there or not at all.",
        row="multi-block-append",
        advice="Give each record a length and a checksum.",
    ),
    Idiom("", "An append is all there or not at all.", (Whole(ChangeKind.APPEND, Unit.WHOLE),)),
    Idiom(
        "append-prefix",
        "Of an append over several blocks a beginning is there, and nothing behind a gap.",
        row="multi-block-prefix-append",
    ),
    Idiom(
        "append-zeros",
        "Where a file has grown, the appended data is there, and never zeros in its place.",
        (Never(ChangeKind.APPEND, Fill.ZEROS),),
    ),
    Idiom(
        "append-stale",
        "Where a file has grown, it never shows what others had on the disk before.",
        (Never(ChangeKind.APPEND, Fill.STALE),),
    ),
    Idiom(
        "",
        "No file ever shows old contents of the disk.",
        tuple(clause for clause in NEVERS if clause.fill is Fill.STALE),
    ),
    Idiom(
        "directory-whole",
        "Rename, link, unlink, mkdir and create are each all there or not at all.",
        tuple(Whole(kind, Unit.WHOLE) for kind in DIRECTORY_KINDS),
        row="directory-op",
    ),
    Idiom("collateral", "What no operation was to change is left as it was.", row="collateral"),
)
_ORDER = (
    Idiom(
        "append-append",
        "An append to a file comes before a later append to the same file.",
        (Ordered(ChangeKind.APPEND, ChangeKind.APPEND, Relation.SAME_FILE),),
        row="append-append-same-file",
    ),
    Idiom("append-any", "An append comes before whatever is done later.", row="append-any"),
    Idiom("overwrite-any", "An overwrite comes before whatever is done later.", row="overwrite-any"),
    Idiom(
        "directory-any",
        "A rename, link, unlink, mkdir or create comes before whatever is done later.",
        row="directory-op-any",
    ),
    Idiom(
        "",
        "An append (to a log, say) comes before a later overwrite of another file.",
        orders((ChangeKind.APPEND,), (ChangeKind.OVERWRITE,), _ELSEWHERE),
    ),
    Idiom(
        "",
        "An overwrite comes before the later removal of another file (a rollback journal, say).",
        orders((ChangeKind.OVERWRITE,), (ChangeKind.UNLINK,), _ELSEWHERE),
    ),
    Idiom(
        "",
        "Names are made, moved and removed on the disk in the order in which the program did it.",
        orders(DIRECTORY_KINDS, DIRECTORY_KINDS),
    ),
    Idiom("", "Everything persists in the order in which the program did it.", orders(MODELLED_KINDS, MODELLED_KINDS)),
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
        "Whenever there is anything of the later one after a crash, the earlier one is there as a whole.",
        _ORDER,
    ),
)  # title, introduction, idioms
