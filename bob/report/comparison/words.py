"""The words and marks of a comparison, for the terminal and for the pages. A *cell* is the answer for one property of
one configuration."""

from collections.abc import Iterator, Mapping

from bob.answer.answer import Answer
from bob.answer.result import Result
from bob.report.comparison.compare import CHANGES, Cell, Comparison, Group, Kind
from bob.report.comparison.sides import Said, Side, SideAnswer
from bob.report.counts import explored
from bob.report.nearby import witness_command
from bob.text import compact, plural

FAILS, FINE, UNKNOWN, SKIPPED = "×", "·", "?", "–"
WORSE, BETTER = "worse", "better"  # worse than expected: a cell that held fails now; better: one that failed holds now
NOT_EXPLAINED = "Not yet explained."
BLANK_MEANS = "A blank cell of the published table means that no violation was found, not that the property holds."
HEADINGS = {
    Kind.NEWLY_FAILS: "newly fails",
    Kind.NO_LONGER_FAILS: "no longer fails",
    Kind.UNDECIDED: "undecided: one side has no verdict",
    Kind.EXPLORED: "differently explored, with the same verdict",
}
UNEXPECTED = {
    Kind.NEWLY_FAILS: f"{WORSE} than expected: fails, but was not expected to",
    Kind.NO_LONGER_FAILS: f"{BETTER} than expected: was expected to fail, but does not",
    Kind.UNDECIDED: "not known: one side has no verdict",
}
LEGEND = (
    (FAILS, "fails in both"),
    (FINE, "no violation in both"),
    (f"+{FAILS}", "newly fails"),
    (f"-{FAILS}", "no longer fails"),
    (f"~{FAILS} ~{FINE}", "the same, differently explored"),
    (UNKNOWN, "no verdict on one side, or unknown on both"),
    (SKIPPED, "skipped in both"),
    ("<", "only in A"),
    (">", "only in B"),
)

_FINISHES = 6
_ONE_SIDED = {Kind.ONLY_A: "only in A", Kind.ONLY_B: "only in B"}


_MARKS = {
    Kind.NEWLY_FAILS: f"+{FAILS}",
    Kind.NO_LONGER_FAILS: f"-{FAILS}",
    Kind.UNDECIDED: UNKNOWN,
    Kind.ONLY_A: "<",
    Kind.ONLY_B: ">",
}
MOUNTED = "mount options of "  # the beginning of the name of a setting


def mark(cell: Cell) -> str:
    if cell.kind in _MARKS:
        return _MARKS[cell.kind]
    assert cell.b is not None
    same = {Said.FAILS: FAILS, Said.UNKNOWN: UNKNOWN, Said.SKIPPED: SKIPPED}.get(cell.b.said, FINE)
    return f"~{same}" if cell.kind is Kind.EXPLORED else same


def legend(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield the marks that occur in the grid of ``comparison``, each with its meaning."""
    used = {mark(cell) for cell in comparison.cells}
    yield from ((marks, meaning) for marks, meaning in LEGEND if used.intersection(marks.split()))


def reason_of(comparison: Comparison, group: Group) -> tuple[str, str]:
    """Return the title of the reason why the cells of ``group`` differ, and the reason in sentences. Both texts may be
    empty."""
    if group.reason is not None:
        return group.reason.title, group.reason.sentences
    is_open = comparison.with_published and group.kind in CHANGES
    return NOT_EXPLAINED.rstrip(".") if is_open else "", ""


def says(answer: SideAnswer) -> str:
    """Return in one line the answer of one side for a cell. If the property fails, the line says in how many crash
    states and workloads. If it holds, the line says how much bob explored."""
    cell = answer.cell
    if cell is None:
        return "×: a reproducible case was found" if answer.said is Said.FAILS else "blank: no case was found"
    match answer.said:
        case Said.FAILS:
            return _fails(cell)
        case Said.HOLDS:
            return _in_vain(cell)
    return f"{answer.said.value}: {cell.reason}" if cell.reason else answer.said.value


def evidence(answer: SideAnswer | None) -> str | None:
    return answer.cell.evidence if answer is not None and answer.cell is not None else None


def command(side: Side, answer: SideAnswer | None) -> str:
    """Return the command that replays the witness of ``answer``: a recorded crash that breaks the property. Return an
    empty text if ``answer`` lacks a witness."""
    return witness_command(side.folder, answer.cell.witness) if answer is not None and answer.cell is not None else ""


def counts(comparison: Comparison) -> str:
    """Return in words how many cells were compared, and how many there are of each kind of difference."""
    numbers = {kind: len(comparison.of(kind)) for kind in Kind}
    told = {_numbered(kind, number): number for kind, number in numbers.items() if kind not in _ONE_SIDED}
    apart = {said: numbers[kind] for kind, said in _ONE_SIDED.items()}
    return _counted(f"{plural(comparison.compared, 'cell')} compared", told, apart)


def as_expected(comparison: Comparison) -> str:
    """Return in words how many cells are worse than expected, better than expected, unknown, or as expected. A cell
    with the expected verdict is as expected even if bob explored more or fewer states."""
    worse, better = len(comparison.of(Kind.NEWLY_FAILS)), len(comparison.of(Kind.NO_LONGER_FAILS))
    same = comparison.of(Kind.SAME, Kind.EXPLORED)
    unknown = len(comparison.of(Kind.UNDECIDED)) + sum(cell.unknown for cell in same)
    numbers = {
        WORSE: worse,
        BETTER: better,
        "not known": unknown,
        "as expected": sum(not cell.unknown for cell in same),
    }
    apart = {"not asked": len(comparison.of(Kind.ONLY_A)), "not in the table": len(comparison.of(Kind.ONLY_B))}
    return _counted(f"{plural(comparison.compared, 'cell')} expected by {comparison.a.name}", numbers, apart)


def _counted(what: str, told: Mapping[str, int], apart: Mapping[str, int]) -> str:
    some, others = (", ".join(f"{number} {said}" for said, number in one.items() if number) for one in (told, apart))
    return f"{what}: {some}; not compared: {others}" if others else f"{what}: {some}"


def _numbered(kind: Kind, number: int) -> str:
    match kind:
        case Kind.NEWLY_FAILS:
            return f"newly fail{'s' if number == 1 else ''}"
        case Kind.NO_LONGER_FAILS:
            return f"no longer fail{'s' if number == 1 else ''}"
        case Kind.SAME:
            return "the same"
    return kind.value


def measured(result: Result) -> str:
    on = result.environment
    return (
        f"kernel {on.kernel}, {on.accelerator.upper()}, {on.clock} clock, {on.mkfs_version}, {result.model.words}, "
        f"budget {result.run.budget:,}, seed {result.run.seed}{but_stopped(result)}"
    )


def but_stopped(result: Result) -> str:
    """Return the end of a sentence about a run that was stopped. Return an empty text if the run is whole."""
    return "" if result.run.finished else "; it was stopped before its end"


def settings(comparison: Comparison) -> tuple[tuple[str, str, str], ...]:
    """Return the settings of the measurement that differ. Each is a triple: the name of the setting, its value in A,
    and its value in B. Return an empty tuple if a side is a table from a paper."""
    if comparison.a.result is None or comparison.b.result is None:
        return ()
    old, new = _settings(comparison.a), _settings(comparison.b)
    shared = {f"{MOUNTED}{name}" for name in comparison.configurations}
    told = [what for what in old if what in new and (not what.startswith(MOUNTED) or what in shared)]
    return tuple((what, old[what], new[what]) for what in told if old[what] != new[what])


def _fails(cell: Answer) -> str:
    states = sum(workload.violations for workload in cell.recordings)
    failing = sum(workload.verdict is cell.verdict for workload in cell.recordings)
    parts = [f"in {plural(states, 'crash state')}"] if states else []
    parts += [f"in {failing} of {plural(len(cell.recordings), 'workload')}"] if cell.recordings else []
    return " ".join(["fails", ", ".join(parts)]).strip()


def _in_vain(cell: Answer) -> str:
    if not cell.recordings:
        return "holds"
    finishes = list(dict.fromkeys(workload.finish for workload in cell.recordings))
    tried = ", ".join(finishes[:_FINISHES])
    more = f" and {len(finishes) - _FINISHES} more" if len(finishes) > _FINISHES else ""
    part = explored(cell.states)
    seen = f"; explored: {part}" if part else ""
    return f"holds: nothing found in {plural(len(cell.recordings), 'workload')} ending with {tried}{more}{seen}"


def _settings(side: Side) -> dict[str, str]:
    result = side.result
    assert result is not None
    on = result.environment
    found = {
        "kernel": on.kernel,
        "image": on.image,
        "accelerator": on.accelerator,
        "clock": on.clock,
        "mkfs": on.mkfs_version,
        "write cache": result.model.write_cache.name,
        "atomic write": f"{result.model.atomic_write_bytes:,} bytes",
        "writes are done": result.model.completion.value,
        "budget": compact(result.run.budget),
        "seed": str(result.run.seed),
        "bob": result.run.bob_version,
    }
    # A skipped column was not mounted, so it lacks mount options.
    mounted = {one.name: one.effective_mount_options for one in result.subjects if one.effective_mount_options}
    names = side.called or {name: name for name in mounted}
    return found | {f"{MOUNTED}{name}": mounted[its] for name, its in names.items() if its in mounted}
