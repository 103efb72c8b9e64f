"""The points of a result in KTAP, version 1, for the tools and dashboards of kernel developers. A point is the answer
to one question, such as whether a property holds (:mod:`bob.report.points`). The kernel's
Documentation/dev-tools/ktap.rst describes the format. Each suite is a test, and its points are the subtests."""

from collections.abc import Iterator, Sequence

from bob.report.escape import clean
from bob.report.points import Outcome, Point, Suite

_VERSION = "KTAP version 1"


def to_ktap(suites: Sequence[Suite]) -> str:
    """Return ``suites`` (each has the points of one configuration or program) as KTAP in UTF-8. A point that failed has
    its evidence behind the mark ``#``. An unknown point is "not ok", with the directive ERROR. The lines before a
    result have its details, as diagnostics."""
    lines = [_VERSION, f"1..{len(suites)}"]
    for number, suite in enumerate(suites, start=1):
        lines += (f"  {line}" for line in (_VERSION, f"1..{len(suite.points)}", *_about(suite)))
        for place, point in enumerate(suite.points, start=1):
            lines += (f"  {line}" for line in _subtest(place, point))
        lines += _result(number, suite.name, _outcome(suite))
    return "\n".join(lines) + "\n"


def _about(suite: Suite) -> Iterator[str]:
    for name, value in suite.about:
        yield _diagnostic(f"{name}: {value}")
    yield from map(_diagnostic, suite.notes)


def _subtest(number: int, point: Point) -> Iterator[str]:
    yield from map(_diagnostic, point.details)
    if point.seconds is not None:
        yield _diagnostic(f"took {point.seconds:g} s")
    yield from _result(number, point.name, point.outcome, point.message)


def _result(number: int, name: str, outcome: Outcome, why: str = "") -> Iterator[str]:
    directive = {Outcome.UNKNOWN: "ERROR", Outcome.SKIPPED: "SKIP"}.get(outcome, "")
    is_ok = outcome in (Outcome.PASSED, Outcome.SKIPPED)
    # A hash would begin the directive, so the name cannot have one.
    said = f"{'ok' if is_ok else 'not ok'} {number} {_line(name).replace('#', '')}"
    behind = " ".join(filter(None, (directive, _line(why))))
    yield f"{said} # {behind}" if behind else said


def _outcome(suite: Suite) -> Outcome:
    """Return the outcome of a test: it fails if a subtest fails or is unknown, and is skipped if all are skipped."""
    if suite.count(Outcome.FAILED) + suite.count(Outcome.UNKNOWN):
        return Outcome.FAILED
    return Outcome.SKIPPED if suite.count(Outcome.SKIPPED) == len(suite.points) else Outcome.PASSED


def _diagnostic(text: str) -> str:
    return f"# {_line(text)}".rstrip()


def _line(text: str) -> str:
    return " ".join(clean(text).split())
