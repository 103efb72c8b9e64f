"""The points of a result as JUnit XML for a CI. A point is the answer to one question, such as whether a property holds
(:mod:`bob.report.points`). No standard defines JUnit XML. This module writes the form that the schema of Jenkins'
plugin xunit demands. GitLab, GitHub's reporters and other readers accept this form too. An unknown point is an
``error``, which all these readers count as a failure."""

from collections.abc import Sequence
from xml.etree import ElementTree

from bob.report.escape import clean
from bob.report.points import Outcome, Point, Suite

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_TAGS = {Outcome.FAILED: "failure", Outcome.UNKNOWN: "error", Outcome.SKIPPED: "skipped"}


def to_junit(suites: Sequence[Suite]) -> str:
    """Return ``suites`` (each has the points of one configuration or program) as XML in UTF-8. A character that XML
    does not allow becomes U+FFFD."""
    root = ElementTree.Element("testsuites", {"name": "bob", **_counts(suites)})
    known = [suite.seconds for suite in suites if suite.seconds is not None]
    if known:  # all suites of one run have the run's time
        root.set("time", str(max(known)))
    for suite in suites:
        root.append(_suite(suite))
    ElementTree.indent(root)
    return f"{_HEAD}{ElementTree.tostring(root, encoding='unicode')}\n"


def _suite(suite: Suite) -> ElementTree.Element:
    made = ElementTree.Element("testsuite", {"name": _line(suite.name), **_counts([suite])})
    made.set("skipped", str(suite.count(Outcome.SKIPPED)))
    if suite.started:
        made.set("timestamp", _line(suite.started).removesuffix("Z"))  # readers expect a time without a zone
    if suite.about:
        about = ElementTree.SubElement(made, "properties")
        for name, value in suite.about:
            ElementTree.SubElement(about, "property", name=_line(name), value=_line(value))
    for point in suite.points:
        made.append(_case(suite, point))
    if suite.notes:
        ElementTree.SubElement(made, "system-out").text = _text(suite.notes)
    return made


def _case(suite: Suite, point: Point) -> ElementTree.Element:
    made = ElementTree.Element("testcase", classname=_line(suite.name), name=_line(point.name))
    if point.seconds is not None:
        made.set("time", f"{point.seconds:g}")
    if tag := _TAGS.get(point.outcome):
        why = ElementTree.SubElement(made, tag, message=_line(point.message))
        if tag != "skipped":
            why.set("type", "better" if point.is_better else point.outcome.value)
        why.text = _text(point.details)
    elif point.details:
        ElementTree.SubElement(made, "system-out").text = _text(point.details)
    return made


def _counts(suites: Sequence[Suite]) -> dict[str, str]:
    return {
        "tests": str(sum(len(suite.points) for suite in suites)),
        "failures": str(sum(suite.count(Outcome.FAILED) for suite in suites)),
        "errors": str(sum(suite.count(Outcome.UNKNOWN) for suite in suites)),
    }


def _line(text: str) -> str:
    return " ".join(clean(text).split())


def _text(lines: Sequence[str]) -> str:
    return "\n".join(clean(line) for line in lines)
