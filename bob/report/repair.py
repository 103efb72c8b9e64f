"""The repair of a program that does not survive crashes: what the program relies on, the call and the source line to
look at, the loss, and the command that shows it again. Every format of a result takes these facts from here.

A *way* is one kind of crash state in which a program fails. A *witness* is a file about one crash state."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bob.answer.answer import Answer, CallWords, ReliedOn, Way
from bob.answer.result import Result
from bob.judge.statics import told_once
from bob.program.answer import Consequence
from bob.program.stack import SourceLine
from bob.report.nearby import witness_command
from bob.text import plural

MOST_RELIED_ON = 3  # reasons of each way; result.json has all of them


@dataclass(frozen=True, slots=True)
class RelianceWords:
    """Something that a program relies on, as a ``sentence``. ``kind`` is ALICE's name for it, or empty. The program
    relies on it in ``times`` calls of the same words."""

    sentence: str
    kind: str
    times: int

    @property
    def beside(self) -> tuple[str, ...]:
        """The words that stand behind the sentence."""
        several = f"for each of {self.times} such calls" if self.times > 1 else ""
        return tuple(filter(None, (self.kind, several)))

    @property
    def line(self) -> str:
        return f"{self.sentence} ({', '.join(self.beside)})" if self.beside else self.sentence


@dataclass(frozen=True, slots=True)
class Repair:
    """The repair of one way in which a program fails. ``evidence`` says what is wrong after the crash, and ``moment``
    what the program had told its user by then. For a cluster, ``behind`` names the nodes with old data. ``relied_on``
    says what the program relies on; ``others`` counts what is left out of it. ``call`` is the call to look at first
    (None: not known), and ``replay`` is the command that shows the crash again (empty: there is no witness)."""

    consequence: Consequence | None
    evidence: str
    moment: str
    behind: str
    relied_on: tuple[RelianceWords, ...]
    others: int
    call: CallWords | None
    replay: str

    @property
    def source(self) -> SourceLine | None:
        return self.call.source if self.call is not None else None

    @property
    def more(self) -> str:
        return f"and {plural(self.others, 'other reason')}: result.json has them" if self.others else ""

    @property
    def why(self) -> tuple[str, ...]:
        """Lines about the crash and what the program relies on. The call stands in a line of its own if the others do
        not name it."""
        said = tuple(filter(None, (self.moment, self.behind, *(one.line for one in self.relied_on), self.more)))
        words = "" if self.call is None else self.call.words
        return said if any(words in line for line in said) else (*said, f"look first at: {words}")


def repair_of(way: Way, folder: Path) -> Repair:
    """Return the repair of ``way``, whose witness is in ``folder``."""
    relied_on = [RelianceWords(one.sentence, one.kind, times) for one, times in told_once(way.relied_on)]
    return Repair(
        way.consequence,
        way.evidence,
        _moment(way),
        way.behind_words,
        tuple(relied_on[:MOST_RELIED_ON]),
        max(0, len(relied_on) - MOST_RELIED_ON),
        next(_calls(way.relied_on), None),
        witness_command(folder, way.witness),
    )


def _moment(way: Way) -> str:
    return f"last output before it: {way.last_output}" if way.last_output else "the program had not written any output"


def _calls(relied_on: tuple[ReliedOn, ...]) -> Iterator[CallWords]:
    """Yield the calls to look at first. Those whose source line is known come before the others."""
    calls = [one.first for one in relied_on if one.first is not None]
    yield from sorted(calls, key=lambda call: call.source is None)


def with_commands(result: Result, folder: Path) -> Result:
    """Return ``result``, whose witnesses are in ``folder``, with the command that replays each of them."""

    def told(answer: Answer) -> Answer:
        ways = (replace(way, replay=witness_command(folder, way.witness)) for way in answer.ways)
        return replace(answer, ways=tuple(ways))

    def both(answers: tuple[Answer, ...]) -> tuple[Answer, ...]:
        return tuple(map(told, answers))

    subjects = (replace(one, answers=both(one.answers), beside=both(one.beside)) for one in result.subjects)
    return replace(result, subjects=tuple(subjects))
