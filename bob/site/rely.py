"""\"Can I rely on ...?\": questions of people who write programs, and for each file system what was measured.

Three things answer. A row of the table answers on every configuration that has it. A clause of a model answers where
models were derived. And a program that was tested answers for those that do as it does. Where none of them was asked,
the answer is that it was not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from bob.apm.clauses import Clause, Durable, Fill, Never, Ordered, Whole
from bob.apm.export.standing import Reader, Standing, standing
from bob.apm.model import Finding, Model
from bob.claim.property.vocabulary import Call, Unit, What
from bob.judge.program_result import ProgramResult, Safety
from bob.report.counts import explored, plural
from bob.report.site import INDEX
from bob.result import Verdict
from bob.site.living import cell_of, order_of
from bob.site.results import RESULTS, Reference, Results, Tested, short
from bob.workload.kinds import ChangeKind, Relation


class Word(Enum):
    """An answer in a word, what stands before it, the tone of its colour, and what it means."""

    YES = "yes", "✓", "holds", "no crash state that was explored says otherwise; it is no proof"
    NO = "no", "×", "fails", "a crash state that a disk may leave says otherwise"
    SOME = "yes in some", "±", "unknown", "it depends on the options, or on the kernel; the evidence says in which"
    UNSURE = "not promised", "?", "unknown", "nothing that was tried says otherwise, but too little was tried"
    UNKNOWN = "not known", "?", "unknown", "it was tried, and has no answer"
    UNMEASURED = "not measured", "–", "skipped", "nothing here was asked"

    def __init__(self, word: str, mark: str, tone: str, meaning: str) -> None:
        self.word, self.mark, self.tone, self.meaning = word, mark, tone, meaning


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one configuration. ``evidence`` says how it is known, ``link`` where more is, if anywhere."""

    fs: str
    configuration: str
    word: Word
    evidence: tuple[str, ...]
    link: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, how answers to it are found, and the ``advice`` that goes with it."""

    id: str
    text: str
    ask: Callable[[Results], Iterator[Answer]]
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """A question with its answers, file system by file system; and the file systems of the table that have none."""

    question: Question
    answers: tuple[tuple[str, tuple[Answer, ...]], ...]
    unmeasured: tuple[str, ...] = ()

    def word(self, answers: Sequence[Answer]) -> Word:
        """What they say together: where none says yes, the one that says most against it."""
        words = {answer.word for answer in answers}
        if len(words) > 1 and Word.YES in words:
            return Word.SOME
        return max(words, key=_AGAINST.index)

    def says(self, answers: Sequence[Answer]) -> str:
        """The same in words: ``yes``, ``yes in 1 of 4``."""
        word = self.word(answers)
        yes = sum(answer.word is Word.YES for answer in answers)
        return f"yes in {yes} of {len(answers)}" if word is Word.SOME else word.word

    def anchor(self, fs: str) -> str:
        """Where the evidence for a file system is."""
        return f"{self.question.id}--{fs}"

    @property
    def sentence(self) -> str:
        """The answer in a sentence: ``ext4 yes, xfs yes, btrfs no``."""
        if not self.answers:
            return f"{Word.UNMEASURED.word.capitalize()} on any of them."
        return ", ".join(f"{fs} {self.says(answers)}" for fs, answers in self.answers) + "."


def answered(results: Results) -> list[tuple[str, str, list[Answered]]]:
    """Every question with what ``results`` answer, in groups: title, what the group is about, questions."""
    return [(title, about, [_answered(one, results) for one in questions]) for title, about, questions in _GROUPS]


def _answered(question: Question, results: Results) -> Answered:
    groups: dict[str, list[Answer]] = {}
    for answer in question.ask(results):
        groups.setdefault(answer.fs, []).append(answer)
    every = {column.fs for reference in results.references for column in reference.columns}
    answers = tuple((fs, tuple(groups[fs])) for fs in sorted(groups, key=order_of))
    return Answered(question, answers, tuple(sorted(every - groups.keys(), key=order_of)))


def _row(name: str) -> Callable[[Results], Iterator[Answer]]:
    """What a row of the table says, of each configuration of each reference."""

    def ask(results: Results) -> Iterator[Answer]:
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
                    yield Answer(shown.configuration.fs, label, _VERDICTS[found.verdict], evidence, cell.link)

    return ask


def _is_twice(references: Sequence[Reference], one: Reference, label: str) -> bool:
    """Whether another reference has a configuration of this label."""
    return any(
        f"{shown.column.configuration.name}, Linux {short(other.kernel)}" == label
        for other in references
        if other is not one
        for shown in other.shown
    )


def _clauses(*clauses: Clause) -> Callable[[Results], Iterator[Answer]]:
    """What the models say of these clauses together; a model is left out that none of them was tried on."""

    def ask(results: Results) -> Iterator[Answer]:
        for model in results.models:
            reader = Reader(model)
            findings = [reader.finding(clause) for clause in clauses]
            stand = [standing(finding) for finding in findings]
            if any(one is not Standing.UNTRIED for one in stand):
                word = max((_STANDINGS[one] for one in stand), key=_WEAKER.index)
                yield Answer(_fs(model), _label(model), word, tuple(map(_found, findings)))

    return ask


def _program(name: str) -> Callable[[Results], Iterator[Answer]]:
    """What the test of a program said, of each configuration."""

    def ask(results: Results) -> Iterator[Answer]:
        for tested in results.programs:
            if tested.found.program == name:
                for number, result in enumerate(tested.found.results, start=1):
                    yield _of_program(tested, number, result)

    return ask


def _of_program(tested: Tested, number: int, result: ProgramResult) -> Answer:
    harms = (f"{one.consequence.value}: {one.evidence}" for one in result.vulnerabilities)
    evidence = (*harms, result.reason or "", f"explored: {explored(result.states)}" if explored(result.states) else "")
    label = f"{result.configuration}, Linux {short(tested.found.kernel)}"
    link = f"{RESULTS}/{tested.name}/{INDEX}#answer-{number}"
    fs = result.configuration.partition("-")[0]
    return Answer(fs, label, _SAFETY[result.safety], tuple(filter(None, evidence)), link)


def _fs(model: Model) -> str:
    return str(model.source.get("configuration", {}).get("fs", model.name))


def _label(model: Model) -> str:
    return ", ".join([model.name, *(f"Linux {short(kernel)}" for kernel in model.source.get("kernels", ()))])


def _found(finding: Finding) -> str:
    """How a clause is known, in a sentence."""
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
    Verdict.HOLDS: Word.YES,
    Verdict.FAILS: Word.NO,
    Verdict.UNKNOWN: Word.UNKNOWN,
    Verdict.SKIPPED: Word.UNMEASURED,
}
_SAFETY = {Safety.SAFE: Word.YES, Safety.VULNERABLE: Word.NO, Safety.UNKNOWN: Word.UNKNOWN}
_STANDINGS = {
    Standing.HELD: Word.YES,
    Standing.SAMPLED: Word.YES,
    Standing.ASSUMED: Word.UNMEASURED,
    Standing.UNTRIED: Word.UNMEASURED,
    Standing.DOUBTED: Word.UNSURE,
    Standing.REFUTED: Word.NO,
}
_WEAKER = (Word.YES, Word.UNMEASURED, Word.UNSURE, Word.NO)
_AGAINST = (Word.YES, Word.UNMEASURED, Word.UNKNOWN, Word.UNSURE, Word.NO)


def _after(call: Call, *things: What) -> Callable[[Results], Iterator[Answer]]:
    return _clauses(*(Durable(call, what) for what in things))


_DURABLE = (
    Question(
        "fsync-data",
        "After fsync of a file, are its data and its size there?",
        _after(Call.FSYNC_FILE, What.DATA, What.SIZE),
        "This is what fsync is for.",
    ),
    Question(
        "fsync-entry",
        "After fsync of a new file, is its name there?",
        _after(Call.FSYNC_FILE, What.ENTRY),
        "POSIX does not promise it. An fsync of the directory is what asks for the name.",
    ),
    Question(
        "fsync-names",
        "After a link or a rename and an fsync of the file, are the new names there, and the old ones gone?",
        _after(Call.FSYNC_FILE, What.NAMES),
        "To be safe everywhere, fsync the directories, too: the one that got the name and the one that lost it.",
    ),
    Question(
        "fsync-directory",
        "After fsync of a directory, is every name in it there, and every removed one gone?",
        _after(Call.FSYNC_DIRECTORY, What.ENTRIES),
    ),
    Question(
        "fsync-new-directory",
        "After fsync of a new directory, is its own name there?",
        _after(Call.FSYNC_DIRECTORY, What.ENTRY),
    ),
    Question(
        "fsync-others",
        "After fsync of one file, is there what was written to other files before?",
        _after(Call.FSYNC_FILE, What.OTHER_OVERWRITES, What.OTHER_APPENDS),
        "Do not build on it: fsync each file that matters.",
    ),
    Question(
        "fsync-other-names",
        "After fsync of one file, is there every name that was made, moved or removed before, also elsewhere?",
        _after(Call.FSYNC_FILE, What.OTHER_NAMES),
    ),
    Question(
        "fdatasync-data",
        "After fdatasync of a file, are its data and its size there?",
        _after(Call.FDATASYNC_FILE, What.DATA, What.SIZE),
    ),
    Question("msync-data", "After msync of a mapping, is the data there?", _after(Call.MSYNC, What.DATA)),
    Question(
        "o-sync-data",
        "When a write with O_SYNC has returned, are the data and the size there?",
        _after(Call.O_SYNC, What.DATA, What.SIZE),
    ),
    Question(
        "o-dsync-data", "When a write with O_DSYNC has returned, is the data there?", _after(Call.O_DSYNC, What.DATA)
    ),
    Question(
        "sync-all",
        "After sync, is all there that was done before: data, sizes and names?",
        _after(Call.SYNC, What.DATA, What.SIZE, What.ENTRY, What.NAMES),
    ),
    Question(
        "syncfs-all",
        "After syncfs, is all there that was done before: data, sizes and names?",
        _after(Call.SYNCFS, What.DATA, What.SIZE, What.ENTRY, What.NAMES),
    ),
    Question(
        "returned-all",
        "Is a change there as soon as its system call has returned, without any sync?",
        _after(Call.RETURNED, What.DATA, What.SIZE, What.ENTRY, What.NAMES),
        "A program that acknowledges something has to sync first.",
    ),
)
_REPLACE = (
    Question(
        "replace-whole",
        "A file is replaced: a new one is written and renamed over it, without fsync. Are its old or its new contents "
        "there?",
        _clauses(
            Ordered(ChangeKind.APPEND, ChangeKind.RENAME_OVER, Relation.SAME_FILE),
            Whole(ChangeKind.RENAME_OVER, Unit.WHOLE),
        ),
        "Several file systems look out for this, because many programs do it. An fsync before the rename does not have "
        "to rely on that.",
    ),
    Question(
        "replace-rename",
        "The same, as a whole program: once it said that it is done, is the new file there, and never a broken one?",
        _program("replace-rename"),
    ),
    Question(
        "replace-fsync-rename",
        "And with an fsync of the new file before the rename?",
        _program("replace-fsync-rename"),
        "The file is whole. But the program said that it is done before the rename was on the disk.",
    ),
    Question(
        "replace-fsync-rename-fsync",
        "And with an fsync of the directory after the rename?",
        _program("replace-fsync-rename-fsync"),
        "This is the way to replace a file.",
    ),
    Question(
        "replace-truncate",
        "A file is truncated and written again in place, then synced. Once the program said that it is done, are the "
        "new contents there, and never a broken file?",
        _program("replace-truncate"),
    ),
)
_WHOLE = (
    Question(
        "overwrite-sector",
        "Is an overwrite inside one sector (512 bytes) all there or not at all?",
        _row("single-sector-overwrite"),
        "The disk sees to it: in the model of a disk that was asked a sector is written whole.",
    ),
    Question("overwrite-block", "Is an overwrite inside one block (4 KiB)?", _row("single-block-overwrite")),
    Question(
        "append-sector",
        "Is an append inside one sector all there or not at all, size and data together?",
        _row("single-sector-append"),
    ),
    Question("append-block", "Is an append inside one block?", _row("single-block-append")),
    Question(
        "append-blocks",
        "Is a write over several blocks all there or not at all?",
        _row("multi-block-append"),
        "Give each record a length and a checksum.",
    ),
    Question(
        "append-prefix",
        "Is there of an append over several blocks a beginning, and nothing behind a gap?",
        _row("multi-block-prefix-append"),
    ),
    Question(
        "append-zeros",
        "Where a file has grown, is the appended data there, and never zeros in its place?",
        _clauses(Never(ChangeKind.APPEND, Fill.ZEROS)),
    ),
    Question(
        "append-stale",
        "Where a file has grown, does it never show what others had on the disk before?",
        _clauses(Never(ChangeKind.APPEND, Fill.STALE)),
    ),
    Question(
        "directory-whole",
        "Are rename, link, unlink, mkdir and create each all there or not at all?",
        _row("directory-op"),
    ),
    Question("collateral", "Is what no operation was to change left as it was?", _row("collateral")),
)
_ORDER = (
    Question(
        "append-append",
        "Does an append to a file come before a later append to the same file?",
        _row("append-append-same-file"),
    ),
    Question("append-any", "Does an append come before whatever is done later?", _row("append-any")),
    Question("overwrite-any", "Does an overwrite come before whatever is done later?", _row("overwrite-any")),
    Question(
        "directory-any",
        "Does a rename, link, unlink, mkdir or create come before whatever is done later?",
        _row("directory-op-any"),
    ),
)
_GROUPS = (
    (
        "What is there when a call has returned",
        "The crash comes after the call. Whether what was done before it is there is answered by the models.",
        _DURABLE,
    ),
    (
        "Replacing a file",
        "What most programs do that save something. Whole programs were tested with a checker of their own.",
        _REPLACE,
    ),
    ("One change: all or nothing", "A crash may come at any time. Nothing is synced, or something else.", _WHOLE),
    (
        "One change before another, without a sync in between",
        "Whenever there is anything of the later one after a crash, is the earlier one there as a whole?",
        _ORDER,
    ),
)
