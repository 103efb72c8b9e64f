"""Run a Python program once for each sequence of choices that the program can make, depth first. A *place* is one
choice in a sequence. bob cannot copy a running program, so it runs the program again for each sequence. The new run
makes the same choices as the previous run, up to one place. At this place it takes the next option. bob refuses a
program that behaves differently when it makes the same choices again."""

import __future__

import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from types import BuiltinFunctionType, CellType, FrameType, FunctionType, ModuleType
from typing import Any

from bob.errors import UsageError
from bob.workload.python_calls import Stopped

MOST_CHOICES = 1000  # bob takes a run with more choices to be endless
MOST_SEQUENCES = 100_000  # they take two minutes if each takes a millisecond
_HINT = 'choose(3) gives 0, 1 or 2, and choose(["/a", "/b"]) one of the two'


@dataclass(frozen=True, slots=True)
class Place:
    """A choice that a run made. ``taken`` is the index of the option that the run took, and ``options`` is the number
    of options. ``values`` are the options themselves (None if bob cannot compare them). ``done`` has all operations
    that the run had done before this choice."""

    taken: int
    options: int
    values: Hashable
    done: Hashable


def first(_options: int) -> int:
    """Return the index of the first option, for a place that no earlier run has reached."""
    return 0


def following(places: Sequence[Place]) -> tuple[Place, ...] | None:
    """Return the choices that the next run must make first. ``places`` has all choices of the previous run. Return
    None if the program has no more sequences of choices."""
    left = len(places)
    while left and places[left - 1].taken + 1 == places[left - 1].options:
        left -= 1
    if not left:
        return None
    last = places[left - 1]
    return (*places[: left - 1], replace(last, taken=last.taken + 1))


def check_end(runs: int, places: Sequence[Place]) -> None:
    """Raise UsageError if a program has more sequences of choices than bob tries. The number of sequences is unknown
    until all have run, so bob uses a lower bound. It adds up the ``runs`` so far, and the options in ``places`` that no
    run has taken yet."""
    known = runs + sum(place.options - place.taken - 1 for place in places)
    if known > MOST_SEQUENCES:
        raise UsageError(
            f"there are at least {known:,} sequences of choices, and bob tries at most {MOST_SEQUENCES:,}",
            hint="offer fewer options, or draw some sequences: --sample N",
        )


class Choose:
    """The function ``choose`` that a program calls. bob makes one object for each run of the program. The first calls
    repeat the choices in ``again``, which an earlier run made. Each later call first calls ``goes_on`` with the
    program's frame. ``goes_on`` returns whether the run continues, and may raise UsageError. The call then gives
    ``pick`` the number of options, and takes the option whose index ``pick`` returns.

    ``done`` returns the operations that the run has done so far. ``stopped`` is the exception that ended the run
    early."""

    def __init__(
        self,
        again: Sequence[Place],
        done: Callable[[], Hashable],
        pick: Callable[[int], int] = first,
        goes_on: Callable[[FrameType], bool] = lambda _frame: True,
    ) -> None:
        self.places: list[Place] = []
        self.stopped: Stopped | None = None
        self._again, self._done, self._pick, self._goes_on = tuple(again), done, pick, goes_on

    def __call__(self, options: int | Sequence[Any]) -> Any:
        """Return one of ``options``. If ``options`` is a number n, return one of 0 to n - 1."""
        try:
            values = _values(options)
            taken = self._taken(values, sys._getframe(1))
        except UsageError as error:
            raise self._stop(error) from None
        if taken is None:
            raise self._stop(None)
        self.places.append(Place(taken, len(values), _compared(values), self._done()))
        return values[taken]

    @property
    def left(self) -> UsageError | None:
        """The user's mistake if the run ended before it had repeated all choices in ``again``, or None. A correct
        program repeats all of them."""
        if len(self.places) >= len(self._again):
            return None
        return self._unlike(f"ended, and in an earlier run it had {self._again[len(self.places)].options} options")

    def _taken(self, values: Sequence[Any], frame: FrameType) -> int | None:
        number = len(self.places)
        if number >= MOST_CHOICES:
            raise UsageError(
                f"a sequence has more than {MOST_CHOICES:,} choices",
                hint="end the loop after a fixed number of rounds, as for _ in range(3) does",
            )
        if number >= len(self._again):
            return self._pick(len(values)) if self._goes_on(frame) else None
        earlier = self._again[number]
        if earlier.options != len(values):
            raise self._unlike(f"had {len(values)} options, and {earlier.options} in an earlier run")
        if earlier.values != _compared(values):
            raise self._unlike("had other options than in an earlier run")
        if earlier.done != self._done():
            raise self._unlike("made other calls than in an earlier run")
        return earlier.taken

    def _unlike(self, what: str) -> UsageError:
        taken = ", ".join(str(place.taken) for place in self.places)
        after = f"after the choices {taken}" if taken else "before its first choice"
        return UsageError(
            f"two runs of the file differ: {after} it {what}",
            hint="a run may depend on fs and on its choices, but not on a clock, random numbers or the order of a set",
        )

    def _stop(self, error: UsageError | None) -> Stopped:
        self.stopped = Stopped(error)
        return self.stopped


def _values(options: object) -> Sequence[Any]:
    match options:
        case bool():
            pass
        case int() if 0 < options <= sys.maxsize:
            return range(options)
        case list() | tuple() | range() if options:
            return options
        case int() if options > 0:
            raise UsageError(f"choose(2**{options.bit_length() - 1} or more): too many options", hint=_HINT)
        case int() | list() | tuple() | range():
            raise UsageError(f"choose({options!r}): at least one option is needed", hint=_HINT)
    raise UsageError(f"choose() takes a number or a list, not a {type(options).__name__}", hint=_HINT)


def _compared(values: Sequence[Any]) -> Hashable:
    try:
        return value_of(values)
    except (TypeError, RecursionError):
        return None


def whereabouts(frame: FrameType | None, file: str, given: Sequence[object]) -> Hashable:
    """Return a key for the state of a running program: its position in the code, and the values of its variables. Two
    runs with equal keys continue in the same way if their later calls of bob's functions return the same values.

    ``file`` is the name of the program's file. ``given`` are objects, such as the simulated file system, that bob makes
    anew for each run. The key has only their index in ``given``. Raises TypeError if bob cannot compare a variable."""
    found: list[Hashable] = []
    variables: dict[str, Any] = {}
    while frame is not None:
        if frame.f_code.co_filename == file:
            found.append((frame.f_code, frame.f_lasti, value_of(dict(frame.f_locals), given)))
            variables = frame.f_globals
        frame = frame.f_back
    own = {name: value for name, value in variables.items() if not name.startswith("__")}
    return (*found, value_of(own, given))


def value_of(value: object, given: Sequence[object] = ()) -> Hashable:
    """Return a key for ``value``: equal values have equal keys, in all runs. ``given`` are objects that bob makes anew
    for each run. Their key is their index in ``given``. Raises TypeError for a kind of value that bob cannot
    compare."""
    for place, one in enumerate(given):
        if value is one:
            return "given", place
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    known = (*given, value)  # a list may contain itself, and a function may refer to itself

    def each(values: Iterable[object]) -> tuple[Hashable, ...]:
        return tuple(value_of(one, known) for one in values)

    match value:
        case Enum():
            return kind, value.name
        case None | bool() | int() | float() | str() | bytes() | range():
            return kind, value
        case list() | tuple():
            return kind, each(value)
        case dict():
            return kind, each(value.items())
        case set() | frozenset():
            return kind, frozenset(each(value))
        case type():
            return kind, value.__module__, value.__qualname__
        case BuiltinFunctionType(__self__=None | ModuleType()):
            return kind, value.__module__, value.__qualname__
        case ModuleType():
            return kind, value.__name__
        case FunctionType():
            defaults = each(value.__defaults__ or ()), value_of(value.__kwdefaults__, known)
            return kind, value.__code__, defaults, each(map(_content, value.__closure__ or ()))
        case __future__._Feature():
            return kind, repr(value)
    if is_dataclass(value) and not isinstance(value, type):
        return kind, each(getattr(value, field.name) for field in fields(value))
    raise TypeError(kind)


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return None
