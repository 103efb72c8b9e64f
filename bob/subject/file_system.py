"""File systems under test, as data. Each is declared in file-systems/NAME.toml, or in a file of the user's own."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from bob.errors import UsageError, meant
from bob.schema import Amount, Declaration, adapt, declared, field, mistakes_in, toml
from bob.workload.lacking import LACKABLE

MIB = 1024 * 1024
DEVICE = "DEVICE"  # this word in a declaration's command means the path of the device
HINT = "see docs/formats.md"
ExitCode = Annotated[int, Meta(ge=0, lt=256)]


class Log(StrEnum):
    """The formats of a log (journal) that bob can find on the disk (:mod:`bob.blocks.xfs_geometry`)."""

    NONE = ""
    XFS = "xfs"


_FOLDER = Path(__file__).with_name("file-systems")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+.-]{0,39}")
UUID = "b0b0b0b0-0000-4000-8000-000000000b0b"


@dataclass(frozen=True, slots=True)
class FileSystem:
    """A description of how bob makes, mounts and recovers a file system, and of how long bob waits for it. Sizes are in
    bytes, times in guest seconds.

    ``driver`` is the file system's name for mount(2), and ``package`` is the Debian package of mkfs. The command
    ``mkfs`` makes the same file system in each run (UUID, hash seed). The command must not discard blocks, since a
    discard erases the stale pattern (known content that bob writes to unused sectors). It must also initialise
    everything itself, so that the kernel does not do this later in the background.

    ``check`` is the command that a boot after a crash would run before the mount. It is empty if the mount itself
    recovers. ``check_on_host`` says that the host may run ``check`` on a file with the content of the disk. This is
    correct if the result of ``check`` depends only on the disk and the time. The command ``repair`` runs if a crash
    state does not mount. ``device`` is the default size of the disk, and ``smallest`` the smallest size that mkfs
    accepts.

    The file system commits changes within ``commit`` seconds. bob takes it to be idle when the device has had no write
    for ``quiet`` seconds. This time is longer than all timers of the file system. Some file systems never stop writing.
    For these file systems, bob waits at most ``enough`` seconds after the operations (0: no limit). ``keeps_commits``
    says that the file system writes a finished transaction to its log only when a sync waits for it, as JFS does. In
    this case, bob also syncs the file system after the wait.

    ``names`` are pairs of mount options and the name that the literature uses for the file system with these options.
    ``forgets`` says that recovery updates each block independently of all others, and that a block's earlier content
    does not matter. The block is the same after recovery, whether or not a write of it reached the disk before the
    crash (:mod:`bob.observe.predict`). If ``forgets`` is true, ``log`` is the format of the file system's log. Recovery
    leaves old contents in the log, and bob ignores them when it compares disks after recovery
    (:mod:`bob.observe.leftovers`).

    ``refusals`` are operations that the file system lacks, with the kernel's messages (:mod:`bob.workload.lacking`). If
    ``lasting_inodes`` is false, inode numbers change at each mount. The optional command ``checker`` checks a disk
    without changing it; an exit code in ``clean`` means that it found nothing wrong. ``expected_messages`` are regular
    expressions for messages that the kernel prints after any crash. ``declaration`` is the text of the file where the
    user declares the file system (empty if bob ships the file system). bob keeps this text with the run, so that the
    run does not depend on the user's file."""

    name: str
    driver: str
    module: str
    package: str
    mkfs: tuple[str, ...]
    repair: tuple[str, ...]
    device: int
    smallest: int
    quiet: float
    enough: float = 0.0
    keeps_commits: bool = False
    commit: float = 5.0
    check: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    default_options: str = ""
    note: str = ""
    forgets: bool = False
    log: Log = Log.NONE
    refusals: tuple[tuple[str, str], ...] = ()
    lasting_inodes: bool = True
    checker: tuple[str, ...] = ()
    clean: tuple[int, ...] = (0,)
    expected_messages: tuple[str, ...] = ()
    check_on_host: bool = False
    declaration: str = ""

    @property
    def lacks(self) -> tuple[str, ...]:
        """The names of the operations that the file system lacks (:data:`bob.workload.lacking.LACKABLE`)."""
        return tuple(word for word, _said in self.refusals)


class FileSystemDeclaration(Declaration, frozen=True, kw_only=True):
    """The content of a TOML file that declares a file system. Sizes are in MiB. A command is one line, as in a shell.
    ``lacks`` maps the operations that the file system lacks to the kernel's messages."""

    driver: str | None = None
    module: str | None = None
    package: str
    mkfs: str
    repair: str
    check: str = ""
    checker: str = ""
    device_mib: Amount
    smallest_mib: Amount
    quiet: Amount
    enough: Amount = 0.0
    keeps_commits: bool = False
    commit: Amount = 5.0
    names: Mapping[str, str] = field(default_factory=dict)
    default_options: str = ""
    note: str = ""
    forgets: bool = False
    log: Log = Log.NONE
    lacks: Mapping[str, str] = field(default_factory=dict)
    lasting_inodes: bool = True
    clean: tuple[ExitCode, ...] = (0,)
    expected_messages: tuple[str, ...] = ()
    check_on_host: bool = False

    def file_system(self, name: str) -> FileSystem:
        """Return the declared file system, with this ``name``. Raise ValueError for a mistake in the declaration."""
        if unknown := [word for word in self.lacks if word not in LACKABLE]:
            raise ValueError(f"lacks: unknown operation {unknown[0]!r}; expected one of {', '.join(LACKABLE)}")
        for one in self.expected_messages:
            try:
                re.compile(one)
            except re.error as error:
                raise ValueError(f"expected_messages: invalid regular expression {one!r}: {error}") from None
        commands = {key: _command(key, getattr(self, key)) for key in ("mkfs", "repair", "check", "checker")}
        return adapt(
            FileSystem,
            self,
            name=name,
            driver=self.driver or name,
            module=self.module or name,
            device=round(self.device_mib) * MIB,
            smallest=round(self.smallest_mib) * MIB,
            names=tuple(self.names.items()),
            refusals=tuple(self.lacks.items()),
            **commands,
        )


def file_system(word: str) -> FileSystem:
    """Return the file system ``word``. This is the name of a shipped file system, or the path of a file that declares
    one. Raise UsageError if the name is unknown, or the file has a mistake."""
    if is_file(word):
        path = Path(word)
        text = toml(path, "is this the file that declares the file system? See docs/extend.md")
        if path.stem in file_systems():
            hint = f"call the file my-{path.stem}.toml"
            raise UsageError(f"{word}: bob already has a file system {path.stem!r}", hint=hint)
        return declared_by(path.stem, text)
    known = file_systems().get(word)
    if known is None:
        raise UsageError(f"unknown file system {word!r}", hint=meant(word, file_systems()))
    return known


def is_file(word: str) -> bool:
    """Return whether ``word`` is the path of a file, and not the name of a shipped file system."""
    return "/" in word or word.endswith(".toml")


def declared_by(name: str, text: str) -> FileSystem:
    """Return the file system that the user's file ``name``.toml declares. ``text`` is the content of the file. Raise
    UsageError for a mistake."""
    if not _NAME.fullmatch(name):
        hint = "expected at most 40 letters, digits and . _ + -: tables use this name"
        raise UsageError(f"invalid file system name {name!r}", hint=hint)
    return replace(_read(name, text), declaration=text)


@cache
def file_systems() -> dict[str, FileSystem]:
    """Return all shipped file systems, by name. Raise UsageError for a mistake in one of their files."""
    files = sorted(_FOLDER.glob("*.toml"), key=lambda path: path.stem)
    return {path.stem: _read(path.stem, toml(path, HINT)) for path in files}


def _read(name: str, text: str) -> FileSystem:
    with mistakes_in(f"{name}.toml", HINT):
        return declared(FileSystemDeclaration, text).file_system(name)


def _command(key: str, text: str) -> tuple[str, ...]:
    words = tuple(shlex.split(text.replace("{uuid}", UUID)))
    if words and words.count(DEVICE) != 1:
        raise ValueError(f"{key} must have the word {DEVICE} exactly once")
    return words
