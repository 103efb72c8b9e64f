"""Guarantees that programs want (*idioms*). The file claims.toml declares them, and a model either gives an idiom or
does not. A model is a set of clauses. A *clause* is one promise about crash states."""

from functools import cache
from pathlib import Path

from bob.apm.clauses import Clause, matching
from bob.apm.export.standing import Guarantee
from bob.apm.model import Model
from bob.schema import Declaration, OneLine, declared, mistakes_in, toml

_FILE = Path(__file__).with_name("claims.toml")
_HINT = "the head of the file says what belongs there"


class Idiom(Declaration, frozen=True, kw_only=True):
    """A guarantee that a program may want, such as an atomic replacement of a file. A model gives this guarantee if it
    promises the clauses ``rests_on``. bob's web site shows whether a file system gives it. The site takes this answer
    from the row ``row`` of its table (Table 1 of OSDI'14). If ``row`` is empty, it takes the answer from bob's tests of
    the program ``program``. If both are empty, it takes the answer from the clauses. ``id`` is the anchor on the site.
    If it is empty, the site does not show the idiom."""

    id: str = ""
    sentence: OneLine
    rests_on: tuple[str, ...] = ()
    row: str = ""
    program: str = ""
    advice: str = ""

    def __post_init__(self) -> None:
        matching(*self.rests_on)  # raises an error for a misspelt clause

    @property
    def clauses(self) -> tuple[Clause, ...]:
        return matching(*self.rests_on)


class IdiomGroup(Declaration, frozen=True):
    """A group of idioms on the site, with a ``title`` and the introduction ``about``."""

    title: OneLine
    about: OneLine
    idiom: tuple[Idiom, ...]


class IdiomsDeclaration(Declaration, frozen=True):
    group: tuple[IdiomGroup, ...]


@cache
def groups() -> tuple[IdiomGroup, ...]:
    """Return all idioms that claims.toml declares, in the groups and the order of that file. Raises UsageError if the
    file is damaged."""
    with mistakes_in(_FILE.name, _HINT):
        return declared(IdiomsDeclaration, toml(_FILE, _HINT)).group


def claims(model: Model) -> tuple[Guarantee, ...]:
    return tuple(
        Guarantee(idiom.sentence, tuple(map(model.finding, idiom.clauses)))
        for group in groups()
        for idiom in group.idiom
        if idiom.rests_on
    )
