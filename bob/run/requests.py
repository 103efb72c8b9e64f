"""What may be asked, in words: the command line and :mod:`bob` from Python make their requests here, so both ask the
same and refuse the same. All that is wrong is a UsageError, before anything starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from os import PathLike
from typing import TypeVar, cast

from bob.catalogue.probe_files import check_own, parse_finish
from bob.catalogue.sets import Rows, probes_of
from bob.claim.expectation.evaluate import check
from bob.claim.expectation.language import parse as parse_expectation
from bob.claim.expectation.syntax import Expectation
from bob.crash.caches import CACHES
from bob.crash.device import DeviceModel
from bob.errors import PointedError, UsageError, meant
from bob.guest.capacity import check_device, check_jobs
from bob.judge.tried import Trial
from bob.request import DEFAULT_IMAGE, Host, ProbeRequest
from bob.settings import forget, settings
from bob.subject import DEFAULT_BUDGET, Configuration, FileSystem
from bob.trace.completion import Completion
from bob.workload.finishes import default_finishes
from bob.workload.history import History
from bob.workload.lacking import LACKABLE
from bob.workload.language import parse, places
from bob.workload.operations import At, Operation, Workload
from bob.workload.simulation import RefusedError, simulate

RECORDED_ON = "ext4"
"""Where only models are asked, a program is recorded on this file system, at its undisturbed pace."""
ALL = "all"
"""In place of a property's name: every one that is shipped."""
MOST_WITNESSES = 5
"""So many ways to break an expectation are kept as witnesses by default."""

Word = TypeVar("Word", bound=Enum)
One = TypeVar("One", bound="str | PathLike[str]")


def asked_request(
    configuration: Configuration,
    *,
    image: str | None,
    jobs: int | None,
    budget: int | None,
    audit: float,
    seed: int,
    write_cache: str,
    atomic_write: int,
    completion: str,
) -> ProbeRequest:
    """How and where a configuration is asked, as the arguments of Python's functions say it. What is None is as
    bob.toml says, or else as it is by default.

    Raises UsageError where that cannot be, or bob.toml is wrong.
    """
    from bob.run.agents import check_image  # takes a while to load

    host, said = asked_host(jobs), settings()
    name = image or said.image or DEFAULT_IMAGE
    check_image(name)
    return ProbeRequest(
        configuration=configuration,
        image=name,
        host=host,
        budget=budget if budget is not None else said.budget or DEFAULT_BUDGET,
        seed=seed,
        model=device_model(write_cache, atomic_write, completion),
        audit=audit,
    )


def asked_host(jobs: int | None) -> Host:
    """Where guests run: ``jobs`` of them side by side; of None, as many as bob.toml says, or else as fit. It is read
    anew, as a question begins."""
    forget()
    return Host(jobs=settings().jobs if jobs is None else jobs)


def several(one_or_more: One | Iterable[One]) -> tuple[One, ...]:
    """What may stand alone where several may stand: a text or a path."""
    if isinstance(one_or_more, str | PathLike):
        return (cast(One, one_or_more),)
    return tuple(one_or_more)


def property_names(rows: Rows) -> tuple[str, ...]:
    """The properties that can be asked for by name among ``rows``."""
    return tuple(probe.property.name for probe in probes_of(rows))


def word(kind: type[Word], said: str, what: str) -> Word:
    """The member of ``kind`` whose value is ``said``."""
    try:
        return kind(said)
    except ValueError:
        raise UsageError(f"unknown {what} {said!r}", hint=meant(str(said), [str(one.value) for one in kind])) from None


def device_model(write_cache: str, atomic_write: int, completion: str) -> DeviceModel:
    """The disk that is assumed; ``atomic_write`` is in bytes."""
    if write_cache not in CACHES:
        raise UsageError(f"unknown write cache {write_cache!r}", hint=meant(write_cache, CACHES))
    return DeviceModel(CACHES[write_cache], atomic_write, word(Completion, completion, "completion"))


def checked(request: ProbeRequest) -> ProbeRequest:
    """``request`` with each property once, and all of them in place of the word ``all``.

    Raises UsageError for properties that are not among the rows, probes of one name, a device that cannot be, more
    guests than fit, and numbers that say nothing.
    """
    check_device(request.configuration)
    check_own(request.probes)
    _check_numbers(request)
    known = property_names(request.rows)
    names = [name for one in request.properties for name in (known if one == ALL else (one,))]
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"unknown property {unknown[0]!r}", hint=meant(unknown[0], [*known, ALL]))
    return replace(request, properties=tuple(dict.fromkeys(names)))


def _check_numbers(request: ProbeRequest) -> None:
    if request.budget < 1:
        raise UsageError(f"a budget of {request.budget} mounts explores nothing", hint="1 or more for each workload")
    if not 0 <= request.audit <= 1:
        raise UsageError(f"an audit of {request.audit} is no share", hint="from 0 to 1, for example 0.01")
    if request.recovery_crashes < 0:
        raise UsageError(f"{request.recovery_crashes} recoveries cannot be crashed", hint="0 or more")
    check_jobs(request.host.jobs)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the parts of a quick question are called where a mistake in one is told."""

    setup: str
    operations: str
    finish: str
    expect: str


PYTHON_PARTS = Parts("setup", "operations", "finishes", "expect")
"""As arguments of :func:`bob.try_`."""


@dataclass(frozen=True, slots=True)
class Question:
    """A quick question as it is written: what is done after ``setup``, and what is expected after a crash.

    It is asked after each of the ``finishes``, or those by default where there are none. ``parts`` says what these are
    called.
    """

    operations: str
    expected: Sequence[str]
    setup: str = ""
    finishes: Sequence[str] = ()
    at: At = At.END
    most_witnesses: int = MOST_WITNESSES
    parts: Parts = PYTHON_PARTS

    @property
    def there(self) -> str:
        """The hint for an operation that finds no file."""
        return f"what {self.parts.setup} makes is there when the first operation begins"


def trial(question: Question, request: ProbeRequest) -> Trial:
    """``question``, read, to be asked as ``request`` says. A mistake is pointed at in the text that has it.

    Raises UsageError, and what :func:`checked` raises.
    """
    request = checked(request)
    workloads, history = _workloads(question, request.configuration.fs)
    if not question.expected:
        raise UsageError("nothing is expected", hint=f"{question.parts.expect}, for example 'content /a = new'")
    if question.most_witnesses < 1:
        raise UsageError(f"{question.most_witnesses} witnesses show nothing", hint="1 or more for each expectation")
    expectations = tuple(_expectation(text, history, question.parts.expect) for text in question.expected)
    return Trial(request, workloads, expectations, question.most_witnesses)


def _workloads(question: Question, fs: FileSystem) -> tuple[tuple[Workload, ...], History]:
    """What is asked for, once for each finish, and what it does where nothing crashes."""
    parts = question.parts
    with _naming(parts.setup):
        initial = parse(question.setup)
    with _naming(parts.operations):
        performed = parse(question.operations)
    if not performed:
        raise UsageError("there are no operations to be tried", hint="such as 'write /a 0 4096; fsync /a'")
    texts = ((parts.setup, question.setup, initial), (parts.operations, question.operations, performed))
    for part, text, done in texts:
        _check_lacks(part, text, done, fs)
    asked = []
    for finish in question.finishes:
        with _naming(parts.finish):
            asked.append(parse_finish(finish, performed))
    try:
        history = simulate(Workload("try", initial, performed))[0]
        workloads = [
            Workload("try", initial, performed, finish, question.at)
            for finish in dict.fromkeys(asked) or default_finishes(history)
        ]
        for workload in workloads:
            simulate(workload)
    except RefusedError as error:
        hint = None if error.is_too_large else question.there
        for part, text, done in texts:
            for one, place in zip(done, places(text), strict=True):
                if one is error.operation:
                    with _naming(part):
                        raise PointedError(error.why, text, *place, hint=hint) from None
        raise UsageError(f"{parts.finish}: {error.why}", hint=hint) from None
    return tuple(workloads), history


def _check_lacks(part: str, text: str, done: tuple[Operation, ...], fs: FileSystem) -> None:
    """Raise PointedError for an operation that the file system lacks."""
    for one, place in zip(done, places(text), strict=True):
        for lacked, said in fs.refusals:
            if LACKABLE[lacked](one):
                hint = f"the kernel says: {said}; {fs.name} lacks {', '.join(fs.lacks)}"
                with _naming(part):
                    raise PointedError(f"{fs.name} cannot do '{lacked}'", text, *place, hint=hint)


def _expectation(text: str, history: History, part: str) -> Expectation:
    with _naming(part):
        found = parse_expectation(text)
        check(found, history)
    return found


@contextmanager
def _naming(part: str) -> Iterator[None]:
    """Have a mistake in the text of ``part`` say so, and where in it."""
    try:
        yield
    except PointedError as error:
        raise PointedError(
            f"{part}, {error.place}: {error.message}", error.text, error.start, error.stop, hint=error.hint
        ) from None
