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

SETUP, WORKLOAD, CHECK = "setup", "workload", "check"  # names of the scripts; setup is optional
EMPTIED = "emptied"  # in must_fail: an empty tree, after all of the output


class Pace(StrEnum):
    """A pace, which decides what the kernel makes durable between calls. ext4 commits the names of consecutive calls
    together, so a crash leaves all or none of them. UNDISTURBED: full speed, without other work. SLOW: :meth:`delay`
    after each call that changes or syncs something, so the kernel's timers fire. SLOWER: the file system commits by
    itself after each call. BUSY: a short delay, while another process syncs its own file."""

    UNDISTURBED = "undisturbed"
    SLOW = "slow"
    SLOWER = "slower"
    BUSY = "busy"

    def delay(self, commit: float) -> float:
        """Return the delay (seconds of the guest's clock), if the file system commits at least every ``commit``
        seconds. The kernel's shortest timers are 5 s (``JBD2_DEFAULT_MAX_COMMIT_AGE``, fs/jbd2;
        ``dirty_writeback_interval``, mm/page-writeback.c). It writes data that is 30 to 35 s old."""
        return {Pace.UNDISTURBED: 0.0, Pace.SLOW: 7.0, Pace.SLOWER: commit + 2.0, Pace.BUSY: 0.5}[self]

    def patience(self, commit: float) -> float:
        """Return the factor on a script's time limit, as the script waits after each call."""
        return 1.0 if self is Pace.UNDISTURBED else max(100.0, 15 * self.delay(commit))

    @staticmethod
    def on(commit: float) -> tuple[Pace, ...]:
        """Return the paces that make a difference on a file system that commits by itself every ``commit`` seconds."""
        is_slow = Pace.SLOWER.delay(commit) <= Pace.SLOW.delay(commit)
        return tuple(pace for pace in Pace if not (is_slow and pace is Pace.SLOWER))

    @property
    def has_neighbour(self) -> bool:
        return self is Pace.BUSY

    def of(self, configuration: str) -> str:
        """Return the name of a configuration's answer at this pace."""
        return configuration if self is Pace.UNDISTURBED else f"{configuration}-{self.value}"


@dataclass(frozen=True, slots=True)
class ProgramFile:
    path: str  # relative to the program's folder
    data: bytes
    executable: bool


@dataclass(frozen=True, slots=True)
class Program:
    """A program under test. ``device`` is the device's size (bytes; 0: the file system's default), ``seconds`` a
    script's limit (guest's clock). ``must_fail`` names damages of the final tree that the checker must refuse: scripts,
    or :data:`EMPTIED`. ``packages`` are Debian's. ``logs`` and ``frames`` are shell patterns. Models leave out files
    whose paths in the tested directory match ``logs``. The innermost function whose name, or whose file's name, matches
    ``frames`` counts as the maker of a call."""

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
        return any(fnmatchcase(path.lstrip("/"), pattern) for pattern in self.logs)

    @property
    def title(self) -> str:
        return self.name

    @property
    def slug(self) -> str:
        return self.name

    @property
    def scripts(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files if file.executable)

    @property
    def archive(self) -> bytes:
        """The program's files as a tar archive; the same files give the same bytes."""
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
    name: str
    about: str
    device: int
    must_fail: tuple[str, ...]
    seconds: Number
    packages: tuple[str, ...]
    pace: Pace = Pace.UNDISTURBED
    logs: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    files: tuple[tuple[str, bool, bytes], ...]  # path, executable, data

    @classmethod
    def of(cls, program: Program) -> ProgramDocument:
        return adapt(cls, program, files=tuple((file.path, file.executable, file.data) for file in program.files))

    @property
    def program(self) -> Program:
        files = tuple(ProgramFile(path, data, executable) for path, executable, data in self.files)
        return adapt(Program, self, files=files)
