"""Runs made up for comparisons: by hand, and by hypothesis."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st

from bob.answer.answer import Answer, ByRecording, ClaimWords
from bob.answer.result import Result, SubjectResult
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.report.comparison.sides import Said, Side, published_side, run_side
from bob.report.published import Published
from bob.report.rows import FAMILIES

from ..samples import answer, named
from ..samples import result as sample

ROWS = {name: family for family, names in FAMILIES.items() for name in names}
CONFIGURATIONS = ("ext2", "ext4-ordered", "btrfs", "my own")

STATES = States(812, 4096, 2**88, None)


def workload(name: str = "w", finish: str = "natural", verdict: Verdict = Verdict.HOLDS) -> ByRecording:
    return ByRecording(name, finish, verdict, STATES, violations=7 if verdict is Verdict.FAILS else 0)


def cell(
    name: str = "append-any",
    verdict: Verdict = Verdict.HOLDS,
    states: States = STATES,
    workloads: tuple[ByRecording, ...] | None = None,
) -> Answer:
    """A cell with what a cell of this verdict has."""
    fails = verdict is Verdict.FAILS
    return answer(
        ClaimWords("property", name, ROWS.get(name, "ordering")),
        verdict,
        states,
        (workload(verdict=verdict),) if workloads is None else workloads,
        witness=f"witnesses/{name}.json" if fails else None,
        evidence=f"evidence of {name}" if fails else None,
        reason="the guest was lost" if verdict is Verdict.UNKNOWN else None,
    )


def run(*cells: Answer, configuration: str = "ext4-ordered", kernel: str = "6.1.0") -> Result:
    """A run over one configuration."""
    return run_of(SubjectResult(configuration, "ext4", "", "", "rw,relatime", cells), kernel=kernel)


def run_of(*columns: SubjectResult, kernel: str = "6.1.0") -> Result:
    made = sample()
    return replace(made, environment=replace(made.environment, kernel=kernel), subjects=columns)


def side(*cells: Answer, configuration: str = "ext4-ordered", name: str = "run") -> Side:
    return run_side(name, run(*cells, configuration=configuration), Path(name))


def table(**fails: str) -> Side:
    """A published table over CONFIGURATIONS; each property's configurations are words in one text."""
    found = {name: frozenset(fails.get(name.replace("-", "_"), "").split()) for name in ROWS}
    return published_side(Published("Somebody, Some Table, 2014", CONFIGURATIONS, found))


workloads = st.lists(
    st.builds(
        workload,
        name=st.sampled_from(["one", "two", "three"]),
        finish=st.sampled_from(["natural", "sync"]),
        verdict=st.sampled_from(Verdict),
    ),
    max_size=4,
).map(tuple)

states = st.builds(
    States,
    explored=st.integers(0, 300),
    legal_writes=st.integers(0, 2**70),
    legal_sectors=st.integers(0, 2**70),
    exhaustive=st.sampled_from([None, "writes", "sectors"]),
)


@st.composite
def columns(draw: st.DrawFn, name: str) -> SubjectResult:
    names = draw(st.lists(st.sampled_from([*ROWS, "mine"]), unique=True, max_size=6))
    made = st.builds(cell, st.just(""), st.sampled_from(Verdict), states, workloads)
    cells = tuple(named(draw(made), name, family=ROWS.get(name, "ordering")) for name in names)
    return SubjectResult(name, "ext4", "", "", draw(st.sampled_from(["rw", "rw,relatime"])), cells)


@st.composite
def run_sides(draw: st.DrawFn) -> Side:
    names = draw(st.lists(st.sampled_from(CONFIGURATIONS), unique=True, max_size=3))
    return run_side("run", run_of(*(draw(columns(name)) for name in names)), Path("run"))


def tables() -> st.SearchStrategy[Side]:
    somewhere = st.frozensets(st.sampled_from(CONFIGURATIONS))
    return st.fixed_dictionaries(dict.fromkeys(ROWS, somewhere)).map(
        lambda fails: published_side(Published("Somebody, 2014", CONFIGURATIONS, fails))
    )


def sides() -> st.SearchStrategy[Side]:
    return st.one_of(run_sides(), tables())


SAID = {verdict: Said(verdict.value) for verdict in Verdict}
