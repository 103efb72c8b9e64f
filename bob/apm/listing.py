"""Print what models say, or turn it into JSON documents: allowed states, dependencies, differences of two models, and
checks. A model is a set of clauses. A *clause* is one promise about crash states. The *evidence* against a clause is an
observation that the clause forbids. A *micro-operation* is a step that persists as a whole or not at all."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bob.apm.allowed import said
from bob.apm.check import CheckDocument, Outcomes
from bob.apm.clauses import Clause, without_exception
from bob.apm.compare import Apart
from bob.apm.dependencies import Graph
from bob.apm.model import ClauseStatus, Model
from bob.apm.model_states import AllowedTrees, dependencies
from bob.apm.trees import ModelEntry, ModelTree
from bob.apm.what_if import WhatIf
from bob.apm.what_if import lines as what_if_lines
from bob.report.lines import Trimmed, print_indented
from bob.schema import Document
from bob.text import plural
from bob.workload.language import write_one
from bob.workload.pattern import describe


class ChangeRow(Document, frozen=True):
    kind: str
    operation: int
    about: str


class StatesDocument(Document, frozen=True, tag_field="schema", tag="bob.apm-states/1"):
    """The states that a model allows for a workload. `bob apm states` prints this document. Each of ``states`` is a
    tree as lines of text. ``dependencies[i]`` lists the micro-operations that must have persisted if micro-operation i
    has persisted."""

    operations: tuple[str, ...]
    micro_operations: tuple[ChangeRow, ...]
    dependencies: tuple[tuple[int, ...], ...]
    complete: bool
    states: tuple[tuple[str, ...], ...]


class ApartRow(Document, frozen=True):
    """A clause that only one of two models promises. ``promised_by`` is the name of that model. The fields after
    ``promised_by`` say why the other of the two models does not promise the clause. ``status`` comes from that other
    model, and says how the tests of the clause ended."""

    clause: str
    meaning: str
    promised_by: str
    status: ClauseStatus
    evidence: str | None
    witness: str | None
    workload: str | None
    state: tuple[str, ...] | None


class ApartDocument(Document, frozen=True, tag_field="schema", tag="bob.apm-compare/1"):
    """The differences of two models. `bob apm compare` prints this document."""

    models: tuple[str, str]
    differences: tuple[ApartRow, ...]


class ProgramChange(Document, frozen=True):
    """The effect of a changed model on the answer about a program. ``safety`` says whether the program is safe, first
    under the old model and then under the changed one. ``all`` says for both models whether bob tried all crash states
    that the model allows. Three fields list vulnerabilities of the program, each as a sentence. Those in ``added``
    are new under the changed model, those in ``mended`` are gone, and those in ``kept`` stay."""

    program: str
    safety: tuple[str, str]
    reason: str | None
    all: tuple[bool, bool]
    added: tuple[str, ...]
    mended: tuple[str, ...]
    kept: tuple[str, ...]


class WhatIfDocument(Document, frozen=True, tag_field="schema", tag="bob.apm-what-if/1"):
    """A changed model, stored in the file ``file``, and its effect on ``programs``. `bob apm what-if` prints this
    document."""

    model: str
    changes: tuple[str, ...]
    file: str
    gone: tuple[str, ...]
    new: tuple[str, ...]
    programs: tuple[ProgramChange, ...]


def lines(tree: ModelTree) -> list[str]:
    """Return a tree as lines, one for each name, with its size and its contents in words."""
    return [f"{path}{_entry(path, entry)}" for path, entry in tree] or ["(nothing)"]


def document(graph: Graph, promised: Set[Clause], allowed: AllowedTrees) -> StatesDocument:
    operations = graph.workings.operations
    return StatesDocument(
        operations=tuple(write_one(operation) for operation in graph.workings.history.operations),
        micro_operations=tuple(ChangeRow(one.kind.value, one.number, said(graph.workings, one)) for one in operations),
        dependencies=tuple(tuple(sorted(needed)) for needed in dependencies(graph, promised)),
        complete=allowed.complete,
        states=tuple(tuple(lines(tree)) for tree in allowed.trees),
    )


def print_states(screen: Console, graph: Graph, allowed: AllowedTrees) -> None:
    """Print the states that a model allows for a workload. States that differ only in the contents of files are printed
    as one, because torn writes make many of them."""
    count = plural(len(allowed.trees), "crash state")
    operations = plural(len(graph.workings.operations), "micro-operation")
    alike: dict[object, list[ModelTree]] = {}
    for tree in allowed.trees:
        alike.setdefault(_shape(tree), []).append(tree)
    ways = f", with {plural(len(alike), 'set')} of names and sizes" if len(alike) < len(allowed.trees) else ""
    screen.print(f"{count if allowed.complete else f'more than {count}'} of {operations}{ways}", soft_wrap=True)
    for number, trees in enumerate(alike.values(), start=1):
        more = f" {plural(len(trees), 'crash state')} that differ in contents" if len(trees) > 1 else ""
        screen.print(Text(f"{number}:{more}", "bold"))
        for line in _together(trees):
            screen.print(Text(f"    {line}"))


def _shape(tree: ModelTree) -> object:
    return tuple((path, replace(entry, content=b""), len(entry.content)) for path, entry in tree)


def _together(trees: Sequence[ModelTree]) -> Iterator[str]:
    for place, line in enumerate(lines(trees[0])):
        several = {tree[place][1].content for tree in trees if tree}
        if len(several) < 2:
            yield line
        else:
            yield f"{line}; or {plural(len(several) - 1, 'other content')}"


def apart_document(one: Model, other: Model, found: Sequence[Apart]) -> ApartDocument:
    return ApartDocument((one.name, other.name), tuple(map(_apart_row, found)))


def _apart_row(apart: Apart) -> ApartRow:
    refutation = apart.finding.refutation
    return ApartRow(
        clause=apart.clause.name,
        meaning=apart.clause.words,
        promised_by=apart.stronger.name,
        status=apart.finding.status,
        evidence=None if refutation is None else refutation.evidence,
        witness=None if refutation is None else refutation.witness,
        workload=apart.operations or None,
        state=None if apart.tree is None else tuple(lines(apart.tree)),
    )


def print_apart(screen: Console, one: Model, other: Model, found: Sequence[Apart]) -> None:
    """Print how two models differ, grouped by the model that promises more. If the names of several clauses begin
    alike, print the evidence against one clause only. ``one`` and ``other`` are the models, and ``found`` has their
    differences."""
    if not found and one.promised == other.promised:
        screen.print(f"{one.name} and {other.name} promise the same")
    elif not found:
        screen.print(f"{one.name} and {other.name} differ, but no small workload shows the difference")
    for promising, parts in groupby(found, key=lambda apart: (apart.stronger.name, apart.weaker.name)):
        told = list(parts)
        screen.print(Text(f"{promising[0]} promises, {promising[1]} does not ({len(told)}):", "bold"))
        alike: dict[str, list[Apart]] = {}
        for apart in told:
            alike.setdefault(_begins(apart), []).append(apart)
        for begins, several in alike.items():
            apart = next((one for one in several if one.finding.refutation is not None), several[0])
            print_indented(screen, Text(apart.clause.words), 2)
            if len(several) > 1:
                others = [one.clause.words.removeprefix(begins).strip() for one in several if one is not apart]
                print_indented(screen, Text(f"and so for {len(others)} more: {', '.join(others)}", "bob.dim"), 6)
            refutation = apart.finding.refutation
            if refutation is not None:
                where = f" [{refutation.witness}]" if refutation.witness else ""
                print_indented(screen, Text(f"refuted: {refutation.evidence}{where}", "bob.fails"), 6)
            else:
                reason = f": {apart.finding.reason}" if apart.finding.reason else ""
                print_indented(screen, Text(f"{apart.finding.status.value.replace('-', ' ')}{reason}", "bob.dim"), 6)
            if apart.tree is not None:
                print_indented(screen, Text(apart.operations, "bob.command"), 6)
                print_indented(screen, Text(f"may leave {'; '.join(_changed(apart))}"), 8)


def _begins(apart: Apart) -> str:
    words = apart.clause.words
    for ends in (" before a later ", " has returned, "):
        if ends in words:
            return words.partition(ends)[0] + ends
    return words


def print_what_if(screen: Console, found: WhatIf, path: Path) -> None:
    screen.print(Text.assemble((f"{path}", "bold"), f": {found.after.about}"), soft_wrap=True)
    for heading, clauses in (
        ("no longer promised", found.gone - frozenset(map(without_exception, found.weaker))),
        ("promised only for changes that no sync persists", found.weaker),
        ("newly promised", found.new - found.weaker),
    ):
        if clauses:
            screen.print(Text(f"  {heading} ({plural(len(clauses), 'clause')}):", "bob.heading"))
            for line in what_if_lines(clauses):
                screen.print(Text(f"    {line}"), soft_wrap=True)


def what_if_document(found: WhatIf, path: Path, programs: Sequence[ProgramChange]) -> WhatIfDocument:
    return WhatIfDocument(
        model=found.before.name,
        changes=tuple(found.after.source["changes"]),
        file=str(path),
        gone=tuple(sorted(clause.name for clause in found.gone)),
        new=tuple(sorted(clause.name for clause in found.new)),
        programs=tuple(programs),
    )


def _changed(apart: Apart) -> list[str]:
    assert apart.tree is not None
    before, names = set(apart.before), {path for path, _entry in apart.tree}
    new = lines(tuple(named for named in apart.tree if named not in before)) if set(apart.tree) - before else []
    return [*new, *(f"no {path}" for path, _entry in apart.before if path not in names)] or [
        "everything as it was before"
    ]


def _entry(path: str, entry: ModelEntry) -> str:
    if entry.kind == "directory":
        return "/"
    if entry.kind == "symlink":
        return f" -> {entry.target}"
    attributes = "".join(f", {name} = {describe(value)}" for name, value in entry.xattrs)
    same = f", same file as {entry.same}" if entry.same != path else ""
    return (
        f"  {len(entry.content):,} B: {describe(entry.content)}{attributes}{same}" if entry.content else f"  0 B{same}"
    )


def soundness(found: CheckDocument) -> str:
    held_out = found.held_out
    return f"{held_out.unsound:,} of {held_out.observed:,} observed outcomes of held-out workloads are forbidden"


def print_checks(screen: Console, checks: Sequence[CheckDocument]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for heading in ("model", "on", "promises", "forbids", "of held-out", "tightness", "counted in"):
        table.add_column(Text(heading, "bob.dim"), overflow="fold")
    for found in checks:
        table.add_row(
            Text(found.model, "bold"),
            found.run,
            plural(found.promised, "clause"),
            Text(_forbids(found), "bob.fails" if found.unsound else ""),
            _forbids(found.held_out) if any(one.held_out for one in found.workloads) else "",
            "" if found.tightness is None else f"{found.tightness:.0%}",
            f"{found.counted_workloads} of {plural(len(found.workloads), 'workload')}",
        )
    screen.print(Trimmed(table))
    for found in checks:
        for one in found.workloads:
            for counter in one.unsound[:3]:
                clauses = ", ".join(counter.clauses)
                screen.print(Text.assemble(("forbidden", "bob.fails"), f" {found.run}, {one.title}: {clauses}"))
                screen.print(Text(f"    {counter.evidence}"))


def _forbids(found: Outcomes) -> str:
    return f"{found.unsound:,} of {plural(found.observed, 'outcome')}"
