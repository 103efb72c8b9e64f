"""Named sets of configurations: one TOML file each, shipped in sets/ or anybody's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bob.errors import UsageError
from bob.subject.configuration import Configuration, configuration
from bob.subject.declarations import Table, read
from bob.subject.file_system import MIB, is_file

_FOLDER = Path(__file__).with_name("sets")


@dataclass(frozen=True, slots=True)
class ConfigurationSet:
    """Configurations that are probed together, in the order of the table's columns. ``shard`` says that they are a part
    of a set: the Kth of N."""

    name: str
    about: str
    configurations: tuple[Configuration, ...]
    shard: tuple[int, int] = (1, 1)

    def part(self, shard: int, shards: int) -> ConfigurationSet:
        """The configurations of a shard: they take turns. Raises UsageError where there is none."""
        mine = self.configurations[shard - 1 :: shards]
        if not mine:
            there = len(self.configurations)
            hint = f"--shard K/{there} at most: a configuration is not divided"
            raise UsageError(f"--shard {shard}/{shards}: {self.name} has {there} configurations", hint=hint)
        return replace(self, configurations=mine, shard=(shard, shards))


def set_names() -> tuple[str, ...]:
    """The names of the shipped sets."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def load_set(name: str) -> ConfigurationSet:
    """The shipped set ``name``, or the set in the file of that path. Raises UsageError for a mistake in it."""
    if name in set_names():
        return read(_FOLDER / f"{name}.toml", partial(_set, _FOLDER))
    path = Path(name)
    if not path.is_file():
        raise UsageError(f"there is no set {name!r}", hint=f"bob has {', '.join(set_names())}; or name a TOML file")
    return read(path, partial(_set, path.parent))


def _set(folder: Path, table: Table) -> ConfigurationSet:
    about = table.text("about", "")
    configurations = tuple(_configuration(folder, one) for one in table.tables("configurations"))
    names = [one.name for one in configurations]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"two configurations are called {twice!r}")
    return ConfigurationSet(table.name, about, configurations)


def _configuration(folder: Path, table: Table) -> Configuration:
    fs = table.text("fs")
    made = configuration(
        fs=str(folder / fs) if is_file(fs) else fs,  # beside the set, wherever bob is called
        mkfs_options=table.text("mkfs_options", ""),
        mount_options=table.text("mount_options", ""),
        device=round(table.number("device_mib", 0)) * MIB,
        name=table.text("name", ""),
    )
    table.done()
    return made
