"""The results that the site shows. These are the references (measured tables in reports/), other runs, answers about
tested programs, and models of file systems. Most tables have the thirteen properties of the ALICE paper (OSDI'14).
A *finer* table has hundreds of properties."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path, PurePosixPath

from bob.answer.result import Result, SubjectResult
from bob.apm.model import Model
from bob.apm.model import load as load_model
from bob.report import answer_pages
from bob.report.columns import ShownColumn, columns_of
from bob.report.comparison.compare import Comparison, compare
from bob.report.comparison.sides import Side, known_reasons, published_side, run_side
from bob.report.page import PageCell, PageColumn, pages, shown_apart
from bob.report.published import EXPLODE, OSDI14, published
from bob.report.saved import Saved, load_every, load_table, result_file
from bob.report.shown_way import INDEX
from bob.site.sources import slug

_HELD_AGAINST = {"osdi14": OSDI14, "sync-table": EXPLODE}  # results, and the published table of the same rows
MODELS = "reports/models/osdi14-linux-6.1"  # the folder of the models that answer whether one can rely on something
RESULTS = "results"  # the site's folder for pages of results
COMPARED = "compared"  # the folder for comparisons in the folder for results
# The page with the comparisons of all references whose name begins with _BY_KERNEL.
KERNELS = Path("reports/kernels.md")
_BY_KERNEL = "defaults-linux-"
_APPS = "apps.json.xz"
_ADDRESS = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Reference:
    """A measured table. ``name`` is the name of its folder on the site."""

    name: str
    saved: Saved

    @property
    def kernel(self) -> str:
        return self.saved.result.environment.kernel

    @cached_property
    def columns(self) -> list[ShownColumn]:
        return columns_of([(self.saved.result, self.saved.folder)])

    @cached_property
    def shown(self) -> list[PageColumn]:
        """The columns of the table, one for each configuration, with the addresses of their pages."""
        return shown_apart(self.columns)

    def pages(self, home: str) -> Iterator[tuple[PurePosixPath, str]]:
        return pages(self.shown, home)

    @property
    def measured_for(self) -> str:
        """The first part of the reference's name, which says what bob measured. The second part is the kernel."""
        return self.name.partition("-linux-")[0]

    @property
    def side(self) -> Side:
        """The table in the form that bob needs to compare it with another table."""
        return run_side(str(self.saved.folder), self.saved.result, self.saved.folder)


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A row in the site's table of all results. It is one configuration of the table ``reference``. ``shown`` has the
    addresses of the configuration's pages."""

    reference: Reference
    shown: PageColumn

    @property
    def configuration(self) -> SubjectResult:
        return self.shown.configuration

    @property
    def cells(self) -> Mapping[str, PageCell]:
        return self.shown.cells

    @property
    def fs(self) -> str:
        return self.configuration.fs

    @property
    def variant(self) -> str:
        return self.shown.column.variant

    @property
    def version(self) -> str:
        return short(self.reference.kernel)

    @property
    def title(self) -> str:
        return f"{self.configuration.name}, Linux {self.version}"

    @property
    def options(self) -> str:
        """The options of mkfs and mount in words for people."""
        mkfs, mounted = self.configuration.mkfs_options, self.configuration.mount_options
        return ", ".join(filter(None, (mkfs and f"mkfs {mkfs}", mounted))) or "default options"

    @property
    def remarks(self) -> str:
        """Remarks about the row. They say what was measured (:attr:`Reference.measured_for`). If mkfs had options, the
        remarks begin with the options of mkfs and mount."""
        measured = self.reference.measured_for
        return f"{self.options}, {measured}" if self.options.startswith("mkfs") else measured

    @property
    def is_finer(self) -> bool:
        """Return whether the row is of a finer table, which has hundreds of properties."""
        return any(cell.is_in_grid for cell in self.cells.values())

    def place(self, link: str) -> str:
        """Return the address on the site for ``link``, which is relative to the reference's pages."""
        return f"{RESULTS}/{self.reference.name}/{INDEX if link.startswith('#') else ''}{link}"


@dataclass(frozen=True, slots=True)
class ComparedTables:
    """The comparison of two tables, whose names are ``before`` and ``after``."""

    before: str
    after: str
    comparison: Comparison

    @property
    def own_place(self) -> str:
        return f"{RESULTS}/{COMPARED}/{self.before}--{self.after}.html"

    def place(self, found: Collection[Path]) -> str:
        """Return the path of the page with the comparison. ``found`` are the project's own pages. If a page of the
        project shows the comparison, return the path of that page. Otherwise return the path of the page that bob makes
        for the comparison."""
        before, after = (Path("reports/reference") / name / "README.md" for name in (self.before, self.after))
        if self.comparison.a.published and after in found:
            return after.as_posix()
        if {before, after, KERNELS} <= set(found) and self.before.startswith(_BY_KERNEL):
            kernels = (name.partition("-linux-")[2] for name in (self.before, self.after))
            return f"{KERNELS}#{slug('From {} to {}'.format(*kernels), '-')}"
        return self.own_place


@dataclass(frozen=True, slots=True)
class TestedProgram:
    """The answers for one program. ``name`` is the name of the program's folder on the site. ``folder``, in
    reports/reference, contains the witnesses (files with the crash states that show a fault)."""

    name: str
    result: Result
    folder: Path

    def pages(self, home: str) -> Iterator[tuple[PurePosixPath, str]]:
        return answer_pages.pages(self.result, self.folder, home)


@dataclass(frozen=True, slots=True)
class Results:
    """All results that the site shows. ``models`` are the models in :data:`MODELS`."""

    references: tuple[Reference, ...]
    programs: tuple[TestedProgram, ...]
    models: tuple[Model, ...]

    @property
    def rows(self) -> list[ResultRow]:
        return [ResultRow(reference, shown) for reference in self.references for shown in reference.shown]

    @property
    def models_are_of_another_run(self) -> bool:
        """Return whether bob derived the models from runs whose tables are not on the site."""
        shown = {reference.saved.result.run.id for reference in self.references}
        return not any(run in shown for model in self.models for run in model.source.get("runs", ()))


def model_place(model: Model) -> str:
    """Return the address of a model's page on the site."""
    return f"{MODELS}/{model.name}.html"


def compared(references: Sequence[Reference]) -> Iterator[ComparedTables]:
    """Yield comparisons of tables. One kind compares the same table on successive kernels. The other kind compares a
    measured table with the table of the same properties in a paper (OSDI'14 or EXPLODE)."""
    same: dict[str, list[Reference]] = {}
    for reference in references:
        same.setdefault(reference.measured_for, []).append(reference)
    for name, found in same.items():
        ordered = sorted(found, key=lambda one: version(one.kernel))
        for before, after in pairwise(ordered):
            yield ComparedTables(before.name, after.name, compare(before.side, after.side))
        if (table := _HELD_AGAINST.get(name)) is not None:
            theirs = published_side(published(table))
            for one in ordered:
                yield ComparedTables(table, one.name, compare(theirs, one.side, known_reasons(theirs)))


def read(runs: Sequence[Path] = ()) -> Results:
    """Read the references and models below the current directory, and the results of ``runs``. Raise StoreError or
    MalformedError if a result cannot be read."""
    folders = sorted(Path("reports").glob("reference/*"), key=_by_version)
    references = [Reference(folder.name, load_table(folder)) for folder in folders if result_file(folder).is_file()]
    references += [Reference(name, load_table(run)) for name, run in _named(runs, {one.name for one in references})]
    programs = [one for folder in folders if (folder / _APPS).is_file() for one in _tested(folder)]
    found = [load_model(path) for path in sorted(Path(MODELS).glob("*.json"))]
    return Results(tuple(references), tuple(programs), tuple(found))


def short(kernel: str) -> str:
    """Return a kernel's short version: "6.1" of "6.1.0-56-amd64"."""
    found = re.match(r"\d+\.\d+", kernel)
    return found[0] if found else kernel


def version(kernel: str) -> tuple[int, ...]:
    """Return a key that sorts kernels by their version."""
    return tuple(map(int, re.findall(r"\d+", kernel)))


def _by_version(folder: Path) -> tuple[str, tuple[int, ...]]:
    name = re.split(r"\d", folder.name, maxsplit=1)[0]
    return name, version(folder.name)


def _named(runs: Iterable[Path], taken: set[str]) -> Iterator[tuple[str, Path]]:
    """Yield each run with a unique name that can be a part of an address."""
    for run in runs:
        wanted = _ADDRESS.sub("-", (run if run.is_dir() else run.with_suffix("")).resolve().name).strip(".-") or "run"
        name, number = wanted, 2
        while name in taken:
            name, number = f"{wanted}-{number}", number + 1
        taken.add(name)
        yield name, run


def _tested(folder: Path) -> Iterator[TestedProgram]:
    for saved in load_every(folder / _APPS):
        yield TestedProgram(f"{folder.name}/{_ADDRESS.sub('-', saved.result.program_name)}", saved.result, folder)
