"""Which calls of a program a pace waits for: those that change something, however they are made."""

from __future__ import annotations

import re

import pytest

from bob.agent.inside.strace_lines import StraceLines, lines_of
from bob.agent.inside.traced_calls import CLOSES, PLACING, READS, TRACED, TracedChanges

ROOT = "/run/bob/root"


def escaped(text: str) -> str:
    """A line as strace writes it, from one in which strings and paths can be read."""
    return re.sub(
        r'(?<=[<"])[^<>",=]*(?=[>"])', lambda one: "".join(f"\\x{byte:02x}" for byte in one[0].encode()), text
    )


def changes(*calls: str, pid: int = 7) -> list[bool]:
    lines, found = StraceLines(), TracedChanges(ROOT)
    taken = [lines.take(f"{pid} {number}.5 {escaped(call)}".encode()) for number, call in enumerate(calls)]
    return [line is not None and found.made_by(line) for line in taken]


@pytest.mark.parametrize(
    "call",
    [
        'openat(AT_FDCWD<R>, "valid", O_WRONLY|O_CREAT, 0666) = 3<R/valid>',
        'openat(AT_FDCWD<R>, "lock", O_RDWR|O_CREAT|O_EXCL, 0600) = 3<R/lock>',
        'openat(5<R/d>, "f", O_WRONLY|O_TRUNC) = 3<R/d/f>',
        'open("f", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3<R/f>',
        'openat(AT_FDCWD<R>, ".", O_RDWR|O_TMPFILE, 0600) = 3<R/#12>(deleted)',
        'creat("f", 0666) = 3<R/f>',
        'openat2(AT_FDCWD<R>, "f", {flags=O_RDWR|O_CREAT, mode=0600, resolve=0}, 24) = 3<R/f>',
        'openat(AT_FDCWD<R>, "f", O_RDWR|O_CREAT, 0600) = 3</run/bob-world/rootR/f>',
        'utimensat(AT_FDCWD<R>, "valid", NULL, 0) = 0',
        "utimensat(3<R/valid>, NULL, NULL, 0) = 0",
        'utimes("valid", NULL) = 0',
        "ioctl(3<R/f>, FS_IOC_SETFLAGS, [FS_IMMUTABLE_FL]) = 0",
        "ioctl(3<R/f>, BTRFS_IOC_CLONE or FICLONE, 4) = 0",
        'mkdirat(4<R>, "d", 0777) = 0',
        'rename("a", "b") = 0',
        'renameat2(AT_FDCWD<R>, "a", AT_FDCWD<R>, "b", RENAME_EXCHANGE) = 0',
        'linkat(AT_FDCWD<R>, "/proc/self/fd/3", AT_FDCWD<R>, "f", AT_SYMLINK_FOLLOW) = 0',
        'write(3<R/f>, "a", 1) = 1',
        'write(3<R/gone>(deleted), "a", 1) = 1',
        'write(1<pipe:[7]>, "a", 1) = 1',
        "sendfile(3<R/f>, 4</tmp/f>, NULL, 5) = 5",
        "copy_file_range(4</tmp/f>, NULL, 3<R/f>, NULL, 5, 0) = 5",
        "splice(4<pipe:[7]>, NULL, 3<R/f>, NULL, 5, 0) = 5",
        "fsync(3<R>) = 0",
        "fadvise64(3<R/f>, 0, 0, POSIX_FADV_DONTNEED) = 0",
        "msync(0x7f0000000000, 4096, MS_SYNC) = 0",
        "sync() = 0",
        "io_uring_enter(3<anon_inode:[io_uring]>, 1, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 1",
        "io_submit(0x7f0000000000, 1, [{aio_data=0, aio_lio_opcode=IOCB_CMD_PWRITE}]) = 1",
        "fallocate(3<R/f>, 0, 0, 4096) = 0",
        'openat(AT_FDCWD, "f", O_WRONLY|O_CREAT, 0666) = 3',
        'write(3, "a", 1) = 1',
        "fsync(3) = 0",
        "fchmod(3, 0600) = 0",
        "ioctl(3, FS_IOC_SETFLAGS, [FS_IMMUTABLE_FL]) = 0",
        "fadvise64(3, 0, 0, POSIX_FADV_DONTNEED) = 0",
        "sendfile(3, 4</tmp/f>, NULL, 5) = 5",
        "copy_file_range(4</tmp/f>, NULL, 3, NULL, 5, 0) = 5",
        "splice(4</tmp/f>, [0], 3, NULL, 5, 0) = 5",
        'bind(3<socket:[7]>, {sa_family=AF_UNIX, sun_path="s"}, 110) = 0',
    ],
)
def test_a_pace_waits_for_each_call_that_changes_something(call: str) -> None:
    """Between an empty mark, a lock, a cut file, and the next call nothing came: a program was called safe that is
    not."""
    assert changes(call.replace("R/", f"{ROOT}/").replace("R>", f"{ROOT}>")) == [True]
    traced = f"{TRACED},{PLACING},{READS},{CLOSES}".replace("?", "").split(",")
    assert call.partition("(")[0] in traced and len(traced) == len(set(traced))
    begun, found = StraceLines(), TracedChanges(ROOT)
    one = escaped(call.replace("R/", f"{ROOT}/").replace("R>", f"{ROOT}>"))
    arguments, result = one.rsplit(")", 1)
    name, first = arguments.split("(", 1)
    for text, is_change in ((f"{name}({first} <unfinished ...>", False), (f"<... {name} resumed>){result}", True)):
        line = begun.take(f"9 1.5 {text}".encode())
        assert line is not None and found.made_by(line) is is_change


@pytest.mark.parametrize(
    "call",
    [
        'openat(AT_FDCWD<R>, "f", O_RDONLY|O_CLOEXEC) = 3<R/f>',
        'openat(AT_FDCWD<R>, "f", O_RDWR) = 3<R/f>',
        'openat(AT_FDCWD<R>, "/tmp/f", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</tmp/f>',
        'openat(AT_FDCWD<R>, "f", O_WRONLY|O_CREAT|O_EXCL, 0666) = -1 EEXIST (File exists)',
        'unlink("f") = -1 ENOENT (No such file or directory)',
        'write(3</tmp/f>, "a", 1) = 1',
        'write(3<Rx/f>, "a", 1) = 1',
        'sendto(3<socket:[7]>, "a", 1) = 1',
        "ioctl(3<R/f>, TCGETS, 0x7ffe) = -1 ENOTTY (Inappropriate ioctl for device)",
        "ioctl(1<pipe:[7]>, FIONREAD, [0]) = 0",
        "fadvise64(3<R/f>, 0, 0, POSIX_FADV_SEQUENTIAL) = 0",
        "close(3<R/f>) = 0",
        "dup2(3<R/f>, 1) = 1<R/f>",
        "lseek(3<R/f>, 0, SEEK_SET) = 0",
        "mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 3<R/f>, 0) = 0x7f0000000000",
        "io_uring_setup(8, {flags=0}) = 3<anon_inode:[io_uring]>",
        'openat(AT_FDCWD, "f", O_RDONLY) = 3',
        "close(3) = 0",
        "dup2(3, 4) = 4",
        'write(3</tmp/f>, "a", 1) = 1',
        "bind(3<socket:[7]>, {sa_family=AF_INET, sin_port=htons(1)}, 16) = 0",
        "+++ exited with 0 +++",
        "--- SIGCHLD {si_signo=SIGCHLD} ---",
    ],
)
def test_it_waits_for_no_other_call(call: str) -> None:
    """An interpreter opens hundreds of files to read them."""
    found = call.replace("R/", f"{ROOT}/").replace("R>", f"{ROOT}>").replace("Rx", f"{ROOT}x")
    assert changes(found) == [False]


def test_the_close_of_a_file_that_was_cut_and_written_has_its_data_written() -> None:
    there = f"3<{ROOT}/f>"
    cut, write, close = f'open("f", O_WRONLY|O_TRUNC) = {there}', f'write({there}, "a", 1) = 1', f"close({there}) = 0"
    assert changes(cut, close) == [True, False]
    assert changes(cut, write, close) == [True, True, True]
    assert changes(cut, write, f"dup2({there}, 1) = 1<{ROOT}/f>") == [True, True, False]
    assert changes(cut, write, f"dup2(4</dev/null>, {there}) = 3</dev/null>") == [True, True, True]
    assert changes(f"ftruncate({there}, 0) = 0", close, write, close) == [True, False, True, True]
    assert changes(f'open("f", O_WRONLY|O_CREAT, 0666) = {there}', write, close) == [True, True, False]
    far = 'openat(AT_FDCWD, "f", O_WRONLY|O_TRUNC) = 3', 'write(3, "a", 1) = 1', "close(3) = 0"
    assert changes(*far) == [True, True, True]


@pytest.mark.parametrize("size", [1, 2, 7, 1 << 16])
def test_lines_are_whole_however_they_come(size: int) -> None:
    text = b"first\n\nsecond is longer\nthe last has no end"

    class Pipe:
        at = 0

        def read(self, _most: int) -> bytes:
            piece = text[self.at : self.at + size]
            self.at += size
            return piece

    assert [line for lines in lines_of(Pipe()) for line in lines] == text.split(b"\n")  # type: ignore[arg-type]
