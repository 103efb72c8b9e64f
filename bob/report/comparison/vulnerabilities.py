"""Two runs of a program as sides of a comparison. The answer about a program is one verdict for each file system. It
says too little for a comparison, since a program with a known vulnerability may get another one. So each vulnerability
that a side has becomes a cell of both sides. A *way* is a kind of crash state that the program fails on."""

from collections.abc import Mapping
from dataclasses import replace

from bob.answer.answer import Answer, Way
from bob.claim.verdict import Verdict
from bob.observe.observations import without_numbers
from bob.report.comparison.sides import Side, SideAnswer, answer_of

Cells = Mapping[str, SideAnswer]


def apart(a: Side, b: Side) -> tuple[Side, Side]:
    """Return two sides with a cell for each way to fail on one of them. Ways whose evidence
    differs only in numbers are one. Without a way on both sides, the cell of the verdict stays. Return ``a`` and ``b``
    unchanged unless both are runs of a program."""
    if not (a.is_of_program and b.is_of_program):
        return a, b
    both = {name: _both(cells, b.columns[name]) for name, cells in a.columns.items() if name in b.columns}
    olds, news = ({name: each[place] for name, each in both.items()} for place in (0, 1))
    return replace(a, columns={**a.columns, **olds}), replace(b, columns={**b.columns, **news})


def _both(a: Cells, b: Cells) -> tuple[Cells, Cells]:
    [old], [new] = ([one.cell for one in cells.values() if one.cell is not None] for cells in (a, b))
    names = {without_numbers(way.evidence): way.evidence for way in (*new.ways, *old.ways)}
    return (_by_way(old, names), _by_way(new, names)) if names else (a, b)


def _by_way(answer: Answer, names: Mapping[str, str]) -> Cells:
    ways = {without_numbers(way.evidence): way for way in answer.ways}
    return {shown: answer_of(_of_way(answer, shown, ways.get(name))) for name, shown in names.items()}


def _of_way(answer: Answer, name: str, way: Way | None) -> Answer:
    """Return the answer to the question whether the program fails in the way ``name``. If ``way`` is None, ``answer``
    lacks it: the program does not fail so, unless the verdict is unknown."""
    claim = replace(answer.claim, name=name)
    if way is not None:
        return replace(answer, claim=claim, verdict=Verdict.FAILS, ways=(way,))
    is_asked = answer.verdict is Verdict.FAILS or answer.is_question
    verdict = Verdict.HOLDS if is_asked else answer.verdict
    return replace(answer, claim=claim, verdict=verdict, ways=())
