"""What bob has to know of a file system, as declared in file-systems/NAME.toml, or in a file of the user's own."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from bob.errors import UsageError, meant
from bob.subject.declarations import Table, read, read_text
from bob.workload.lacking import LACKABLE

MIB = 1024 * 1024
DEVICE = "DEVICE"
"""Stands for the device's path in the commands of a declaration."""

LOGS = ("xfs",)
"""Formats of which the log can be found (:mod:`bob.blocks.xfs_geometry`)."""

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
    no account (empty: all is; see :mod:`bob.observe.left_behind`). ``refusals`` are the operations that it lacks,
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
    log: str = ""
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


def file_system(word: str) -> FileSystem:
    """The file system that ``word`` names: a shipped one by its name, one of the user's own by the path of its file,
    which has a ``/`` in it or ends in ``.toml``.

    Raises UsageError where there is none, and for a mistake in the user's file.
    """
    if is_file(word):
        path = Path(word)
        try:
            text = path.read_bytes().decode()
        except OSError as error:
            hint = "is this the file that declares it? See docs/add-a-file-system.md"
            raise UsageError(f"cannot read {word}: {error.strerror}", hint=hint) from None
        except UnicodeDecodeError as error:
            raise UsageError(f"{path.name}: {error}", hint="it is a TOML file, in UTF-8") from None
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
    return replace(read_text(f"{name}.toml", text, _file_system), declaration=text)


@cache
def file_systems() -> dict[str, FileSystem]:
    """All that bob ships, by name. Raises UsageError for a declaration with a mistake."""
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
        commit=table.number("commit", 5.0),
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
