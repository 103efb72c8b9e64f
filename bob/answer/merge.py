"""Merge several results into one. Each result is about some columns of a table (configurations), about some workloads
of a search, or about a program in some configurations. A *subject* is a configuration of a file system, or a model.
Subjects with the same name become one subject, with the recordings of all. An *answer* is a verdict on one claim (what
each crash state should satisfy). Each *way* of an answer is one kind of crash state that breaks the claim. Its
*evidence* says in a line what is wrong. A *witness* is a file with such a crash state."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bob.answer.answer import Answer, Way
from bob.answer.result import Cause, Finding, Result, Run, SubjectResult
from bob.claim.verdict import Verdict, merged_verdict
from bob.crash.coverage import total
from bob.observe.observations import without_numbers


def within(result: Result, folder: str) -> Result:
    """Return ``result`` with ``folder`` put before the paths of its witnesses."""
    return replace(result, subjects=tuple(_within(subject, folder) for subject in result.subjects))


def _within(subject: SubjectResult, folder: str) -> SubjectResult:
    def moved(witness: str | None) -> str | None:
        return f"{folder}/{witness}" if witness else None

    def of_ways(answers: Iterable[Answer]) -> tuple[Answer, ...]:
        return tuple(
            replace(answer, ways=tuple(replace(way, witness=moved(way.witness)) for way in answer.ways))
            for answer in answers
        )

    findings = tuple(replace(finding, witness=moved(finding.witness)) for finding in subject.findings)
    return replace(subject, answers=of_ways(subject.answers), beside=of_ways(subject.beside), findings=findings)


def merged(parts: Sequence[Result], run: Run) -> Result:
    """Return one result of ``run``, merged from ``parts`` (at least one). If several subjects with the same name break
    a claim, the result has the witness of the first of them. This is the best choice for a search, since a search tries
    short workloads first."""
    subjects: dict[str, list[SubjectResult]] = {}
    for subject in (subject for part in parts for subject in part.subjects):
        subjects.setdefault(subject.name, []).append(subject)
    tools = dict.fromkeys(part.environment.mkfs_version for part in parts)
    return replace(
        parts[0],
        run=run,
        environment=replace(parts[0].environment, mkfs_version=", ".join(tools)),
        subjects=tuple(map(_subject, subjects.values())),
        protocols=tuple(protocol for part in parts for protocol in part.protocols),
    )


def _subject(several: Sequence[SubjectResult]) -> SubjectResult:
    if len(several) == 1:
        return several[0]
    return replace(
        several[0],
        answers=_by_claim(answer for subject in several for answer in subject.answers),
        beside=_by_claim(answer for subject in several for answer in subject.beside),
        findings=_by_cause(finding for subject in several for finding in subject.findings),
        examined=sum(subject.examined for subject in several),
        examinable=sum(subject.examinable for subject in several),
        notes=tuple(dict.fromkeys(note for subject in several for note in subject.notes)),
    )


def _by_claim(answers: Iterable[Answer]) -> tuple[Answer, ...]:
    found: dict[tuple[str, str], list[Answer]] = {}
    for answer in answers:
        found.setdefault((answer.claim.kind, answer.name), []).append(answer)
    return tuple(map(_answer, found.values()))


def _answer(several: Sequence[Answer]) -> Answer:
    verdict = merged_verdict(answer.verdict for answer in several)
    shown = max(several, key=lambda answer: (answer.witness is not None, bool(answer.ways)))
    reason = next((answer.reason for answer in several if answer.verdict is Verdict.UNKNOWN), None)
    return replace(
        shown,
        verdict=verdict,
        states=total([answer.states for answer in several]),
        ways=_ways(shown, several),
        recordings=tuple(one for answer in several for one in answer.recordings),
        reason=reason if verdict is Verdict.UNKNOWN else None,
    )


def _ways(shown: Answer, several: Sequence[Answer]) -> tuple[Way, ...]:
    """Return the ways of a merged answer. ``several`` lists the answers to merge, which are all about one claim. A way
    is a kind of crash state that breaks this claim. ``shown`` is one of the answers; if it has recordings, return only
    its ways. Otherwise take the ways of all answers, and merge ways whose evidence differs only in numbers."""
    if shown.recordings:
        return tuple(replace(way, states=sum(answer.violations for answer in several)) for way in shown.ways)
    found: dict[str, Way] = {}
    for way in (way for answer in several for way in answer.ways):
        key = without_numbers(way.evidence)
        earlier = found.get(key)
        found[key] = way if earlier is None else replace(earlier, states=earlier.states + way.states)
    return tuple(found.values())


def _by_cause(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Merge all findings (violations that a search found) that have the same cause into one finding. The merged finding
    names the rows (properties) of all these findings. Its number of workloads is the sum of theirs, and it shows the
    smallest of their workloads. Findings with small workloads come first."""
    found: dict[Cause, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.cause, []).append(finding)
    return tuple(sorted(map(_finding, found.values()), key=lambda finding: finding.size))


def _finding(several: Sequence[Finding]) -> Finding:
    return replace(
        min(several, key=lambda finding: finding.size),
        rows=tuple(dict.fromkeys(row for finding in several for row in finding.rows)),
        missing=tuple(sorted({kind for finding in several for kind in finding.missing})),
        shown_by=sum(finding.shown_by for finding in several),
    )
