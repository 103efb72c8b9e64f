"""Programs with a planted bug, each with its mended twin: what `bob app` must find, and what it must not accuse.

Each is shell, so that a reader sees the whole protocol: what is there (``setup``), what the program does, once wrong
and once right, and what its checker asks. ``matters`` are the file systems on which the bug must show; by a model it
must be named, too (:func:`fault`). Those in C are in ``planted_in_c.py``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from bob.answer.answer import ReliedOn
from bob.answer.result import SubjectResult
from bob.apm.builtin import builtin
from bob.apm.clauses import DIRECTORY_KINDS, Whole
from bob.apm.model import Model
from bob.claim.verdict import Verdict
from bob.program.folder import named
from bob.program.program import Program, ProgramFile
from tests.apm.cases import LETTER_OF_POSIX, model

EVERYWHERE = ("ext4", "xfs", "btrfs")
LIBRARY = """#!/bin/sh
told() { grep -q "$1" "$TOLD"; }
lost() { echo "$1"; exit 10; }
corrupt() { echo "$1"; exit 11; }
cd "$1" && TOLD=$2
"""
WHOLE_OR_OLD = """
f=$(cat f) || corrupt "f cannot be read"
[ "$f" = new ] || [ "$f" = old ] || corrupt "f is neither old nor new: '$f'"
told saved && [ "$f" = old ] && lost "saved was told, and f is old"
exit 0
"""
TWO_BLOCKS = """
case $(tr -d '\\0' < f | cut -c1 | tr -d '\\n')$(tail -c 1 f) in
    aa | bb) ;;
    *) corrupt "f is a mixture" ;;
esac
[ "$(wc -c < f)" = 8192 ] || corrupt "f has another size"
told saved && [ "$(tail -c 1 f)" = a ] && lost "saved was told, and f is old"
exit 0
"""


@dataclass(frozen=True)
class Flaw:
    """What `bob app --model` must say of a planted program: ALICE's ``kind`` (docs/apps.md), and the words of the
    calls, without the program's name: the one that must be there ``first`` (or whole, or durable), and the one that is
    there too early, ``then``."""

    kind: str
    first: str
    then: str = ""


@dataclass(frozen=True)
class Planted:
    """A program with a bug, and its mended twin. By the ``model`` the bug is the ``flaw``; ``also`` are the other kinds
    that it may be told by."""

    name: str
    setup: str
    wrong: str
    right: str
    check: str
    flaw: Flaw
    matters: tuple[str, ...] = EVERYWHERE
    also: tuple[str, ...] = ()
    model: str = "posix"

    def program(self, *, mended: bool) -> Program:
        """One of the two."""
        workload = ProgramFile(
            "workload", f"#!/bin/sh\nset -e\n{self.right if mended else self.wrong}\n".encode(), True
        )
        return program_of(self.name, self.setup, (workload,), LIBRARY + self.check, mended=mended)

    def line(self, _mark: str) -> str:
        """A shell's calls are those of the programs that it starts: there is no line to be named."""
        return ""


@dataclass(frozen=True)
class Shipped:
    """Two programs that bob ships: one with a flaw, and one that does the same without."""

    planted: str
    mended: str
    flaw: Flaw
    also: tuple[str, ...] = ()
    model: str = "posix"

    @property
    def name(self) -> str:
        """That of the one with the flaw."""
        return self.planted

    def program(self, *, mended: bool) -> Program:
        """One of the two."""
        return named(self.mended if mended else self.planted)

    def line(self, _mark: str) -> str:
        """Their binaries have no line numbers."""
        return ""


def program_of(name: str, setup: str, workload: tuple[ProgramFile, ...], check: str, *, mended: bool) -> Program:
    """A planted program of shell scripts, but for the ``workload``."""
    scripts = {"setup": f"#!/bin/sh\nset -e\n{setup}\n", "check": check}
    files = (*workload, *(ProgramFile(path, text.encode(), True) for path, text in scripts.items()))
    return Program(f"{name}-{'mended' if mended else 'planted'}", name, files)


class Pair(Protocol):
    """A planted program and its mended twin."""

    @property
    def name(self) -> str:
        """That of both."""

    @property
    def flaw(self) -> Flaw:
        """What the planted one has."""

    @property
    def also(self) -> tuple[str, ...]:
        """Other kinds that the flaw may be told by."""

    @property
    def model(self) -> str:
        """By which the planted one is wrong, and the twin is right."""

    def program(self, *, mended: bool) -> Program:
        """One of the two."""

    def line(self, mark: str) -> str:
        """Where the call is that is ``first`` or ``then``; empty where no line can be named."""


def model_of(pair: Pair) -> Model:
    """By which the planted one is wrong, and the twin is right."""
    loose = (one for one in LETTER_OF_POSIX if not (isinstance(one, Whole) and one.kind in DIRECTORY_KINDS))
    mine = {"posix": LETTER_OF_POSIX, "loose-names": frozenset(loose)}
    return model(mine[pair.model], pair.model) if pair.model in mine else builtin(pair.model)


def fault(pair: Pair, found: SubjectResult, *, mended: bool) -> str:
    """What is wrong with the answer of the model for one of the two; empty where it is right: the flaw is named by its
    kind, its calls and their lines, nothing of another kind is, and the twin is not accused."""
    if mended:
        return "" if found.answer.verdict is Verdict.HOLDS and not found.answer.ways else "the twin is not safe"
    told = [relied for one in found.answer.ways for relied in one.relied_on]
    if not any(_names(pair, relied) for relied in told):
        return "the flaw is not named"
    more = {relied.kind or relied.explanation.reliance.value for relied in told} - {pair.flaw.kind, *pair.also}
    return f"named, too: {', '.join(sorted(more))}" if more else ""


def _names(pair: Pair, relied: ReliedOn) -> bool:
    def has(numbers: Collection[int], words: str, mark: str) -> bool:
        if not words:
            return not numbers
        said = [call.words for call in relied.calls if call.number in numbers]
        where = f"in {pair.line(mark)})" if pair.line(mark) else ""
        return any(f": {words}" in one and where in one for one in said)

    explanation, flaw = relied.explanation, pair.flaw
    if relied.kind.startswith("atomicity of"):  # one call: it is both
        return relied.kind == flaw.kind and has(explanation.missing, flaw.first, "first")
    first, then = has(explanation.missing, flaw.first, "first"), has(explanation.there, flaw.then, "then")
    return relied.kind == flaw.kind and first and then


def fill(letter: str, name: str, blocks: int = 2, options: str = "") -> str:
    """A shell command that fills a file with a letter."""
    size = blocks * 4096
    written = f"dd of={name} bs={size} iflag=fullblock {options} status=none"
    return f"head -c {size} /dev/zero | tr '\\0' {letter} | {written}"


PLANTED = (
    Planted(
        "no-fsync",
        "true",
        "echo new > f; echo saved",
        "echo new > f; sync f; sync .; echo saved",
        'told saved || exit 0\n[ "$(cat f)" = new ] || lost "saved was told, and f is not there"',
        Flaw("durability: other", "append 4 bytes at 0 of /f"),
    ),
    Planted(
        "fsync-of-the-wrong-file",
        "echo old > f; echo old > g",
        # ext4 commits all at the fsync of an inode that it has read since the last commit: so g is read before.
        "cat f g > /tmp/read; echo new > f.tmp; sync f; mv f.tmp f; sync g; echo saved",
        "echo new > f.tmp; sync f.tmp; mv f.tmp f; sync .; echo saved",
        WHOLE_OR_OLD,
        Flaw("ordering: safe rename", "append 4 bytes at 0 of /f.tmp", "rename /f.tmp to /f"),
        ("ext4", "xfs"),
        ("durability: other",),
    ),
    Planted(
        "no-fsync-of-the-directory",
        "echo old > f",
        "echo new > f.tmp; sync f.tmp; mv f.tmp f; echo saved",
        "echo new > f.tmp; sync f.tmp; mv f.tmp f; sync .; echo saved",
        WHOLE_OR_OLD,
        Flaw("durability: other", "rename /f.tmp to /f"),
    ),
    Planted(
        "rename-before-fsync",
        "true",
        "echo new > tmp; mv tmp f; sync .; sync f; echo saved",
        "echo new > tmp; sync tmp; mv tmp f; sync .; echo saved",
        '[ ! -e f ] || [ "$(cat f)" = new ] || corrupt "f is there, and is not new"\n'
        'told saved || exit 0\n[ -e f ] || lost "saved was told, and f is not there"',
        Flaw("ordering: safe rename", "append 4 bytes at 0 of /tmp", "rename /tmp to /f"),
    ),
    Planted(
        "acknowledged-before-fsync",
        "echo old > f",
        "echo new > f.tmp; sync f.tmp; mv f.tmp f; echo saved; sync .",
        "echo new > f.tmp; sync f.tmp; mv f.tmp f; sync .; echo saved",
        WHOLE_OR_OLD,
        Flaw("durability: other", "rename /f.tmp to /f"),
    ),
    Planted(
        "two-blocks-in-place",
        fill("a", "f"),
        fill("b", "f", options="conv=notrunc,fsync") + "; echo saved",
        fill("b", "tmp", options="conv=fsync") + "; mv tmp f; sync .; echo saved",
        TWO_BLOCKS,
        Flaw("atomicity of an overwrite", "overwrite 8192 bytes at 0 of /f"),
        ("ext4", "xfs"),
        model="btrfs",
    ),
    Planted(
        "index-before-data",
        "true",
        "echo data > data; echo index > index; sync index; sync .; sync data; echo saved",
        "echo data > data; sync data; sync .; echo index > index; sync index; sync .; echo saved",
        '[ ! -s index ] || [ "$(cat data)" = data ] || corrupt "index is there, and data is not"\n'
        'told saved || exit 0\n[ "$(cat index)" = index ] || lost "saved was told, and index is not there"',
        Flaw("ordering: other", "append 5 bytes at 0 of /data", "append 6 bytes at 0 of /index"),
    ),
    Planted(
        "truncated-in-place",
        "echo old > f",
        "exec 3> f; sleep 40; echo new >&3; sync f; echo saved",  # whoever writes at once is saved by luck
        "echo new > f.tmp; sync f.tmp; mv f.tmp f; sync .; echo saved",
        WHOLE_OR_OLD,
        Flaw("atomicity across calls", "append 4 bytes at 0 of /f", "open /f with O_TRUNC"),
    ),
    Planted(
        "moved-by-copy",
        "echo data > a",
        "cp a b; rm a; sync .; echo saved",
        "cp a b; sync b; sync .; rm a; sync .; echo saved",
        '[ "$(cat a)" = data ] || [ "$(cat b)" = data ] || corrupt "neither a nor b has the data"\n'
        'told saved || exit 0\n[ ! -e a ] || lost "saved was told, and a is there"',
        Flaw("ordering: other", "append 5 bytes at 0 of /b", "unlinkat /a"),
        ("ext4", "btrfs"),  # on xfs cp makes a reflink, and that is in the log
        ("durability: other",),
    ),
    Planted(
        "link-without-fsync",
        "echo data > a",
        "ln a b; echo saved",
        "ln a b; sync .; echo saved",
        'told saved || exit 0\n[ "$(cat b)" = data ] || lost "saved was told, and b is not there"',
        Flaw("durability: other", "link /a as /b"),
    ),
    Planted(
        "header-before-record",
        "printf 0 > header; : > log; sync",
        "echo record >> log; printf 1 > h.tmp; sync h.tmp; mv h.tmp header; sync .; sync log; echo saved",
        "echo record >> log; sync log; printf 1 > h.tmp; sync h.tmp; mv h.tmp header; sync .; echo saved",
        'h=$(cat header)\n[ "$h" = 0 ] || [ "$h" = 1 ] || corrupt "the header is \'$h\'"\n'
        '[ "$h" = 0 ] || [ "$(cat log)" = record ] || corrupt "the header counts a record that is not there"\n'
        'told saved && [ "$h" = 0 ] && lost "saved was told, and the header counts nothing"\nexit 0',
        Flaw("ordering: other", "append 7 bytes at 0 of /log", "rename /h.tmp to /header"),
    ),
    Planted(
        "sqlite-without-fsync",
        """python3 -c "
import sqlite3
db = sqlite3.connect('db')
db.execute('CREATE TABLE t (n INTEGER)')
db.commit()
" """,
        """python3 -c "
import sqlite3
db = sqlite3.connect('db', isolation_level=None)
db.execute('PRAGMA synchronous=OFF')
db.execute('INSERT INTO t VALUES (1)')
print('saved', flush=True)
" """,
        """python3 -c "
import sqlite3
db = sqlite3.connect('db', isolation_level=None)
db.execute('PRAGMA synchronous=EXTRA')
db.execute('INSERT INTO t VALUES (1)')
print('saved', flush=True)
" """,
        """python3 - <<'END' || exit 11
import sqlite3, sys
try:
    rows = sqlite3.connect('db').execute('SELECT n FROM t').fetchall()
except sqlite3.DatabaseError as error:
    sys.exit(f'cannot open: {error}')
open('/tmp/rows', 'w').write(str(len(rows)))
END
told saved && [ "$(cat /tmp/rows)" = 0 ] && lost "saved was told, and the row is not there"
exit 0
""",
        Flaw("durability: other", "overwrite 4096 bytes at 4096 of /db"),
        model="ext3-j",
    ),
)

SHIPPED = (
    Shipped(
        "replace-rename",
        "replace-fsync-rename-fsync",
        Flaw("ordering: safe rename", "append", "rename /f.tmp to /f"),
        ("durability: other",),
    ),
    Shipped(
        "sqlite-rollback",
        "sqlite-rollback-extra",
        Flaw("durability: other", "unlink /db-journal"),
        model="ext4-o",
    ),
)
