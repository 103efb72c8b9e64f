"""Named sets of programs under test. A set also has the names of models (descriptions of the states that a crash of a
file system may leave). bob tests each program on real file systems and on these models, and one table shows
the results of both. Each set is a TOML
file in the folder sets/, or a file of the user."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bob.errors import UsageError
from bob.schema import Declaration, NonEmpty, adapt, declared, field, mistakes_in, toml

HINT = "see docs/formats.md"

_FOLDER = Path(__file__).with_name("sets")


@dataclass(frozen=True, slots=True)
class ProgramSet:
    """The names of programs and models for one table, with its ``title`` and the text ``about``. bob can show published
    numbers beside its own. ``published`` maps the title of a row to the key of its published numbers in
    reports/published/programs.json."""

    name: str
    title: str
    about: str
    programs: tuple[str, ...]
    models: tuple[str, ...]
    published: Mapping[str, str]


class ProgramSetDeclaration(Declaration, frozen=True):
    title: str
    about: str = ""
    programs: tuple[NonEmpty, ...] = ()
    models: tuple[NonEmpty, ...] = ()
    published: Mapping[str, str] = field(default_factory=dict)


def program_set_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def load_program_set(name: str) -> ProgramSet:
    """Return the set that bob ships as ``name``, or the set in the TOML file at the path ``name``. Raises UsageError if
    there is no such set, or if its file has a mistake."""
    path = _FOLDER / f"{name}.toml" if name in program_set_names() else Path(name)
    if not path.is_file():
        hint = f"bob has {', '.join(program_set_names())}; or name a TOML file"
        raise UsageError(f"unknown set of programs {name!r}", hint=hint)
    with mistakes_in(path.name, HINT):
        return adapt(ProgramSet, declared(ProgramSetDeclaration, toml(path, HINT)), name=path.stem)
