"""Named sets of programs, and of models to compare them with: one TOML file each, in sets/ or a user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bob.errors import UsageError
from bob.schema import Declaration, NonEmpty, adapt, declared, field, mistakes_in, toml

HINT = "see docs/formats.md"

_FOLDER = Path(__file__).with_name("sets")


@dataclass(frozen=True, slots=True)
class ProgramSet:
    """Programs and models, by name, with the title of their table and the text below it.

    ``published`` has names of published counts by the words for them.
    """

    name: str
    title: str
    about: str
    programs: tuple[str, ...]
    models: tuple[str, ...]
    published: Mapping[str, str]


class ProgramSetDeclaration(Declaration, frozen=True):
    """The file of a set."""

    title: str
    about: str = ""
    programs: tuple[NonEmpty, ...] = ()
    models: tuple[NonEmpty, ...] = ()
    published: Mapping[str, str] = field(default_factory=dict)


def program_set_names() -> tuple[str, ...]:
    """Return the names of the shipped sets."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def load_program_set(name: str) -> ProgramSet:
    """Return the shipped set ``name``, or the set in the file of that path; raise UsageError if it has a mistake."""
    path = _FOLDER / f"{name}.toml" if name in program_set_names() else Path(name)
    if not path.is_file():
        hint = f"bob has {', '.join(program_set_names())}; or name a TOML file"
        raise UsageError(f"there is no set of programs {name!r}", hint=hint)
    with mistakes_in(path.name, HINT):
        return adapt(ProgramSet, declared(ProgramSetDeclaration, toml(path, HINT)), name=path.stem)
