"""What bob has to know of a file system, as declared in file-systems/NAME.toml."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bob.subject.declarations import Table, read
from bob.workload.lacking import LACKABLE

MIB = 1024 * 1024
DEVICE = "DEVICE"
"""Stands for the device's path in the commands of a declaration."""

LOGS = ("xfs",)
"""Formats of which the log can be found (:mod:`bob.blocks.xfs_geometry`)."""

_FOLDER = Path(__file__).with_name("file-systems")
_UUID = "b0b0b0b0-0000-4000-8000-000000000b0b"


@dataclass(frozen=True, slots=True)
class FileSystem:
    """How a file system is made, mounted, recovered and waited for. Sizes are in bytes, times in guest seconds.

    ``driver`` is what mount(2) is told, ``module`` the kernel module that it is in. ``mkfs`` is the command with
    everything taken out of it that would differ from run to run (UUID, hash seed), no discards (they would erase the
    stale pattern) and nothing left to background initialisation. ``check`` is what a boot would run before it mounts
    the file system after a crash (empty where mounting recovers), ``repair`` what is run when a crash state does not
    mount.

    The file system counts as done when its device has been silent for ``quiet``: longer than any timer of its own.
    One that is never silent is given ``enough`` seconds after the operations (0: as long as it takes). One that is
    silent and ``keeps_commits`` in memory until something syncs is synced when it has been silent.

    ``package`` is where mkfs comes from, ``device`` the default size of the probed device, ``smallest`` the least
    that mkfs takes. ``names`` are what the field calls it under certain mount options: (options, name).
    ``default_options`` are those that the kernel takes where nothing else is said. ``note`` is for readers of the
    results. ``forgets`` says that recovery takes each block by itself, and makes the same of old and of new ones
    (see :mod:`bob.observe.predict`). ``log`` is then the format by which its log is found: what is left there is of
    no account (empty: all is; see :mod:`bob.observe.left_behind`). ``refusals`` are the operations that it lacks,
    each with what the kernel says of it; workloads go without them (:mod:`bob.workload.lacking`). Where there are
    no ``lasting_inodes``, a file has another number at each mount.

    ``checker`` looks at a disk without changing it (empty if there is none), and ends with one of the codes ``clean``
    where it finds nothing. What the kernel says of any disk after a crash matches one of the regular expressions
    ``expected_messages``.
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
    check: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    default_options: str = ""
    note: str = ""
    forgets: bool = False
    log: str = ""
    refusals: tuple[tuple[str, str], ...] = ()
    lasting_inodes: bool = True
    checker: tuple[str, ...] = ()
    clean: tuple[int, ...] = (0,)
    expected_messages: tuple[str, ...] = ()

    @property
    def lacks(self) -> tuple[str, ...]:
        """The operations that it does not have, as :data:`bob.workload.lacking.LACKABLE` calls them."""
        return tuple(word for word, _said in self.refusals)


@cache
def file_systems() -> dict[str, FileSystem]:
    """All that are declared, by name. Raises UsageError for a declaration with a mistake."""
    return {path.stem: read(path, _file_system) for path in sorted(_FOLDER.glob("*.toml"), key=lambda path: path.stem)}


def _file_system(table: Table) -> FileSystem:
    return FileSystem(
        name=table.name,
        driver=table.text("driver", table.name),
        module=table.text("module", table.name),
        package=table.text("package"),
        mkfs=_command(table, "mkfs"),
        repair=_command(table, "repair"),
        device=round(table.number("device_mib")) * MIB,
        smallest=round(table.number("smallest_mib")) * MIB,
        quiet=table.number("quiet"),
        enough=table.number("enough", 0.0),
        keeps_commits=table.truth("keeps_commits", False),
        check=_command(table, "check", ""),
        names=tuple(table.texts("names").items()),
        default_options=table.text("default_options", ""),
        note=table.text("note", ""),
        forgets=table.truth("forgets", False),
        log=_log(table),
        refusals=_refusals(table),
        lasting_inodes=table.truth("lasting_inodes", True),
        checker=_command(table, "checker", ""),
        clean=table.codes("clean", (0,)),
        expected_messages=table.patterns("expected_messages"),
    )


def _refusals(table: Table) -> tuple[tuple[str, str], ...]:
    refusals = table.texts("lacks")
    if unknown := [word for word in refusals if word not in LACKABLE]:
        raise ValueError(f"lacks: {unknown[0]!r} is none of {', '.join(LACKABLE)}")
    return tuple(refusals.items())


def _log(table: Table) -> str:
    log = table.text("log", "")
    if log not in ("", *LOGS):
        raise ValueError(f"log = {log!r} is none of the formats of which bob finds the log: {', '.join(LOGS)}")
    return log


def _command(table: Table, key: str, *default: str) -> tuple[str, ...]:
    words = tuple(shlex.split(table.text(key, *default).replace("{uuid}", _UUID)))
    if words and words.count(DEVICE) != 1:
        raise ValueError(f"{key} does not say {DEVICE} once")
    return words
