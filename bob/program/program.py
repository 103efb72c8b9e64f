"""A program under test: the files of its folder, and what its ``app.toml`` says."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from bob.schema import Document, Number, adapt, encode

SETUP, WORKLOAD, CHECK = "setup", "workload", "check"
"""The names of the scripts. A program may lack a setup."""
EMPTIED = "emptied"
"""In ``must_fail``: an empty tree, after all of the output."""


class Pace(StrEnum):
    """A pace. It decides what the kernel has made durable by itself when the next call comes. ext4 commits the names of
    calls that follow each other at once together, so a crash finds all of them or none.

    UNDISTURBED: as fast as the machine is, with nothing else to do. SLOW: with :meth:`delay` after each call that
    changes or syncs something, so the kernel's timers come in between. SLOWER: the delay is so long that the file
    system commits by itself after each call. BUSY: a short delay, in which another process syncs a file of its own.
    """

    UNDISTURBED = "undisturbed"
    SLOW = "slow"
    SLOWER = "slower"
    BUSY = "busy"

    def delay(self, commit: float) -> float:
        """Return the seconds of the guest's clock after each call, if the file system commits by itself after at most
        ``commit`` seconds. The shortest of the kernel's timers are 5 s (``JBD2_DEFAULT_MAX_COMMIT_AGE``, fs/jbd2;
        ``dirty_writeback_interval``, mm/page-writeback.c). Data is written when it is 30 to 35 s old."""
        return {Pace.UNDISTURBED: 0.0, Pace.SLOW: 7.0, Pace.SLOWER: commit + 2.0, Pace.BUSY: 0.5}[self]

    def patience(self, commit: float) -> float:
        """Return the factor by which a script may take longer, as it waits after each call."""
        return 1.0 if self is Pace.UNDISTURBED else max(100.0, 15 * self.delay(commit))

    @staticmethod
    def on(commit: float) -> tuple[Pace, ...]:
        """Return the paces that differ on a file system that commits by itself every ``commit`` seconds."""
        is_slow = Pace.SLOWER.delay(commit) <= Pace.SLOW.delay(commit)
        return tuple(pace for pace in Pace if not (is_slow and pace is Pace.SLOWER))

    @property
    def has_neighbour(self) -> bool:
        """Whether another process syncs a file of its own."""
        return self is Pace.BUSY

    def of(self, configuration: str) -> str:
        """Return the name of a configuration's answer at this pace."""
        return configuration if self is Pace.UNDISTURBED else f"{configuration}-{self.value}"


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A file of the program's folder; ``path`` is relative to it."""

    path: str
    data: bytes
    executable: bool


@dataclass(frozen=True, slots=True)
class Program:
    """A program under test.

    ``about`` is a line of description. ``device`` is the size of the device (bytes; 0: the file system's default).
    ``must_fail`` names damages of the final tree that the checker must refuse: scripts of the program, or
    :data:`EMPTIED`. A script may take so many ``seconds`` (in the guest's clock). ``packages`` are Debian's.

    ``logs`` and ``frames`` are shell patterns. Files whose paths match ``logs`` (relative to the directory under test)
    are not in the states of models. The innermost function of a call that matches ``frames``, by its own name or its
    file's, is named as its maker.
    """

    name: str
    about: str
    files: tuple[ProgramFile, ...]
    device: int = 0
    must_fail: tuple[str, ...] = (EMPTIED,)
    seconds: float = 60.0
    packages: tuple[str, ...] = ()
    pace: Pace = Pace.UNDISTURBED
    logs: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()

    def is_log(self, path: str) -> bool:
        """Return whether a ``path``, from the directory under test as the root, is one of its logs."""
        return any(fnmatchcase(path.lstrip("/"), pattern) for pattern in self.logs)

    @property
    def title(self) -> str:
        """Its name for people."""
        return self.name

    @property
    def slug(self) -> str:
        """Its name for folders."""
        return self.name

    @property
    def scripts(self) -> tuple[str, ...]:
        """The paths of the executable files."""
        return tuple(file.path for file in self.files if file.executable)

    @property
    def archive(self) -> bytes:
        """Its files as a tar archive; the same files make the same bytes."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for file in self.files:
                entry = tarfile.TarInfo(file.path)
                entry.size, entry.mode = len(file.data), 0o755 if file.executable else 0o644
                archive.addfile(entry, io.BytesIO(file.data))
        return buffer.getvalue()

    @property
    def digest(self) -> str:
        """Equal programs have equal digests."""
        return hashlib.sha256(json.dumps(encode(ProgramDocument.of(self)), sort_keys=True).encode()).hexdigest()[:16]


class ProgramDocument(Document, frozen=True, kw_only=True):
    """A program; ``files`` are (path, executable, data)."""

    name: str
    about: str
    device: int
    must_fail: tuple[str, ...]
    seconds: Number
    packages: tuple[str, ...]
    pace: Pace = Pace.UNDISTURBED
    logs: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    files: tuple[tuple[str, bool, bytes], ...]

    @classmethod
    def of(cls, program: Program) -> ProgramDocument:
        """Return the document of ``program``."""
        return adapt(cls, program, files=tuple((file.path, file.executable, file.data) for file in program.files))

    @property
    def program(self) -> Program:
        """The program."""
        files = tuple(ProgramFile(path, data, executable) for path, executable, data in self.files)
        return adapt(Program, self, files=files)
