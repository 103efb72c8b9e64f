"""Answers to "Can I rely on ...?" for each file system. An *idiom* is a guarantee that a program may want. Its answers
come from a table that bob measured, from models, or from a tested program. A *model* is a set of clauses. A *clause* is
one promise about what survives a crash."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from bob.answer.answer import Answer
from bob.apm.clauses import Clause, Durable, Ordered, Whole
from bob.apm.export.claims import Idiom
from bob.apm.export.standing import Standing, standing
from bob.apm.model import ClauseFinding, Model
from bob.claim.property.vocabulary import What
from bob.claim.verdict import Verdict
from bob.report.counts import explored
from bob.report.shown_way import INDEX
from bob.site.results import RESULTS, ResultRow, Results, model_place, short
from bob.site.results_table import order_of
from bob.text import plural
from bob.trace.recording import Completion


class Grade(Enum):
    """A grade of an answer: a word such as "yes", with its mark, the style class of its colour, and its meaning."""

    YES = "yes", "✓", "holds", "no explored crash state contradicts it; this is not a proof"
    WEAKER = (
        "yes, less sure",
        "≈",
        "holds",
        "as yes, but the disk completed each write at once, which hides calls that do not wait for their writes",
    )
    NO = "no", "×", "fails", "a legal crash state contradicts it"
    SOME = "yes in some", "±", "unknown", "it depends on the options or the kernel; the evidence says on which"
    UNSURE = "not promised", "?", "unknown", "nothing that bob tried contradicts it, but bob tried too little"
    UNKNOWN = "not known", "?", "unknown", "bob tried it, and could not answer"
    UNMEASURED = "not measured", "–", "skipped", "bob measured nothing here"

    def __init__(self, word: str, mark: str, tone: str, meaning: str) -> None:
        self.word, self.mark, self.tone, self.meaning = word, mark, tone, meaning


@dataclass(frozen=True, slots=True)
class IdiomAnswer:
    """The answer for one configuration (a file system with its options, on one kernel). ``evidence`` says how bob knows
    the answer. ``link`` leads to more about the answer, or is empty."""

    fs: str
    configuration: str
    word: Grade
    evidence: tuple[str, ...]
    link: str = ""


@dataclass(frozen=True, slots=True)
class AnsweredIdiom:
    """An idiom with its ``answers``, grouped by file system. ``unmeasured`` are other file systems of the site. bob has
    results for them, but none that answers this idiom."""

    idiom: Idiom
    answers: tuple[tuple[str, tuple[IdiomAnswer, ...]], ...]
    unmeasured: tuple[str, ...] = ()

    def word(self, answers: Sequence[IdiomAnswer]) -> Grade:
        """Return one grade that sums up ``answers``. It is SOME if some answers say yes and some do not. Otherwise it
        is the worst grade of ``answers``."""
        words = {answer.word for answer in answers}
        if words & _SAYS_YES and words - _SAYS_YES:
            return Grade.SOME
        return max(words, key=_AGAINST.index)

    def says(self, answers: Sequence[IdiomAnswer]) -> str:
        """Return in words the grade that sums up ``answers``, such as ``yes`` or ``yes in 1 of 4``."""
        word = self.word(answers)
        yes = sum(answer.word in _SAYS_YES for answer in answers)
        return f"yes in {yes} of {len(answers)}" if word is Grade.SOME else word.word

    def anchor(self, fs: str) -> str:
        return f"{self.idiom.id}--{fs}"

    @property
    def sentence(self) -> str:
        """The answers of all file systems in one sentence: ``ext4 yes, xfs yes, btrfs no.``"""
        if not self.answers:
            return f"{Grade.UNMEASURED.word.capitalize()} on any of them."
        return ", ".join(f"{fs} {self.says(answers)}" for fs, answers in self.answers) + "."


def answered(idiom: Idiom, results: Results) -> AnsweredIdiom:
    """Return an idiom with its answers from ``results``."""
    if idiom.row:
        found = _of_row(idiom.row, results)
    else:
        found = _of_program(idiom.program, results) if idiom.program else _of_clauses(idiom.clauses, results)
    groups: dict[str, list[IdiomAnswer]] = {}
    for answer in found:
        groups.setdefault(answer.fs, []).append(answer)
    every = {row.fs for row in results.rows}
    answers = tuple((fs, tuple(groups[fs])) for fs in sorted(groups, key=order_of))
    return AnsweredIdiom(idiom, answers, tuple(sorted(every - groups.keys(), key=order_of)))


def _of_row(name: str, results: Results) -> Iterator[IdiomAnswer]:
    rows = results.rows
    for row in rows:
        if (shown := row.cells.get(name)) is not None:
            is_twice = any(other.title == row.title for other in rows if other.reference is not row.reference)
            label = f"{row.title}, {row.reference.name}" if is_twice else row.title
            cell = shown.cell
            evidence = _evidence(cell.evidence, cell.reason, shown.variants, _explored(cell))
            yield IdiomAnswer(row.fs, label, _VERDICTS[cell.verdict], evidence, row.place(shown.link))


def _of_clauses(needed: Sequence[Clause], results: Results) -> Iterator[IdiomAnswer]:
    """Yield the answers to an idiom that is guaranteed if all clauses ``needed`` hold. A configuration has an answer if
    its table has properties that test these clauses. A model has an answer if bob tried any of these clauses when it
    derived the model."""
    rows = [_rows(clause) for clause in needed]
    names = [name for some in rows for name in some] if all(rows) else []
    yield from filter(None, (_of_rows(row, names) for row in results.rows))
    for model in results.models:
        findings = [model.finding(clause) for clause in needed]
        stand = [standing(finding) for finding in findings]
        if any(one is not Standing.UNTRIED for one in stand):
            word = max((_STANDINGS[one] for one in stand), key=_WEAKER.index)
            if word is Grade.YES and _is_less_sure(model, needed):
                word = Grade.WEAKER
            yield IdiomAnswer(_fs(model), _label(model), word, tuple(map(_found, findings)), model_place(model))


def _rows(clause: Clause) -> list[str]:
    """Return the names of the properties that test whether ``clause`` holds. Only large tables (with hundreds of
    properties) have these properties."""
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


def _of_rows(row: ResultRow, names: Sequence[str]) -> IdiomAnswer | None:
    """Return one answer for the configuration of ``row``, from its verdicts for all the properties ``names``. If a
    verdict is "no", the answer is "no". Otherwise the row must have all these properties, and the worst verdict is the
    answer. Return None if the row lacks one of the properties."""
    cells = [row.cells[name] for name in names if name in row.cells]
    if not cells:
        return None
    telling = max(cells, key=lambda one: _AGAINST.index(_VERDICTS[one.cell.verdict]))
    word = _VERDICTS[telling.cell.verdict]
    if word is not Grade.NO and len(cells) < len(names):
        return None
    told = ((one.cell.name, one.cell.evidence or one.cell.reason, one.variants) for one in cells)
    evidence = tuple(": ".join(_evidence(*said)) for said in told)
    return IdiomAnswer(row.fs, f"{row.title}, {row.reference.name}", word, evidence, row.place(telling.link))


def _of_program(name: str, results: Results) -> Iterator[IdiomAnswer]:
    for tested in results.programs:
        for number, subject in enumerate(tested.result.file_systems, start=1):
            if tested.result.program_name == name:
                answer = subject.answer
                harms = (f"{way.consequence.value}: {way.evidence}" for way in answer.ways if way.consequence)
                label = f"{subject.name}, Linux {short(tested.result.environment.kernel)}"
                link = f"{RESULTS}/{tested.name}/{INDEX}#answer-{number}"
                evidence = _evidence(*harms, answer.reason, _explored(answer))
                yield IdiomAnswer(subject.fs, label, _VERDICTS[answer.verdict], evidence, link)


def _explored(answer: Answer) -> str:
    return f"explored: {said}" if (said := explored(answer.states)) else ""


def _evidence(*said: str | None) -> tuple[str, ...]:
    return tuple(filter(None, said))


def _is_less_sure(model: Model, needed: Sequence[Clause]) -> bool:
    """Return whether a promise of the model may be too strong. This is so if one of the clauses ``needed`` says what a
    sync call makes durable, and the model was measured on a prompt disk. A prompt disk completes each write at once. On
    such a disk, bob cannot notice a call that returns before its writes complete."""
    return is_of_a_prompt_disk(model) and any(isinstance(one, Durable) for one in needed)


def is_of_a_prompt_disk(model: Model) -> bool:
    """Return whether the model was measured on a disk that completed each write at once. Models of an older
    bob do not name the kind of disk; return True for them."""
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
