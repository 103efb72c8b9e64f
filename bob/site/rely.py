"""Answers to "Can I rely on ...?" for each file system: from a table's row, a model's clauses, or a tested program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from bob.answer.result import SubjectResult
from bob.apm.clauses import Clause, Durable, Ordered, Whole
from bob.apm.export.claims import Idiom
from bob.apm.export.standing import Standing, standing
from bob.apm.model import ClauseFinding, Model
from bob.claim.property.vocabulary import What
from bob.claim.verdict import Verdict
from bob.report.counts import explored
from bob.report.page import PageColumn
from bob.report.shown_way import INDEX
from bob.site.results import RESULTS, Reference, Results, TestedProgram, short
from bob.site.results_table import cell_of, order_of
from bob.text import plural
from bob.trace.recording import Completion


class Grade(Enum):
    """An answer in a word, with its mark, the tone of its colour, and its meaning."""

    YES = "yes", "✓", "holds", "no crash state that was explored says otherwise; it is no proof"
    WEAKER = (
        "yes, less sure",
        "≈",
        "holds",
        "the same, on a disk that is done with each write at once: there it does not show that a call does not wait "
        "for its writes",
    )
    NO = "no", "×", "fails", "a crash state that a disk may leave says otherwise"
    SOME = "yes in some", "±", "unknown", "it depends on the options, or on the kernel; the evidence says in which"
    UNSURE = "not promised", "?", "unknown", "nothing that was tried says otherwise, but too little was tried"
    UNKNOWN = "not known", "?", "unknown", "it was tried, and has no answer"
    UNMEASURED = "not measured", "–", "skipped", "nothing here was asked"

    def __init__(self, word: str, mark: str, tone: str, meaning: str) -> None:
        self.word, self.mark, self.tone, self.meaning = word, mark, tone, meaning


@dataclass(frozen=True, slots=True)
class IdiomAnswer:
    """The answer of one configuration: ``evidence`` says how it is known, ``link`` where more is, if anywhere."""

    fs: str
    configuration: str
    word: Grade
    evidence: tuple[str, ...]
    link: str = ""


@dataclass(frozen=True, slots=True)
class AnsweredIdiom:
    """An idiom with its answers by file system; ``unmeasured`` are the table's other file systems."""

    idiom: Idiom
    answers: tuple[tuple[str, tuple[IdiomAnswer, ...]], ...]
    unmeasured: tuple[str, ...] = ()

    def word(self, answers: Sequence[IdiomAnswer]) -> Grade:
        """Return the joint answer: SOME if only some say yes, else the one that says most against it."""
        words = {answer.word for answer in answers}
        if words & _SAYS_YES and words - _SAYS_YES:
            return Grade.SOME
        return max(words, key=_AGAINST.index)

    def says(self, answers: Sequence[IdiomAnswer]) -> str:
        """Return the joint answer in words: ``yes``, ``yes in 1 of 4``."""
        word = self.word(answers)
        yes = sum(answer.word in _SAYS_YES for answer in answers)
        return f"yes in {yes} of {len(answers)}" if word is Grade.SOME else word.word

    def anchor(self, fs: str) -> str:
        return f"{self.idiom.id}--{fs}"

    @property
    def sentence(self) -> str:
        """The answer in a sentence: ``ext4 yes, xfs yes, btrfs no.``"""
        if not self.answers:
            return f"{Grade.UNMEASURED.word.capitalize()} on any of them."
        return ", ".join(f"{fs} {self.says(answers)}" for fs, answers in self.answers) + "."


def answered(idiom: Idiom, results: Results) -> AnsweredIdiom:
    """Return an idiom with the answers of ``results``."""
    if idiom.row:
        found = _of_row(idiom.row, results)
    else:
        found = _of_program(idiom.program, results) if idiom.program else _of_clauses(idiom.clauses, results)
    groups: dict[str, list[IdiomAnswer]] = {}
    for answer in found:
        groups.setdefault(answer.fs, []).append(answer)
    every = {column.fs for reference in results.references for column in reference.columns}
    answers = tuple((fs, tuple(groups[fs])) for fs in sorted(groups, key=order_of))
    return AnsweredIdiom(idiom, answers, tuple(sorted(every - groups.keys(), key=order_of)))


def _of_row(name: str, results: Results) -> Iterator[IdiomAnswer]:
    for reference in results.references:
        for shown in reference.shown:
            if name in shown.cells:
                cell = cell_of(reference, shown.cells[name])
                label = f"{shown.column.configuration.name}, Linux {short(reference.kernel)}"
                found = shown.cells[name].cell
                said = [found.evidence or "", found.reason or "", shown.cells[name].variants]
                said.append(f"explored: {explored(found.states)}" if explored(found.states) else "")
                evidence = tuple(filter(None, said))
                label = f"{label}, {reference.name}" if _is_twice(results.references, reference, label) else label
                yield IdiomAnswer(shown.configuration.fs, label, _VERDICTS[found.verdict], evidence, cell.link)


def _is_twice(references: Sequence[Reference], one: Reference, label: str) -> bool:
    return any(
        f"{shown.column.configuration.name}, Linux {short(other.kernel)}" == label
        for other in references
        if other is not one
        for shown in other.shown
    )


def _of_clauses(needed: Sequence[Clause], results: Results) -> Iterator[IdiomAnswer]:
    """Yield the joint answers of finer tables to these clauses, and of models that tried some of them."""
    rows = [_rows(clause) for clause in needed]
    names = [name for some in rows for name in some] if all(rows) else []
    for reference in results.references:
        for shown in reference.shown:
            if answer := _of_rows(reference, shown, names):
                yield answer
    for model in results.models:
        findings = [model.finding(clause) for clause in needed]
        stand = [standing(finding) for finding in findings]
        if any(one is not Standing.UNTRIED for one in stand):
            word = max((_STANDINGS[one] for one in stand), key=_WEAKER.index)
            if word is Grade.YES and _is_less_sure(model, needed):
                word = Grade.WEAKER
            yield IdiomAnswer(_fs(model), _label(model), word, tuple(map(_found, findings)))


def _rows(clause: Clause) -> list[str]:
    """Return the rows of finer tables that ask a clause."""
    match clause:
        case Durable(call, What.ENTRIES):
            return [f"{call}.{what}" for what in (What.NEW_ENTRIES, What.MOVED_ENTRIES)]
        case Durable(call, what):
            return [f"{call}.{what}"]
        case Ordered(before, after, relation):
            return [f"{before}-then-{after}.{relation}"]
        case Whole(kind, unit):
            return [f"{kind}.{unit}"]
    return []


def _of_rows(reference: Reference, shown: PageColumn, names: Sequence[str]) -> IdiomAnswer | None:
    """Return the joint answer of these rows on a configuration; None if some were not asked, unless one says no."""
    cells = [shown.cells[name] for name in names if name in shown.cells]
    if not cells:
        return None
    word = max((_VERDICTS[one.cell.verdict] for one in cells), key=_AGAINST.index)
    if word is not Grade.NO and len(cells) < len(names):
        return None
    evidence = tuple(
        ": ".join(filter(None, (one.cell.name, one.cell.evidence or one.cell.reason, one.variants))) for one in cells
    )
    telling = next(one for one in cells if _VERDICTS[one.cell.verdict] is word)
    label = f"{shown.column.configuration.name}, Linux {short(reference.kernel)}, {reference.name}"
    return IdiomAnswer(shown.configuration.fs, label, word, evidence, reference.place(telling))


def _of_program(name: str, results: Results) -> Iterator[IdiomAnswer]:
    for tested in results.programs:
        if tested.result.program_name == name:
            for number, subject in enumerate(tested.result.file_systems, start=1):
                yield _of_answer(tested, number, subject)


def _of_answer(tested: TestedProgram, number: int, subject: SubjectResult) -> IdiomAnswer:
    answer = subject.answer
    harms = (f"{way.consequence.value}: {way.evidence}" for way in answer.ways if way.consequence is not None)
    evidence = (*harms, answer.reason or "", f"explored: {explored(answer.states)}" if explored(answer.states) else "")
    label = f"{subject.name}, Linux {short(tested.result.environment.kernel)}"
    link = f"{RESULTS}/{tested.name}/{INDEX}#answer-{number}"
    return IdiomAnswer(subject.fs, label, _VERDICTS[answer.verdict], tuple(filter(None, evidence)), link)


def _is_less_sure(model: Model, needed: Sequence[Clause]) -> bool:
    """Return whether a sync call was asked on a prompt disk, which hides that the call does not wait for its writes."""
    return is_of_a_prompt_disk(model) and any(isinstance(one, Durable) for one in needed)


def is_of_a_prompt_disk(model: Model) -> bool:
    """Return whether the model's disk was done with each write at once, as in older models."""
    told = model.source.get("device_model", {}).get("completion", Completion.PROMPT.value)
    return bool(told == Completion.PROMPT.value)


def _fs(model: Model) -> str:
    return str(model.source.get("configuration", {}).get("fs", model.name))


def _label(model: Model) -> str:
    return ", ".join([model.name, *(f"Linux {short(kernel)}" for kernel in model.source.get("kernels", ()))])


def _found(finding: ClauseFinding) -> str:
    said = f"“{finding.clause.words}”: "
    if (refutation := finding.refutation) is not None:
        alone = "" if refutation.alone else " (a crash state that several clauses forbid together)"
        return f"{said}{refutation.evidence}{alone}; seen in the workload “{refutation.workload}” ({refutation.finish})"
    if not finding.workloads:
        return f"{said}not measured"
    held = f"held in {plural(finding.workloads, 'workload')}, {plural(finding.states, 'crash state')}"
    every = f"; of {finding.exhaustive:,} of them every legal crash state is known" if finding.exhaustive else ""
    return f"{said}{held}{every}{f'; not promised: {finding.reason}' if finding.reason else ''}"


_VERDICTS = {
    Verdict.HOLDS: Grade.YES,
    Verdict.FAILS: Grade.NO,
    Verdict.UNKNOWN: Grade.UNKNOWN,
    Verdict.SKIPPED: Grade.UNMEASURED,
}
_STANDINGS = {
    Standing.HELD: Grade.YES,
    Standing.SAMPLED: Grade.YES,
    Standing.ASSUMED: Grade.UNMEASURED,
    Standing.UNTRIED: Grade.UNMEASURED,
    Standing.DOUBTED: Grade.UNSURE,
    Standing.REFUTED: Grade.NO,
}
_WEAKER = (Grade.YES, Grade.UNMEASURED, Grade.UNSURE, Grade.NO)
_SAYS_YES = {Grade.YES, Grade.WEAKER}
_AGAINST = (Grade.YES, Grade.WEAKER, Grade.UNMEASURED, Grade.UNKNOWN, Grade.UNSURE, Grade.NO)
