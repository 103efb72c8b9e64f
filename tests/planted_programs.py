"""Programs with a planted bug, each with its mended twin: what `bob app` must find, and what it must not accuse.

Each is shell, so that a reader sees the whole protocol: what is there (``setup``), what the program does, once wrong
and once right, and what its checker asks. ``matters`` are the file systems on which the bug must show.
"""

from __future__ import annotations

from dataclasses import dataclass

from bob.program.program import Program, ProgramFile

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
class Planted:
    """A program with a bug, and its mended twin."""

    name: str
    setup: str
    wrong: str
    right: str
    check: str
    matters: tuple[str, ...] = EVERYWHERE

    def program(self, *, mended: bool) -> Program:
        """One of the two."""
        scripts = {
            "setup": f"#!/bin/sh\nset -e\n{self.setup}\n",
            "workload": f"#!/bin/sh\nset -e\n{self.right if mended else self.wrong}\n",
            "check": LIBRARY + self.check,
        }
        files = tuple(ProgramFile(name, text.encode(), True) for name, text in scripts.items())
        return Program(f"{self.name}-{'mended' if mended else 'planted'}", self.name, files)


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
    ),
    Planted(
        "fsync-of-the-wrong-file",
        "echo old > f; echo old > g",
        # ext4 commits all at the fsync of an inode that it has read since the last commit: so g is read before.
        "cat f g > /tmp/read; echo new > f.tmp; sync f; mv f.tmp f; sync g; echo saved",
        "echo new > f.tmp; sync f.tmp; mv f.tmp f; sync .; echo saved",
        WHOLE_OR_OLD,
        ("ext4", "xfs"),
    ),
    Planted(
        "no-fsync-of-the-directory",
        "echo old > f",
        "echo new > f.tmp; sync f.tmp; mv f.tmp f; echo saved",
        "echo new > f.tmp; sync f.tmp; mv f.tmp f; sync .; echo saved",
        WHOLE_OR_OLD,
    ),
    Planted(
        "rename-before-fsync",
        "true",
        "echo new > tmp; mv tmp f; sync .; sync f; echo saved",
        "echo new > tmp; sync tmp; mv tmp f; sync .; echo saved",
        '[ ! -e f ] || [ "$(cat f)" = new ] || corrupt "f is there, and is not new"\n'
        'told saved || exit 0\n[ -e f ] || lost "saved was told, and f is not there"',
    ),
    Planted(
        "acknowledged-before-fsync",
        "echo old > f",
        "echo new > f.tmp; sync f.tmp; mv f.tmp f; echo saved; sync .",
        "echo new > f.tmp; sync f.tmp; mv f.tmp f; sync .; echo saved",
        WHOLE_OR_OLD,
    ),
    Planted(
        "two-blocks-in-place",
        fill("a", "f"),
        fill("b", "f", options="conv=notrunc,fsync") + "; echo saved",
        fill("b", "tmp", options="conv=fsync") + "; mv tmp f; sync .; echo saved",
        TWO_BLOCKS,
        ("ext4", "xfs"),
    ),
    Planted(
        "index-before-data",
        "true",
        "echo data > data; echo index > index; sync index; sync .; sync data; echo saved",
        "echo data > data; sync data; sync .; echo index > index; sync index; sync .; echo saved",
        '[ ! -s index ] || [ "$(cat data)" = data ] || corrupt "index is there, and data is not"\n'
        'told saved || exit 0\n[ "$(cat index)" = index ] || lost "saved was told, and index is not there"',
    ),
    Planted(
        "truncated-in-place",
        "echo old > f",
        "exec 3> f; sleep 40; echo new >&3; sync f; echo saved",  # whoever writes at once is saved by luck
        "echo new > f.tmp; sync f.tmp; mv f.tmp f; sync .; echo saved",
        WHOLE_OR_OLD,
    ),
    Planted(
        "moved-by-copy",
        "echo data > a",
        "cp a b; rm a; sync .; echo saved",
        "cp a b; sync b; sync .; rm a; sync .; echo saved",
        '[ "$(cat a)" = data ] || [ "$(cat b)" = data ] || corrupt "neither a nor b has the data"\n'
        'told saved || exit 0\n[ ! -e a ] || lost "saved was told, and a is there"',
        ("ext4", "btrfs"),  # on xfs cp makes a reflink, and that is in the log
    ),
    Planted(
        "link-without-fsync",
        "echo data > a",
        "ln a b; echo saved",
        "ln a b; sync .; echo saved",
        'told saved || exit 0\n[ "$(cat b)" = data ] || lost "saved was told, and b is not there"',
    ),
    Planted(
        "header-before-record",
        "printf 0 > header; : > log; sync",
        "echo record >> log; printf 1 > h.tmp; sync h.tmp; mv h.tmp header; sync .; sync log; echo saved",
        "echo record >> log; sync log; printf 1 > h.tmp; sync h.tmp; mv h.tmp header; sync .; echo saved",
        'h=$(cat header)\n[ "$h" = 0 ] || [ "$h" = 1 ] || corrupt "the header is \'$h\'"\n'
        '[ "$h" = 0 ] || [ "$(cat log)" = record ] || corrupt "the header counts a record that is not there"\n'
        'told saved && [ "$h" = 0 ] && lost "saved was told, and the header counts nothing"\nexit 0',
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
    ),
)
