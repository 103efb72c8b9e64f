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
"""The names of the scripts. A program may do without a setup."""
EMPTIED = "emptied"
"""In ``must_fail``: a tree from which all was removed, after all of the output."""


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A file of the program's folder; ``path`` is relative to it."""

    path: str
    data: bytes
    executable: bool


@dataclass(frozen=True, slots=True)
class Program:
    """A program under test.

    ``about`` says in a line what it is. ``device`` is the size of the device (bytes; 0: the file system's default).
    ``must_fail`` names what spoils the tree after a clean end so that the checker must refuse it: scripts of the
    program, or :data:`EMPTIED`; where there is none, the checker was never seen to refuse anything. A script may take
    so many ``seconds`` (in the guest's clock). It needs these Debian ``packages``. It is recorded at this ``pace``.

    ``logs`` and ``frames`` are patterns as of a shell. Files with paths that match ``logs`` (relative to the directory
    under test) are not in the states of models. Of a call, the innermost function that matches ``frames``, by its name
    or that of the file that has it, is named as the one that made it.
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
        """Whether a ``path``, from the directory under test as the root, is one of its logs."""
        return any(fnmatchcase(path.lstrip("/"), pattern) for pattern in self.logs)

    @property
    def title(self) -> str:
        """What people call it."""
        return self.name

    @property
    def slug(self) -> str:
        """What folders are called after."""
        return self.name

    @property
    def scripts(self) -> tuple[str, ...]:
        """The paths of the files that can be run."""
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
        """Two programs with the same one are the same."""
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
