"""Read the folder of a program: its declaration (``app.toml``), its scripts and its other files. A cluster is a program
that consists of nodes, each with a disk of its own. A cluster's declaration is ``cluster.toml``."""

import os
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bob.crash.rules import PaceRule
from bob.errors import UsageError, meant
from bob.program.program import (
    BUILD,
    CHECK,
    EMPTIED,
    NODE,
    READY,
    REPAIR,
    SETUP,
    SIGNATURE,
    WORKLOAD,
    Program,
    ProgramFile,
)
from bob.resources import shipped
from bob.schema import Amount, Declaration, NonEmpty, adapt, declared, field, mistakes_in, toml
from bob.subject.file_system import HINT, MIB

MOST_BYTES = 64 * MIB  # all files in the folder together
MOST_SECONDS = 3600.0  # the largest time limit for a script
MOST_NODES = 9


class ProgramDeclaration(Declaration, frozen=True):
    """The content of an ``app.toml``. ``like`` is the path of another program's folder; the program has all files of
    that folder, too. ``files`` and ``scripts`` are further files of the program, as a map from path to content. Only
    the files in ``scripts`` are executable. ``build_packages`` are the Debian packages that the script ``build`` needs,
    beside ``packages``."""

    about: str = ""
    like: str = ""
    device_mib: Amount = 0
    must_fail: tuple[NonEmpty, ...] = (EMPTIED,)
    seconds: Amount = 60.0
    packages: tuple[NonEmpty, ...] = ()
    build_packages: tuple[NonEmpty, ...] = ("gcc", "libc6-dev", "make")
    logs: tuple[NonEmpty, ...] = ()
    frames: tuple[NonEmpty, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= MOST_SECONDS:
            raise ValueError(f"seconds must be more than 0 and at most {MOST_SECONDS:g}, not {self.seconds:g}")
        if path := next((path for path in (SETUP, WORKLOAD, CHECK) if path in self.files), ""):
            raise ValueError(f"files: {path!r} is a script; write it in [scripts]")
        for key, texts in (("files", self.files), ("scripts", self.scripts)):
            for path in texts:
                if not path or path in (APP.declaration, CLUSTER.declaration) or set(path.split("/")) & {"", ".", ".."}:
                    raise ValueError(f"{key}: {path!r} is not a valid path in the program's folder")

    @property
    def written_out(self) -> tuple[ProgramFile, ...]:
        both = ((self.files, False), (self.scripts, True))
        return tuple(ProgramFile(path, one.encode(), run) for texts, run in both for path, one in texts.items())


class ClusterDeclaration(ProgramDeclaration, frozen=True):
    """The content of a ``cluster.toml``: that of an ``app.toml``, and the number of nodes (the members of the cluster).
    After a start, the script ``ready`` must succeed within ``ready_seconds``. ``device_mib`` is the size of each node's
    disk. Nodes of one group of ``alike`` have the same role."""

    nodes: int = 3
    ready_seconds: Amount = 30.0
    rules: tuple[PaceRule, ...] = ()
    master: int = 0
    alike: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.nodes <= MOST_NODES:
            raise ValueError(f"nodes must be 1 to {MOST_NODES}, not {self.nodes}")
        if not 0 <= self.master < self.nodes:
            raise ValueError(f"master must be a node, 0 to {self.nodes - 1}, not {self.master}")
        like = [node for group in self.alike for node in group]
        if len({*like} & {*range(self.nodes)}) != len(like):
            raise ValueError(f"alike must be groups of different nodes, 0 to {self.nodes - 1}, not {self.alike}")
        if not 1 <= self.ready_seconds <= MOST_SECONDS:
            raise ValueError(f"ready_seconds must be 1 to {MOST_SECONDS:g}, not {self.ready_seconds:g}")


@dataclass(frozen=True, slots=True)
class FolderKind:
    """A kind of folder that users write. Messages call its content ``what``, such as "cluster". The folder has the file
    ``declaration``, the scripts ``needed``, and perhaps those in ``optional``. ``shape`` is the class for the content
    of this file. bob ships such folders in probes/``shipped``."""

    what: str
    declaration: str
    shape: type[ProgramDeclaration]
    needed: tuple[str, ...]
    shipped: str
    optional: tuple[str, ...] = (SETUP,)

    @property
    def hint(self) -> str:
        return f"bob {self.declaration.removesuffix('.toml')} new NAME writes a {self.what}'s folder to start from"

    def folders(self) -> dict[str, Path]:
        """Return the folders that bob ships, by name."""
        folders = shipped("probes") / self.shipped
        return {path.parent.name: path.parent for path in sorted(folders.glob(f"*/{self.declaration}"))}

    def load(self, folder: Path) -> Program:
        """Return the program in ``folder``. Raises UsageError if the user made a mistake in its files."""
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a directory", hint=self.hint)
        if not (folder / self.declaration).is_file():
            raise UsageError(f"{folder} lacks {self.declaration}", hint=self.hint)
        asked = self._declared(folder)
        files = _together(folder, asked.written_out, self.declaration)
        if asked.like:
            other = folder / asked.like
            if not other.is_dir():
                raise UsageError(
                    f"{self.declaration}: like = {asked.like!r} is not a directory", hint=f"name a path from {folder}"
                )
            theirs = self._declared(other).written_out if (other / self.declaration).is_file() else ()
            files = _laid_over(_together(other, theirs, self.declaration), files)
        program = adapt(Program, asked, name=folder.resolve().name, files=files, device=round(asked.device_mib) * MIB)
        self._check(program, folder)
        return program

    def named(self, name: str) -> Program:
        """Return the program in the folder ``name``, or else the program that bob ships under this name. Raises
        UsageError if neither exists."""
        there = self.folders()
        if name in there and not Path(name).is_dir():
            return self.load(there[name])
        if "/" not in name and not Path(name).exists():
            raise UsageError(f"unknown {self.what} {name!r}", hint=meant(name, there, "bob ships"))
        return self.load(Path(name))

    def packages_to_build(self, folder: Path) -> tuple[str, ...]:
        """Return the Debian packages for the script ``build`` in ``folder``. Raises UsageError if there is no such
        script, or if the user made a mistake in the folder's files."""
        program = self.load(folder)
        if BUILD not in program.scripts:
            raise UsageError(f"{folder} lacks the executable script {BUILD}", hint="write one, such as one with `make`")
        return (*program.packages, *self._declared(folder).build_packages)

    def _declared(self, folder: Path) -> ProgramDeclaration:
        with mistakes_in(self.declaration, HINT):
            return declared(self.shape, toml(folder / self.declaration, HINT))

    def _check(self, program: Program, folder: Path) -> None:
        there = {file.path for file in program.files}
        for name in (*self.optional, *self.needed):
            if name not in there:
                if name in self.needed:
                    raise UsageError(f"{folder} lacks the script {name}", hint=self.hint)
            elif name not in program.scripts:
                raise UsageError(f"{folder / name} is not executable", hint=f"chmod +x {folder / name}")
        for name in program.must_fail:
            if name != EMPTIED and name not in program.scripts:
                raise UsageError(
                    f"{self.declaration}: must_fail: {name!r} is not an executable file in {folder}",
                    hint=f"name a script that damages the tree, or {EMPTIED!r}",
                )


APP = FolderKind("program", "app.toml", ProgramDeclaration, (WORKLOAD, CHECK), "apps")
CLUSTER = FolderKind(
    "cluster",
    "cluster.toml",
    ClusterDeclaration,
    (NODE, WORKLOAD, CHECK),
    "clusters",
    (SETUP, READY, REPAIR, SIGNATURE),
)
DECLARATION, load, named, shipped_programs = APP.declaration, APP.load, APP.named, APP.folders


def of_commands(workload: str, check: str = "", setup: str = "") -> Program:
    """Return a program whose scripts are the arguments. Each argument is a shell command, or the path of the user's
    script, or empty (no such script)."""
    texts = {SETUP: setup, WORKLOAD: workload, CHECK: check}
    files = [script_of(name, text) for name, text in texts.items() if text]
    return Program("commands", workload, tuple(files), must_fail=(EMPTIED,) if check else ())


def script_of(name: str, text: str) -> ProgramFile:
    """Return the script ``name``. Its content is the user's file at the path ``text``, or else ``text`` as a command of
    a shell."""
    path = Path(text)
    with suppress(OSError):  # a command may be too long for the name of a file
        if path.is_file():
            return _script_file(name, path)
    return ProgramFile(name, f"#!/bin/sh\n{text}\n".encode(), True)


def _script_file(name: str, path: Path) -> ProgramFile:
    if not os.access(path, os.X_OK):
        raise UsageError(f"{path} is not executable", hint=f"chmod +x {path}")
    return ProgramFile(name, path.read_bytes(), True)


def _laid_over(under: tuple[ProgramFile, ...], over: tuple[ProgramFile, ...]) -> tuple[ProgramFile, ...]:
    return tuple(file for _path, file in sorted({file.path: file for file in (*under, *over)}.items()))


def _together(folder: Path, written_out: tuple[ProgramFile, ...], declaration: str) -> tuple[ProgramFile, ...]:
    beside = _files(folder)
    paths = Counter(file.path for file in (*beside, *written_out))
    for path in (path for path, times in paths.items() if times > 1):
        raise UsageError(f"{folder} has {path!r} twice", hint=f"keep one: a file, or an entry of {declaration}")
    return _laid_over(beside, written_out)


def _files(folder: Path) -> tuple[ProgramFile, ...]:
    found: list[ProgramFile] = []
    total = 0
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        total += path.stat().st_size
        if total > MOST_BYTES:
            raise UsageError(
                f"{folder} has more than {MOST_BYTES // MIB} MiB",
                hint="name what the program needs in packages of app.toml",
            )
        found.append(ProgramFile(str(path.relative_to(folder)), path.read_bytes(), os.access(path, os.X_OK)))
    return tuple(found)
