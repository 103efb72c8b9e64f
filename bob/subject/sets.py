"""Named sets of configurations. A configuration is a subject (:mod:`bob.subject.subject`) that bob tests. A TOML file
declares each set. bob ships some of these files in sets/; others are the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from bob.errors import UsageError
from bob.resources import shipped
from bob.schema import Amount, Declaration, OneLine, OneWord, declared, mistakes_in, toml
from bob.subject.file_system import HINT, MIB, is_file
from bob.subject.subject import Subject, configuration

_FOLDER = Path(__file__).with_name("sets")


@dataclass(frozen=True, slots=True)
class ConfigurationSet:
    """Configurations that bob tests in one run. The table of bob has one column for each configuration, in this order.
    If ``shard`` is (K, N), the configurations are only the K-th of N parts of the set.

    A row of the table is a property that bob tests. If the set has rows of its own, ``rows`` is the file that declares
    them. ``asks`` maps the name of a configuration to the names of the rows that bob tests on it. If ``asks`` lacks a
    configuration, bob tests all rows on it."""

    name: str
    about: str
    configurations: tuple[Subject, ...]
    shard: tuple[int, int] = (1, 1)
    rows: Path | None = None
    asks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def part(self, shard: int, shards: int) -> ConfigurationSet:
        """Return the part with the number ``shard`` (from 1) when the set is divided into ``shards`` parts. The part
        begins with the configuration number ``shard`` of the set, and then takes every ``shards``-th one. Raise
        UsageError if the part is empty."""
        mine = self.configurations[shard - 1 :: shards]
        if not mine:
            there = len(self.configurations)
            hint = f"--shard K/{there} at most: each part needs a configuration"
            raise UsageError(f"--shard {shard}/{shards}: {self.name} has {there} configurations", hint=hint)
        return replace(self, configurations=mine, shard=(shard, shards))


class ConfigurationDeclaration(Declaration, frozen=True):
    fs: str
    mkfs_options: str = ""
    mount_options: str = ""
    device_mib: Amount = 0
    stack: str = ""
    missing: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    name: str = ""
    asks: tuple[OneWord, ...] = ()

    def configuration(self, folder: Path) -> Subject:
        """Return the declared configuration. ``folder`` is the folder of the set's file. The declaration may name the
        user's own file systems and layers by the paths of their files, relative to this folder."""
        fs, *on = (
            str(folder / word) if is_file(word) else word for word in (self.fs, *filter(None, self.stack.split(",")))
        )
        device = round(self.device_mib) * MIB
        options = self.mkfs_options, self.mount_options
        return configuration(fs, *options, device, self.name, on=",".join(on), missing=self.missing, lost=self.lost)


class SetDeclaration(Declaration, frozen=True, kw_only=True):
    about: str = ""
    rows: OneLine | None = None
    asks: tuple[OneWord, ...] = ()
    configurations: Annotated[tuple[ConfigurationDeclaration, ...], Meta(min_length=1)]


def set_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def load_set(name: str) -> ConfigurationSet:
    """Return the shipped set ``name``, or the set in the file ``name``. Raise UsageError for a mistake in the file."""
    path = _FOLDER / f"{name}.toml" if name in set_names() else Path(name)
    if not path.is_file():
        raise UsageError(f"unknown set {name!r}", hint=f"bob has {', '.join(set_names())}; or name a TOML file")
    with mistakes_in(path.name, HINT):
        asked = declared(SetDeclaration, toml(path, HINT))
        configurations = tuple(one.configuration(path.parent) for one in asked.configurations)
        names = [one.name for one in configurations]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two configurations have the name {twice!r}")
        each = zip(names, (one.asks or asked.asks for one in asked.configurations), strict=True)
        asks = {name: rows for name, rows in each if rows}
        if asks and asked.rows is None:
            raise ValueError(f"{next(iter(asks))!r} has 'asks', but the set has no 'rows'")
    rows = None if asked.rows is None else _rows_file(asked.rows, path.parent)
    return ConfigurationSet(path.stem, asked.about, configurations, rows=rows, asks=asks)


def _rows_file(word: str, folder: Path) -> Path:
    """Return the path of the file with rows that ``word`` names. It is a shipped file, or the path of a file relative
    to ``folder``."""
    return folder / word if is_file(word) else shipped("probes") / "tables" / f"{word}.toml"
