"""Planted programs in C: their binaries have symbols and line numbers, so `bob app` can name the lines of the flaw.

Each is the body of a program, once wrong and once right. In the wrong one, the lines that `bob app` must name end with
the comment ``first`` (must be there first, or whole, or durable) or ``then``.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bob.program.program import Program, ProgramFile
from planted_programs import LIBRARY, Flaw, program_of

PRELUDE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char page[8192];

static int fill(int letter) {
    memset(page, letter, sizeof page);
    return 0;
}

static void sync_name(const char *name) {
    int f = open(name, O_RDONLY);
    fsync(f);
    close(f);
}

static void tell(const char *text) {
    if (write(1, text, strlen(text)) < 0) _exit(1);
}
"""


@dataclass(frozen=True)
class PlantedInC:
    """A program in C with a flaw, and its mended twin. ``flaw`` has the words of the calls; their lines are marked."""

    name: str
    setup: str
    wrong: str
    right: str
    check: str
    flaw: Flaw
    also: tuple[str, ...] = ()
    model: str = "posix"

    def source(self, *, mended: bool) -> str:
        """Its text."""
        return f"{PRELUDE}\n{(self.right if mended else self.wrong).strip()}\n"

    def program(self, *, mended: bool) -> Program:
        """One of the two, compiled."""
        text = self.source(mended=mended)
        files = (ProgramFile("workload", compiled(text), True), ProgramFile("workload.c", text.encode(), False))
        return program_of(self.name, self.setup, files, LIBRARY + self.check, mended=mended)

    def line(self, mark: str) -> str:
        """Where the wrong one has the line that is marked so: ``workload.c:12``; empty where no line is."""
        marked = re.compile(rf"/\* {mark} \*/$")
        lines = enumerate(self.source(mended=False).splitlines(), start=1)
        found = [number for number, text in lines if marked.search(text)]
        assert len(found) <= 1, self.name
        return f"workload.c:{found[0]}" if found else ""


@cache
def compiled(text: str, *more: str) -> bytes:
    """The binary of a C program, with symbols and line numbers; ``more`` are words for the compiler."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "workload.c"
        source.write_text(text)
        warnings = ["-Wall", "-Werror", "-Wno-unused", "-Wno-unused-result"]
        words = ["cc", "-g", "-O0", *warnings, "-o", "workload", source.name, *more]
        subprocess.run(words, cwd=folder, check=True)
        return (Path(folder) / "workload").read_bytes()


SAVED = "told saved || exit 0\n"
PLANTED_IN_C = (
    PlantedInC(
        "torn-append",
        ": > log; sync",
        """
        static void record(int log) {
            write(log, page, sizeof page);  /* first */
        }

        int main(void) {
            int log = open("log", O_WRONLY | O_APPEND);
            fill('r');
            record(log);
            fsync(log);
            tell("saved\\n");
        }
        """,
        """
        int main(void) {
            int log = open("log.tmp", O_WRONLY | O_CREAT, 0644);
            fill('r');
            write(log, page, sizeof page);
            fsync(log);
            rename("log.tmp", "log");
            sync_name(".");
            tell("saved\\n");
        }
        """,
        """
size=$(wc -c < log) || corrupt "there is no log"
[ "$size" = 0 ] || [ "$size" = 8192 ] || corrupt "half a record: $size bytes"
told saved && [ "$size" = 0 ] && lost "saved was told, and the record is not there"
exit 0
""",
        Flaw("atomicity of an append", "append 8192 bytes at 0 of /log"),
        model="btrfs",
    ),
    PlantedInC(
        "torn-overwrite",
        "printf '%01024d' 0 | tr 0 a > f; sync",
        """
        static void update(int f) {
            pwrite(f, page, 1024, 0);  /* first */
        }

        int main(void) {
            int f = open("f", O_WRONLY);
            fill('b');
            update(f);
            fsync(f);
            tell("saved\\n");
        }
        """,
        """
        int main(void) {
            int f = open("f.tmp", O_WRONLY | O_CREAT, 0644);
            fill('b');
            write(f, page, 1024);
            fsync(f);
            rename("f.tmp", "f");
            sync_name(".");
            tell("saved\\n");
        }
        """,
        """
case $(head -c 1 f)$(tail -c 1 f) in
    aa) told saved && lost "saved was told, and f is old" ;;
    bb) ;;
    *) corrupt "f is a mixture" ;;
esac
exit 0
""",
        Flaw("atomicity of an overwrite", "overwrite 1024 bytes at 0 of /f"),
    ),
    PlantedInC(
        "torn-truncate",
        "printf '%01024d' 0 | tr 0 a > f; sync",
        """
        static void empty(int f) {
            ftruncate(f, 0);  /* first */
        }

        int main(void) {
            int f = open("f", O_WRONLY);
            empty(f);
            fsync(f);
            tell("emptied\\n");
        }
        """,
        """
        int main(void) {
            int f = open("f.tmp", O_WRONLY | O_CREAT, 0644);
            fsync(f);
            rename("f.tmp", "f");
            sync_name(".");
            tell("emptied\\n");
        }
        """,
        """
size=$(wc -c < f) || corrupt "there is no f"
[ "$size" = 0 ] || [ "$(tr -d a < f | wc -c)" = 0 ] || corrupt "f has lost some of its letters"
[ "$size" = 0 ] || [ "$size" = 1024 ] || corrupt "f has $size bytes"
told emptied && [ "$size" != 0 ] && lost "emptied was told, and f is full"
exit 0
""",
        Flaw("atomicity of a truncate", "truncate /f to 0 bytes"),
    ),
    PlantedInC(
        "torn-growth",
        "mkdir d; sync",
        """
        int main(void) {
            int f = open("d/f", O_WRONLY | O_CREAT, 0644);
            fsync(f);
            sync_name("d");
            ftruncate(f, 8192);  /* first */
            fsync(f);
            tell("saved\\n");
        }
        """,
        """
        int main(void) {
            int f = open("d/f.tmp", O_WRONLY | O_CREAT, 0644);
            ftruncate(f, 8192);
            fsync(f);
            rename("d/f.tmp", "d/f");
            sync_name("d");
            tell("saved\\n");
        }
        """,
        """
[ -d d ] || corrupt "there is no directory"
size=0; [ ! -e d/f ] || size=$(wc -c < d/f)
[ "$size" = 0 ] || [ "$size" = 8192 ] || corrupt "f has $size bytes"
told saved && [ "$size" = 0 ] && lost "saved was told, and f is not there"
exit 0
""",
        Flaw("atomicity of a truncate", "truncate /d/f to 8192 bytes"),
    ),
    PlantedInC(
        "torn-rename",
        "mkdir a b; echo data > a/f; sync",
        """
        static void move(void) {
            rename("a/f", "b/f");  /* first */
        }

        int main(void) {
            move();
            sync_name("b");
            sync_name("a");
            tell("moved\\n");
        }
        """,
        """
        int main(void) {
            link("a/f", "b/f");
            sync_name("b");
            unlink("a/f");
            sync_name("a");
            tell("moved\\n");
        }
        """,
        """
[ "$(cat a/f b/f 2> /dev/null | head -n 1)" = data ] || corrupt "f is neither in a nor in b"
told moved && [ ! -e b/f ] && lost "moved was told, and b has no f"
exit 0
""",
        Flaw("atomicity of a rename or unlink", "rename /a/f to /b/f"),
        model="loose-names",
    ),
    PlantedInC(
        "two-files-in-step",
        "echo 1 > a; echo 1 > b; sync",
        """
        static void replace(const char *temporary, const char *name) {
            int f = open(temporary, O_WRONLY | O_CREAT, 0644);
            write(f, "2\\n", 2);
            fsync(f);
            close(f);
        }

        int main(void) {
            replace("a.tmp", "a");
            replace("b.tmp", "b");
            sync_name(".");
            rename("a.tmp", "a");  /* then */
            sync_name(".");
            rename("b.tmp", "b");  /* first */
            sync_name(".");
            tell("saved\\n");
        }
        """,
        """
        static void make(const char *name) {
            int f = open(name, O_WRONLY | O_CREAT, 0644);
            write(f, "2\\n", 2);
            fsync(f);
            close(f);
        }

        int main(void) {
            mkdir("new", 0755);
            make("new/a");
            make("new/b");
            sync_name("new");
            symlink("new", "current.tmp");
            sync_name(".");
            rename("current.tmp", "current");
            sync_name(".");
            tell("saved\\n");
        }
        """,
        """
folder=.; [ ! -h current ] || folder=current
a=$(cat $folder/a) && b=$(cat $folder/b) || corrupt "a file is not there"
[ "$a" = "$b" ] || corrupt "a and b are of two versions"
told saved && [ "$a" = 1 ] && lost "saved was told, and all is old"
exit 0
""",
        Flaw("atomicity across calls", "rename /b.tmp to /b", "rename /a.tmp to /a"),
    ),
    PlantedInC(
        "three-blocks-in-step",
        "for n in a b c; do printf 1111 > $n; done; sync",
        """
        static void change(const char *name) {
            int f = open(name, O_WRONLY | O_DSYNC);
            write(f, "2222", 4);
            close(f);
        }

        int main(void) {
            int a = open("a", O_WRONLY), b = open("b", O_WRONLY), c = open("c", O_WRONLY);
            pwrite(a, "2222", 4, 0);  /* then */
            fsync(a);
            pwrite(b, "2222", 4, 0);
            fsync(b);
            pwrite(c, "2222", 4, 0);  /* first */
            fsync(c);
            tell("saved\\n");
        }
        """,
        """
        int main(void) {
            int f = open("all.tmp", O_WRONLY | O_CREAT, 0644);
            write(f, "222222222222", 12);
            fsync(f);
            rename("all.tmp", "all");
            sync_name(".");
            tell("saved\\n");
        }
        """,
        """
[ -e a ] || corrupt "there is no a"
case $(cat all 2> /dev/null || cat a b c) in
    111111111111) told saved && lost "saved was told, and all is old" ;;
    222222222222) ;;
    *) corrupt "a, b and c are not in step" ;;
esac
exit 0
""",
        Flaw("atomicity across calls", "overwrite 4 bytes at 0 of /c", "overwrite 4 bytes at 0 of /a"),
    ),
    PlantedInC(
        "emptied-and-filled",
        "echo old > f; sync",
        """
        int main(void) {
            int f = open("f", O_WRONLY | O_TRUNC);  /* then */
            write(f, "new\\n", 4);  /* first */
            fsync(f);
            tell("saved\\n");
        }
        """,
        """
        int main(void) {
            int f = open("f.tmp", O_WRONLY | O_CREAT, 0644);
            write(f, "new\\n", 4);
            fsync(f);
            rename("f.tmp", "f");
            sync_name(".");
            tell("saved\\n");
        }
        """,
        """
f=$(cat f) || corrupt "f cannot be read"
[ "$f" = new ] || [ "$f" = old ] || corrupt "f is neither old nor new"
told saved && [ "$f" = old ] && lost "saved was told, and f is old"
exit 0
""",
        Flaw("atomicity across calls", "append 4 bytes at 0 of /f", "open /f with O_TRUNC"),
        model="ext4-o",
    ),
    PlantedInC(
        "index-of-an-unsynced-name",
        "mkdir d; : > index; sync",
        """
        static void keep(void) {
            int f = open("d/data", O_WRONLY | O_CREAT, 0644);  /* first */
            write(f, "data\\n", 5);
            fsync(f);
        }

        static void refer(void) {
            int f = open("index", O_WRONLY | O_APPEND);
            write(f, "data\\n", 5);  /* then */
            fsync(f);
        }

        int main(void) {
            keep();
            refer();
        }
        """,
        """
        static void keep(void) {
            int f = open("d/data", O_WRONLY | O_CREAT, 0644);
            write(f, "data\\n", 5);
            fsync(f);
            sync_name("d");
        }

        static void refer(void) {
            int f = open("index", O_WRONLY | O_APPEND);
            write(f, "data\\n", 5);
            fsync(f);
        }

        int main(void) {
            keep();
            refer();
        }
        """,
        """
[ -e index ] || corrupt "there is no index"
[ ! -s index ] || [ -e d/data ] || corrupt "the index has what is not there"
exit 0
""",
        Flaw("ordering: safe file flush", "create /d/data", "append 5 bytes at 0 of /index"),
    ),
    PlantedInC(
        "saved-without-its-name",
        "mkdir d; sync",
        """
        int main(void) {
            int f = open("d/f", O_WRONLY | O_CREAT, 0644);  /* first */
            write(f, "new\\n", 4);
            fsync(f);
            tell("saved\\n");
        }
        """,
        """
        int main(void) {
            int f = open("d/f", O_WRONLY | O_CREAT, 0644);
            write(f, "new\\n", 4);
            fsync(f);
            sync_name("d");
            tell("saved\\n");
        }
        """,
        '[ -d d ] || corrupt "there is no directory"\n'
        + SAVED
        + '[ "$(cat d/f)" = new ] || lost "saved was told, and f is not there"',
        Flaw("durability: safe file flush", "create /d/f"),
    ),
    PlantedInC(
        "saved-in-a-new-directory",
        "mkdir d; sync",
        """
        int main(void) {
            mkdir("d/new", 0755);  /* first */
            int f = open("d/new/f", O_WRONLY | O_CREAT, 0644);
            write(f, "new\\n", 4);
            fsync(f);
            sync_name("d/new");
            tell("saved\\n");
        }
        """,
        """
        int main(void) {
            mkdir("d/new", 0755);
            int f = open("d/new/f", O_WRONLY | O_CREAT, 0644);
            write(f, "new\\n", 4);
            fsync(f);
            sync_name("d/new");
            sync_name("d");
            tell("saved\\n");
        }
        """,
        '[ -d d ] || corrupt "there is no directory"\n'
        + SAVED
        + '[ "$(cat d/new/f)" = new ] || lost "saved was told, and f is not there"',
        Flaw("durability: safe file flush", "mkdir /d/new"),
    ),
    PlantedInC(
        "saved-without-a-sync",
        "printf old > f; sync",
        """
        int main(void) {
            int f = open("f", O_WRONLY);
            pwrite(f, "new", 3, 0);  /* first */
            tell("saved\\n");
        }
        """,
        """
        int main(void) {
            int f = open("f", O_WRONLY);
            pwrite(f, "new", 3, 0);
            fdatasync(f);
            tell("saved\\n");
        }
        """,
        'f=$(cat f) || corrupt "there is no f"\n'
        'told saved && [ "$f" != new ] && lost "saved was told, and f is old"\n'
        "exit 0",
        Flaw("durability: other", "overwrite 3 bytes at 0 of /f"),
    ),
    PlantedInC(
        "published-before-it-is-written",
        "echo old > f; sync",
        """
        static int fresh(void) {
            int f = open("f.tmp", O_WRONLY | O_CREAT, 0644);
            write(f, "new\\n", 4);  /* first */
            return f;
        }

        static void publish(void) {
            rename("f.tmp", "f");  /* then */
        }

        int main(void) {
            fresh();
            publish();
        }
        """,
        """
        static int fresh(void) {
            int f = open("f.tmp", O_WRONLY | O_CREAT, 0644);
            write(f, "new\\n", 4);
            fsync(f);
            return f;
        }

        static void publish(void) {
            rename("f.tmp", "f");
        }

        int main(void) {
            fresh();
            publish();
        }
        """,
        'f=$(cat f) || corrupt "f cannot be read"\n'
        '[ "$f" = new ] || [ "$f" = old ] || corrupt "f is neither old nor new"',
        Flaw("ordering: safe rename", "append 4 bytes at 0 of /f.tmp", "rename /f.tmp to /f"),
    ),
    PlantedInC(
        "header-ahead-of-its-record",
        "printf 0 > header; echo ------ > log; sync",
        """
        int main(void) {
            int log = open("log", O_WRONLY), header = open("header", O_WRONLY);
            pwrite(log, "record", 6, 0);  /* first */
            pwrite(header, "1", 1, 0);  /* then */
            fsync(log);
            fsync(header);
            tell("saved\\n");
        }
        """,
        """
        int main(void) {
            int log = open("log", O_WRONLY), header = open("header", O_WRONLY);
            pwrite(log, "record", 6, 0);
            fdatasync(log);
            pwrite(header, "1", 1, 0);
            fdatasync(header);
            tell("saved\\n");
        }
        """,
        """
h=$(cat header) && l=$(cat log) || corrupt "a file is not there"
[ "$h" = 0 ] || [ "$l" = record ] || corrupt "the header counts a record that is not there"
told saved && [ "$h" = 0 ] && lost "saved was told, and the header counts nothing"
exit 0
""",
        Flaw("ordering: other", "overwrite 6 bytes at 0 of /log", "overwrite 1 bytes at 0 of /header"),
    ),
    PlantedInC(
        "journal-removed-too-early",
        "printf old > db; printf old > journal; sync",
        """
        static void change(void) {
            int db = open("db", O_WRONLY);
            pwrite(db, "ne", 2, 0);  /* first */
            pwrite(db, "w", 1, 2);
        }

        static void commit(void) {
            unlink("journal");  /* then */
        }

        int main(void) {
            change();
            commit();
            sync_name(".");
        }
        """,
        """
        static void change(void) {
            int db = open("db", O_WRONLY);
            pwrite(db, "ne", 2, 0);
            pwrite(db, "w", 1, 2);
            fsync(db);
        }

        static void commit(void) {
            unlink("journal");
        }

        int main(void) {
            change();
            commit();
            sync_name(".");
        }
        """,
        """
[ ! -e journal ] || cp journal db
db=$(cat db) || corrupt "there is no db"
[ "$db" = old ] || [ "$db" = new ] || corrupt "the db is torn, and the journal is gone"
[ -e journal ] || [ "$db" = new ] || corrupt "the db is old, and the journal is gone"
""",
        Flaw("ordering: other", "overwrite 2 bytes at 0 of /db", "unlink /journal"),
    ),
    PlantedInC(
        "mark-ahead-of-its-record",
        "printf 000000000 > log; sync",
        """
        int main(void) {
            int log = open("log", O_WRONLY);
            pwrite(log, "record", 6, 0);  /* first */
            pwrite(log, "end", 3, 6);  /* then */
            fsync(log);
        }
        """,
        """
        int main(void) {
            int log = open("log", O_WRONLY);
            pwrite(log, "record", 6, 0);
            fdatasync(log);
            pwrite(log, "end", 3, 6);
            fsync(log);
        }
        """,
        """
l=$(cat log) || corrupt "there is no log"
case $l in
    000000000 | record000 | recordend) ;;
    *) corrupt "the log is marked, and has no record" ;;
esac
""",
        Flaw("ordering: other", "overwrite 6 bytes at 0 of /log", "overwrite 3 bytes at 6 of /log"),
    ),
    PlantedInC(
        "linked-before-it-is-written",
        "mkdir d; sync",
        """
        int main(void) {
            int f = open("f.tmp", O_WRONLY | O_CREAT, 0644);
            write(f, "new\\n", 4);  /* first */
            link("f.tmp", "d/f");  /* then */
            sync_name("d");
        }
        """,
        """
        int main(void) {
            int f = open("f.tmp", O_WRONLY | O_CREAT, 0644);
            write(f, "new\\n", 4);
            fsync(f);
            link("f.tmp", "d/f");
            sync_name("d");
        }
        """,
        '[ -d d ] || corrupt "there is no directory"\n'
        '[ ! -e d/f ] || [ "$(cat d/f)" = new ] || corrupt "f is there, and is not new"',
        Flaw("ordering: other", "append 4 bytes at 0 of /f.tmp", "link /f.tmp as /d/f"),
        model="ext4-o",
    ),
    PlantedInC(
        "child-and-parent",
        "printf 0 > header; echo ---- > log; sync",
        """
        static void child(void) {
            int log = open("log", O_WRONLY);
            pwrite(log, "line", 4, 0);  /* first */
            _exit(0);
        }

        int main(void) {
            int header = open("header", O_WRONLY);
            if (fork() == 0) child();
            wait(NULL);
            pwrite(header, "1", 1, 0);  /* then */
            fsync(header);
        }
        """,
        """
        static void child(void) {
            int log = open("log", O_WRONLY);
            pwrite(log, "line", 4, 0);
            fsync(log);
            _exit(0);
        }

        int main(void) {
            int header = open("header", O_WRONLY);
            if (fork() == 0) child();
            wait(NULL);
            pwrite(header, "1", 1, 0);
            fsync(header);
        }
        """,
        """
h=$(cat header) && l=$(cat log) || corrupt "a file is not there"
[ "$h" = 0 ] || [ "$l" = line ] || corrupt "the header counts a line that is not there"
""",
        Flaw("ordering: other", "overwrite 4 bytes at 0 of /log", "overwrite 1 bytes at 0 of /header"),
    ),
    PlantedInC(
        "stored-without-msync",
        "printf %04096d 0 > f; sync",
        """
        int main(void) {
            int f = open("f", O_RDWR);
            char *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
            memcpy(mapped + 100, "new", 3);
            tell("saved\\n");
        }
        """,
        """
        int main(void) {
            int f = open("f", O_RDWR);
            char *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
            memcpy(mapped + 100, "new", 3);
            msync(mapped, 4096, MS_SYNC);
            tell("saved\\n");
        }
        """,
        '[ -e f ] || corrupt "there is no f"\n' + SAVED + 'grep -q new f || lost "saved was told, and f is old"',
        Flaw("durability: other", "store 3 bytes at 100 of /f"),
        model="ext3-j",
    ),
    PlantedInC(
        "header-ahead-of-a-store",
        "printf 0 > header; printf %04096d 0 > log; sync",
        """
        int main(void) {
            int log = open("log", O_RDWR), header = open("header", O_WRONLY);
            char *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, log, 0);
            memcpy(mapped, "record", 6);
            pwrite(header, "1", 1, 0);  /* then */
            fsync(header);
        }
        """,
        """
        int main(void) {
            int log = open("log", O_RDWR), header = open("header", O_WRONLY);
            char *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, log, 0);
            memcpy(mapped, "record", 6);
            fsync(log);
            pwrite(header, "1", 1, 0);
            fsync(header);
        }
        """,
        """
[ -e log ] || corrupt "there is no log"
h=$(cat header) || corrupt "there is no header"
[ "$h" = 0 ] || grep -q record log || corrupt "the header counts a record that is not there"
""",
        Flaw("ordering: other", "store 6 bytes at 0 of /log", "overwrite 1 bytes at 0 of /header"),
    ),
    PlantedInC(
        "journal-that-comes-back",
        "printf 0 > db; sync",
        """
        static void transaction(int db, const char *value, const char *told) {
            char old;
            int journal = open("journal", O_WRONLY | O_CREAT | O_EXCL, 0644);
            pread(db, &old, 1, 0);
            write(journal, &old, 1);
            fsync(journal);
            sync_name(".");
            pwrite(db, value, 1, 0);
            fsync(db);
            unlink("journal");  /* first */
            tell(told);
        }

        int main(void) {
            int db = open("db", O_RDWR);
            transaction(db, "1", "one\\n");
            transaction(db, "2", "two\\n");
        }
        """,
        """
        static void transaction(int db, const char *value, const char *told) {
            char old;
            int journal = open("journal", O_WRONLY | O_CREAT | O_EXCL, 0644);
            pread(db, &old, 1, 0);
            write(journal, &old, 1);
            fsync(journal);
            sync_name(".");
            pwrite(db, value, 1, 0);
            fsync(db);
            unlink("journal");
            sync_name(".");
            tell(told);
        }

        int main(void) {
            int db = open("db", O_RDWR);
            transaction(db, "1", "one\\n");
            transaction(db, "2", "two\\n");
        }
        """,
        """
db=$(cat db) || corrupt "there is no db"
[ ! -s journal ] || db=$(cat journal)
told one && [ "$db" = 0 ] && lost "the first one was told, and is not there"
told two && [ "$db" != 2 ] && lost "the second one was told, and is not there"
exit 0
""",
        Flaw("durability: other", "unlink /journal"),
        model="ext4-o",
    ),
)
