"""Named sets of programs, and of models to hold them against: one TOML file each, in sets/ or anybody's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bob.errors import UsageError
from bob.subject.declarations import Table, read

_FOLDER = Path(__file__).with_name("sets")


@dataclass(frozen=True, slots=True)
class ProgramSet:
    """Programs and models, by name, with the title of their table and what is said below it.

    ``published`` has by the words for them the names of published counts, which stand beside.
    """

    name: str
    title: str
    about: str
    programs: tuple[str, ...]
    models: tuple[str, ...]
    published: Mapping[str, str]


def program_set_names() -> tuple[str, ...]:
    """Return the names of the shipped sets."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def load_program_set(name: str) -> ProgramSet:
    """Return the shipped set ``name``, or the set in the file of that path; raise UsageError if it has a mistake."""
    if name in program_set_names():
        return read(_FOLDER / f"{name}.toml", _set)
    if not Path(name).is_file():
        hint = f"bob has {', '.join(program_set_names())}; or name a TOML file"
        raise UsageError(f"there is no set of programs {name!r}", hint=hint)
    return read(Path(name), _set)


def _set(table: Table) -> ProgramSet:
    title, about = table.text("title"), table.text("about", "")
    return ProgramSet(
        table.name, title, about, table.names("programs", ()), table.names("models", ()), table.texts("published")
    )
