"""A program under test: the files of its folder, and what its ``app.toml`` says."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from fnmatch import fnmatchcase

from bob.program.pace import Pace
from bob.schema import Document, Number, adapt, encode

SETUP, WORKLOAD, CHECK = "setup", "workload", "check"
"""The names of the scripts. A program may lack a setup."""
EMPTIED = "emptied"
"""In ``must_fail``: an empty tree, after all of the output."""


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
