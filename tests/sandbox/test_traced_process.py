"""Programs on the host whose reads and writes of a file are traced, without a sandbox: what is noted, what is refused."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bob.agent.inside.frames import Denial
from bob.agent.inside.traced_process import Touched, TracedProcess

LENGTH = 64 * 512


class Disk:
    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(LENGTH))
        self.path, self.process = path, TracedProcess(str(path), LENGTH)

    def run(self, script: str) -> list[Touched]:
        """What a script does with ``fd``, which is of the disk; ``other`` is of another file."""
        head = f"import os, mmap, sys; fd = os.open({str(self.path)!r}, os.O_RDWR); other = os.open('/', os.O_PATH)\n"
        return self.process.run([sys.executable, "-S", "-c", head + script], dict(os.environ))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    made = Disk(tmp_path / "disk")
    yield made
    made.process.close()


def test_reads_and_writes_are_noted_in_their_order(disk: Disk) -> None:
    assert disk.run("os.pread(fd, 1024, 4096); os.pwrite(fd, b'x' * 512, 512); os.pread(fd, 512, 0)") == [
        (True, 8, 2),
        (False, 1, 1),
        (True, 0, 1),
    ]
    assert disk.path.read_bytes()[512:1024] == b"x" * 512
    assert disk.run("os.lseek(fd, 2048, 0); os.read(fd, 512); os.write(fd, b'y' * 1024)") == [
        (True, 4, 1),
        (False, 5, 2),
    ], "the kernel knows the position"
    assert disk.run("copy = os.dup(fd); os.close(fd); os.pread(copy, 512, 512)") == [(True, 1, 1)]
    assert disk.run("pass") == []


def test_a_write_of_a_part_of_a_sector_leaves_the_rest_as_it_was(disk: Disk) -> None:
    assert disk.run("os.pwrite(fd, b'z', 1000)") == [(True, 1, 1), (False, 1, 1)]
    assert disk.run("os.pread(fd, 10, 1530)") == [(True, 2, 2)], "of two sectors"
    assert disk.run(f"os.pread(fd, 4096, {LENGTH - 512})") == [(True, 63, 1)], "no further than the end"


def test_other_files_do_not_count(disk: Disk, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(bytes(4096))
    script = f"o = os.open({str(other)!r}, os.O_RDWR); os.pread(o, 512, 0); os.pwrite(o, b'1', 0); mmap.mmap(o, 4096)"
    assert disk.run(script) == []


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("mmap.mmap(fd, 512)", "uses the disk by the call 9"),
        ("os.ftruncate(fd, 0)", "uses the disk by the call 77"),
        ("os.posix_fallocate(fd, 0, 512)", "uses the disk by the call 285"),
        ("os.preadv(fd, [bytearray(512)], 0)", "uses the disk by the call (295|327)"),
        ("os.fork()", "makes the call 5"),
        ("os.kill(os.getpid(), 11)", "was ended by signal 11"),
    ],
)
def test_what_is_not_followed_is_refused(disk: Disk, script: str, said: str) -> None:
    with pytest.raises(Denial, match=said):
        disk.run(script)


def test_a_descriptor_that_is_hidden_from_bob_is_refused(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or bob would take it for another file, and miss what the program reads."""

    def hidden(path: str) -> str:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "readlink", hidden)
    with pytest.raises(Denial, match="which file the program uses: Permission denied"):
        disk.run("os.pread(fd, 512, 0)")


def test_a_descriptor_that_is_closed_reads_nothing(disk: Disk) -> None:
    assert disk.run("os.close(fd)\ntry: os.pread(fd, 512, 0)\nexcept OSError: pass") == []


def test_a_program_that_is_missing_is_refused(disk: Disk) -> None:
    with pytest.raises(Denial, match="No such file"):
        disk.process.run(["/nowhere/e2fsck"], {})
