"""Tables that show people how a model's clauses (promises about crash states) stand: whether the model promises each of
them, and why. There are marks for single clauses, matrices of the clauses that order two changes, and guarantees that
rest on several clauses."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from bob.apm.clauses import SYNCS, WHATS, Clause
from bob.apm.clauses import durable as durable_clauses
from bob.apm.clauses import orders as clause_orders
from bob.apm.model import ClauseFinding, ClauseStatus, Model
from bob.claim.property.vocabulary import Call, What
from bob.workload.kinds import MODELLED_KINDS, Relation


class Standing(Enum):
    """The standing of a clause: whether a model promises it, and why. Each value has three things: a mark, a
    colour (its name in page.css), and an explanation in words."""

    HELD = "✓", "holds", "promised: it held in every legal crash state"
    SAMPLED = "≈", "holds", "promised: it held in all crash states of a sample"
    ASSUMED = "○", "holds", "promised, but only assumed: no run tested it"
    DOUBTED = "?", "unknown", "not promised, though nothing refutes it"
    REFUTED = "×", "fails", "not promised: a crash state refutes it"
    UNTRIED = "–", "skipped", "not promised: no run tests it"

    def __init__(self, mark: str, tone: str, meaning: str) -> None:
        self.mark, self.tone, self.meaning = mark, tone, meaning


def standing(finding: ClauseFinding) -> Standing:
    if finding.status is ClauseStatus.REFUTED:
        return Standing.REFUTED
    if finding.promised:
        return _PROMISED[finding.status]
    return Standing.UNTRIED if finding.status is ClauseStatus.ASSUMED else Standing.DOUBTED


_PROMISED = {
    ClauseStatus.EXHAUSTIVE: Standing.HELD,
    ClauseStatus.SAMPLED: Standing.SAMPLED,
    ClauseStatus.ASSUMED: Standing.ASSUMED,
}


@dataclass(frozen=True, slots=True)
class ClauseCell:
    finding: ClauseFinding

    @property
    def standing(self) -> Standing:
        return standing(self.finding)

    @property
    def anchor(self) -> str:
        return f"refuted-{self.finding.clause.name.replace(' ', '-')}"


@dataclass(frozen=True, slots=True)
class Matrix:
    """A table of clauses of one form, such as orders. For orders of two changes, rows stand for kinds of the earlier
    change, and columns for kinds of the later one. For durability, rows stand for calls, and columns for the things
    that a call makes durable. Each of ``rows`` has a label and its cells."""

    title: str
    about: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[ClauseCell, ...]], ...]


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A guarantee that a program may want to rely on, with the clauses that give it."""

    sentence: str
    findings: tuple[ClauseFinding, ...]

    @property
    def standing(self) -> Standing:
        return max((standing(finding) for finding in self.findings), key=_WEAKER.index)

    @property
    def weakest(self) -> ClauseFinding:
        return next(finding for finding in self.findings if standing(finding) is self.standing)

    @property
    def promised(self) -> int:
        return sum(finding.promised for finding in self.findings)


_WEAKER = (Standing.HELD, Standing.SAMPLED, Standing.ASSUMED, Standing.DOUBTED, Standing.UNTRIED, Standing.REFUTED)


def cells(model: Model, clauses: Iterable[Clause]) -> tuple[ClauseCell, ...]:
    return tuple(ClauseCell(model.finding(clause)) for clause in clauses)


def orders(model: Model) -> Iterator[Matrix]:
    """Yield three matrices of the clauses that order two changes. The first is for changes of the same file. The second
    is for changes of the same directory, and the third for changes that have neither in common. A row stands for the
    kind of the earlier change, a column for the kind of the later one."""
    for relation, (title, about) in _RELATIONS.items():
        rows = (
            (label(before), cells(model, clause_orders((before,), MODELLED_KINDS, (relation,))))
            for before in MODELLED_KINDS
        )
        yield Matrix(title, about, tuple(map(label, MODELLED_KINDS)), tuple(rows))


def durability(model: Model) -> Matrix:
    rows = ((label(call), cells(model, durable_clauses((call,), WHATS))) for call in (*SYNCS, Call.RETURNED))
    return Matrix("", "", tuple(map(label, WHATS)), tuple(rows))


_RELATIONS: Mapping[Relation, tuple[str, str]] = {
    Relation.SAME_FILE: ("Changes of the same file", "Both changes are about one file, or one directory."),
    Relation.SAME_DIRECTORY: (
        "Changes in the same directory",
        "The changes are about two files, but change names in one directory, or their files have names there.",
    ),
    Relation.OTHER_DIRECTORY: (
        "Changes in different directories",
        "The changes have neither a file nor a directory in common.",
    ),
}


def label(word: str) -> str:
    return word.words if isinstance(word, Call) else _LABELS.get(word, word.replace("-", " "))


_LABELS: Mapping[str, str] = {
    What.DATA: "its data",
    What.SIZE: "its size",
    What.ATTRIBUTES: "its attributes",
    What.ENTRY: "the name it was made with",
    What.NAMES: "its links and renames",
    What.ENTRIES: "the names in it",
    What.PARENT: "the name of its directory",
    What.OTHER_OVERWRITES: "overwrites elsewhere",
    What.OTHER_APPENDS: "appends elsewhere",
    What.OTHER_NAMES: "names elsewhere",
    What.OTHER_ATTRIBUTES: "attributes elsewhere",
}
