"""What bob has to know of a file system, as declared in file-systems/NAME.toml, or in a file of the user's own."""

from __future__ import annotations

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
DEVICE = "DEVICE"
"""Stands for the device's path in the commands of a declaration."""

HINT = "see docs/formats.md"
ExitCode = Annotated[int, Meta(ge=0, lt=256)]


class Log(StrEnum):
    """Formats of which the log can be found (:mod:`bob.blocks.xfs_geometry`)."""

    NONE = ""
    XFS = "xfs"


_FOLDER = Path(__file__).with_name("file-systems")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+.-]{0,39}")
_UUID = "b0b0b0b0-0000-4000-8000-000000000b0b"


@dataclass(frozen=True, slots=True)
class FileSystem:
    """How a file system is made, mounted, recovered and waited for. Sizes are in bytes, times in guest seconds.

    ``driver`` is what mount(2) is told, ``module`` the kernel module that it is in. ``mkfs`` is the command with
    everything taken out of it that would differ from run to run (UUID, hash seed), no discards (they would erase the
    stale pattern) and nothing left to background initialisation. ``check`` is what a boot would run before it mounts
    the file system after a crash (empty where mounting recovers), ``repair`` what is run when a crash state does not
    mount.

    It commits what changes its tree by itself, every ``commit`` seconds at the latest.

    The file system counts as done when its device has been silent for ``quiet``: longer than any timer of its own.
    One that is never silent is given ``enough`` seconds after the operations (0: as long as it takes). One that is
    silent and ``keeps_commits`` in memory until something syncs is synced when it has been silent.

    ``package`` is where mkfs comes from, ``device`` the default size of the probed device, ``smallest`` the least
    that mkfs takes. ``names`` are what the field calls it under certain mount options: (options, name).
    ``default_options`` are those that the kernel takes where nothing else is said. ``note`` is for readers of the
    results. ``forgets`` says that recovery takes each block by itself, and makes the same of old and of new ones
    (see :mod:`bob.observe.predict`). ``log`` is then the format by which its log is found: what is left there is of
    no account (empty: all is; see :mod:`bob.observe.leftovers`). ``refusals`` are the operations that it lacks,
    each with what the kernel says of it; workloads go without them (:mod:`bob.workload.lacking`). Where there are
    no ``lasting_inodes``, a file has another number at each mount.

    ``checker`` looks at a disk without changing it (empty if there is none), and ends with one of the codes ``clean``
    where it finds nothing. What the kernel says of any disk after a crash matches one of the regular expressions
    ``expected_messages``.

    ``declaration`` is the text of the file that declares it where that is the user's own, so that what was measured can
    be shown again without that file; empty of what bob ships.
    """

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
    declaration: str = ""

    @property
    def lacks(self) -> tuple[str, ...]:
        """The operations that it does not have, as :data:`bob.workload.lacking.LACKABLE` calls them."""
        return tuple(word for word, _said in self.refusals)


class FileSystemDeclaration(Declaration, frozen=True, kw_only=True):
    """The file of a file system: sizes are in MiB, commands are lines of a shell; what it ``lacks``, by operation."""

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

    def file_system(self, name: str) -> FileSystem:
        """Return the file system, which is called ``name``. Raises ValueError where it cannot be."""
        if unknown := [word for word in self.lacks if word not in LACKABLE]:
            raise ValueError(f"lacks: {unknown[0]!r} is none of {', '.join(LACKABLE)}")
        for one in self.expected_messages:
            try:
                re.compile(one)
            except re.error as error:
                raise ValueError(f"expected_messages: {one!r} is no regular expression: {error}") from None
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
    """The file system that ``word`` names: a shipped one by its name, one of the user's own by the path of its file,
    which has a ``/`` in it or ends in ``.toml``.

    Raises UsageError where there is none, and for a mistake in the user's file.
    """
    if is_file(word):
        path = Path(word)
        text = toml(path, "is this the file that declares it? See docs/add-a-file-system.md")
        if path.stem in file_systems():
            raise UsageError(
                f"{word}: bob has a file system {path.stem!r} already", hint=f"call the file my-{path.stem}.toml"
            )
        return declared_by(path.stem, text)
    known = file_systems().get(word)
    if known is None:
        hint = meant(word, file_systems())
        raise UsageError(f"unknown file system {word!r}", hint=hint)
    return known


def is_file(word: str) -> bool:
    """Whether ``word`` names a file that declares a file system, and not a shipped one."""
    return "/" in word or word.endswith(".toml")


def declared_by(name: str, text: str) -> FileSystem:
    """The file system of the user's own that is declared by ``text``, the contents of a file NAME.toml.

    Raises UsageError for what is wrong with either.
    """
    if not _NAME.fullmatch(name):
        hint = "letters, digits and . _ + -, 40 at most: it is what tables call the file system"
        raise UsageError(f"{name!r} is no name of a file system", hint=hint)
    return replace(_read(name, text), declaration=text)


@cache
def file_systems() -> dict[str, FileSystem]:
    """All that bob ships, by name. Raises UsageError for a declaration with a mistake."""
    files = {path.stem: path for path in sorted(_FOLDER.glob("*.toml"), key=lambda path: path.stem)}
    return {name: _read(name, toml(path, HINT)) for name, path in files.items()}


def _read(name: str, text: str) -> FileSystem:
    with mistakes_in(f"{name}.toml", HINT):
        return declared(FileSystemDeclaration, text).file_system(name)


def _command(key: str, text: str) -> tuple[str, ...]:
    words = tuple(shlex.split(text.replace("{uuid}", _UUID)))
    if words and words.count(DEVICE) != 1:
        raise ValueError(f"{key} does not say {DEVICE} once")
    return words
