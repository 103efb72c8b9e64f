"""A program under test: the files of its folder, and what its ``app.toml`` says."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from bob.crash.rules import PaceRule
from bob.schema import Document, Number, adapt, encode

SETUP, WORKLOAD, CHECK = "setup", "workload", "check"  # names of the scripts; setup is optional
BUILD = "build"  # the script of `bob app build`, which makes other files of the folder
MOMENTS = "moments.json"  # beside the checker that bob gives a program without one (bob/protocol/moments.py)
NODE = "node"  # the script of a cluster that runs a member
READY, REPAIR = "ready", "repair"  # scripts of a cluster: whether it answers, and what mends it; both are optional
SIGNATURE = "signature"  # the script of a cluster that prints what a node has recovered; optional
NETWORK_PACKAGE = "iproute2"
EMPTIED = "emptied"  # in must_fail, this means an empty tree, checked with all of the output


class Pace(StrEnum):
    """The pace of a program under test. It decides what the kernel makes durable between two calls. At full speed, ext4
    usually puts the directory changes of consecutive calls into one transaction. So after a crash, either all of these
    changes are on the disk or none. UNDISTURBED: the program runs at full speed, without other work. SLOW: it waits for
    :meth:`delay` after each call that changes or syncs something, so the kernel's timers fire. SLOWER: after each such
    call, it waits until the file system has committed by itself. BUSY: it waits for a short time, while another process
    syncs a file of its own."""

    UNDISTURBED = "undisturbed"
    SLOW = "slow"
    SLOWER = "slower"
    BUSY = "busy"

    def delay(self, commit: float) -> float:
        """Return the delay after each call (seconds of the guest's clock), on a file system that commits at least every
        ``commit`` seconds. The delay of SLOW is longer than the kernel's shortest timers, which take 5 s
        (``JBD2_DEFAULT_MAX_COMMIT_AGE``, fs/jbd2; ``dirty_writeback_interval``, mm/page-writeback.c). The writeback
        timer writes data only when the data is 30 to 35 s old."""
        return {Pace.UNDISTURBED: 0.0, Pace.SLOW: 7.0, Pace.SLOWER: commit + 2.0, Pace.BUSY: 0.5}[self]

    def patience(self, commit: float) -> float:
        """Return the factor for the time limit of the script that runs the program. It is 1 for UNDISTURBED. It is
        larger at other paces, because the program waits after calls."""
        return 1.0 if self is Pace.UNDISTURBED else max(100.0, 15 * self.delay(commit))

    @staticmethod
    def on(commit: float) -> tuple[Pace, ...]:
        """Return the paces to try on a file system that commits by itself every ``commit`` seconds. SLOWER is left out
        if its delay would not be longer than that of SLOW."""
        is_slow = Pace.SLOWER.delay(commit) <= Pace.SLOW.delay(commit)
        return tuple(pace for pace in Pace if not (is_slow and pace is Pace.SLOWER))

    @property
    def has_neighbour(self) -> bool:
        return self is Pace.BUSY

    def of(self, configuration: str) -> str:
        """Return the name that bob's reports give to the results of a program at this pace. It consists of
        ``configuration`` (the name of the file system with its options) and of this pace, unless the pace is
        UNDISTURBED."""
        return configuration if self is Pace.UNDISTURBED else f"{configuration}-{self.value}"


@dataclass(frozen=True, slots=True)
class ProgramFile:
    path: str  # relative to the program's folder
    data: bytes
    executable: bool


@dataclass(frozen=True, slots=True)
class Program:
    """A program under test. ``device`` is the size of the device (bytes; 0: the file system's default), and ``seconds``
    the time limit of a script in the folder (guest's clock). The checker is the script that accepts or refuses a crash
    state. To test it, bob damages the files that the program left at its end. Each item of ``must_fail`` is the name of
    a script that damages these files, or is :data:`EMPTIED` (bob removes all files). The checker must refuse each
    damaged state. ``packages`` are Debian packages.

    ``logs`` and ``frames`` are shell patterns. Files whose paths match a pattern in ``logs`` are log files of the
    program. A model describes the states that a crash of a file system may leave. Models ignore what the program
    does to its log files. For each call, bob reports one function of the call's stack as the caller. It is the
    innermost function whose name, or whose binary file's name, matches a pattern in ``frames``.

    If ``nodes`` is not 0, the program is a cluster. It has this number of nodes, each with a disk of its own. The
    scripts ``setup``, ``workload`` and ``check`` are clients of the cluster. After a start, the cluster must be ready
    within ``ready_seconds`` (guest's clock). The node ``late`` starts after the others are ready, so that it does not
    lead (-1: all nodes start together). The cluster's ``rules`` say which crash states bob may leave out
    (:class:`bob.crash.rules.Rules`). ``master`` is the node that these rules call the master. Nodes of one group of
    ``alike`` have the same role (:mod:`bob.crash.exchanges`)."""

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
    nodes: int = 0
    ready_seconds: float = 30.0
    late: int = -1
    rules: tuple[PaceRule, ...] = ()
    master: int = 0
    alike: tuple[tuple[int, ...], ...] = ()

    def is_log(self, path: str) -> bool:
        return any(fnmatchcase(path.lstrip("/"), pattern) for pattern in self.logs)

    @property
    def world_packages(self) -> tuple[str, ...]:
        """The packages of the program's world. The world of a cluster also has the one that connects the nodes."""
        return (*self.packages, NETWORK_PACKAGE) if self.packages and self.nodes else self.packages

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
    def has_checker(self) -> bool:
        return CHECK in self.scripts

    @property
    def is_by_moments(self) -> bool:
        """Whether the checker is the one that bob gives a program without one. Its refusal is a question to the
        user."""
        return any(file.path == MOMENTS for file in self.files)

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
        """A digest of the whole program; equal programs have equal digests."""
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
    nodes: int = 0
    ready_seconds: Number = 30.0
    late: int = -1
    rules: tuple[PaceRule, ...] = ()
    master: int = 0
    alike: tuple[tuple[int, ...], ...] = ()
    files: tuple[tuple[str, bool, bytes], ...]  # path, executable, data

    @classmethod
    def of(cls, program: Program) -> ProgramDocument:
        return adapt(cls, program, files=tuple((file.path, file.executable, file.data) for file in program.files))

    @property
    def program(self) -> Program:
        files = tuple(ProgramFile(path, data, executable) for path, executable, data in self.files)
        return adapt(Program, self, files=files)
