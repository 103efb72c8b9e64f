"""Losses after a crash that are not a bug of the program, because its documentation does not rule them out. The file
reports/published/promises.toml lists these losses for programs that bob ships (docs/formats.md)."""

from functools import cache

from bob.answer.answer import Answer
from bob.answer.result import AskedProgram
from bob.errors import MalformedError
from bob.program.answer import Consequence
from bob.program.folder import load, shipped_programs
from bob.resources import shipped
from bob.schema import Declaration, NonEmpty, OneLine, declared, mistakes_in, toml

_FILE = "promises.toml"
_HINT = "see docs/formats.md"


class LeftOpen(Declaration, frozen=True):
    """Losses that the documentation of ``programs`` does not rule out. ``because`` says why the losses are left
    open."""

    programs: tuple[NonEmpty, ...]
    losses: tuple[Consequence, ...]
    because: OneLine

    @property
    def words(self) -> str:
        return ", ".join(sorted(loss.words for loss in self.losses))


class PromisesDeclaration(Declaration, frozen=True):
    open: tuple[LeftOpen, ...]


@cache
def promises() -> tuple[LeftOpen, ...]:
    """Return the losses that documentation does not rule out, in the order of the file. Raise MalformedError if the
    file is damaged."""
    text = toml(shipped("reports/published") / _FILE, _HINT)
    with mistakes_in(_FILE, _HINT, MalformedError):
        return declared(PromisesDeclaration, text).open


def left_open(program: AskedProgram) -> tuple[LeftOpen, ...]:
    """Return the losses that the documentation of ``program`` does not rule out. Return an empty tuple if bob does not
    ship ``program``. A user's program may have the name of a shipped program, so bob also compares the digests of the
    two."""
    found = tuple(one for one in promises() if program.name in one.programs)
    return found if found and program.digest == _shipped_digest(program.name) else ()


@cache
def _shipped_digest(name: str) -> str:
    return load(shipped_programs()[name]).digest


def is_left_open(program: AskedProgram, answer: Answer) -> bool:
    """Return whether each way to break ``program`` in ``answer`` is a loss that the program's documentation does not
    rule out."""
    losses = {loss for one in left_open(program) for loss in one.losses}
    return bool(answer.ways) and all(way.consequence in losses for way in answer.ways)
