"""Judge a finished or stopped run again, from its files: the recordings of disk writes, and what the mounts of crash
states showed. So a newer bob can judge an old run, without a guest. A *property* is a rule about crashes, and a
*breach* is a violation of a property. A *finding* is a group of breaches with the same cause."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from bob.answer.merge import merged, within
from bob.answer.result import AskedProgram, Environment, Result, Run, SubjectResult
from bob.catalogue.request import ProbeRequest
from bob.crash.case import Case
from bob.crash.device import DeviceModelDocument
from bob.errors import StoreError
from bob.judge.column import Column
from bob.judge.recoveries import add_recoveries
from bob.protocol.diagram import Protocol
from bob.schema import decode
from bob.search.space import BESIDE
from bob.search.spaces import search_in
from bob.store.files import reading
from bob.store.lock import writing
from bob.store.matrix_directory import MatrixDirectory
from bob.store.run_directory import RunDirectory, request_of
from bob.store.run_kind import no_probe
from bob.store.search_directory import SearchDirectory
from bob.workload.operations import Workload


def judge_again(path: Path, step: Callable[[str], None] = lambda _text: None) -> Result:
    """Judge the run in the folder ``path`` again, write the new result to this folder, and return it. ``step`` is
    called with lines about progress. Raises StoreError if a file that the run should have kept is missing, or if
    another process is writing the run at this time."""
    if SearchDirectory.is_one(path):
        found = SearchDirectory(path)
        lots = found.runs()
        if not lots:
            raise StoreError(f"{path} stopped before its first lot of workloads", hint="--resume continues it")
        with writing([path, *(run.path for run in lots)]):
            return told(found, [(run.path, judge_run(run, by_cause=True)) for run in _each(lots, "lot", step)])
    if not MatrixDirectory.is_one(path):
        run = RunDirectory(path)
        with writing([path]):
            count = len(run.planned()) if "workloads" in run.about() else 0
            step(f"judging {count:,} workloads{_said_of_age(run)}")
            return judge_run(run)
    directory = MatrixDirectory(path)
    columns = directory.columns()
    with writing(directory.written):
        judged = [(run.path, judge_run(run)) for run in _each(columns, "configuration", step)]
        return directory.save_columns(judged)


def _each(runs: Sequence[RunDirectory], what: str, step: Callable[[str], None]) -> Iterator[RunDirectory]:
    for number, run in enumerate(runs, start=1):
        step(f"judging {run.path.name}: {what} {number} of {len(runs)}{_said_of_age(run)}")
        yield run


def _said_of_age(run: RunDirectory) -> str:
    return "" if run.is_sealed else "; its files lack checksums, so bob cannot tell whether they were changed"


def judge_run(run: RunDirectory, *, by_cause: bool = False) -> Result:
    """Judge ``run`` again, write the new result to the run's folder, and return it. With ``by_cause``, the result also
    has findings: breaches of properties, grouped by their cause. The caller must have locked ``run``. Raises StoreError
    if ``run`` is not a test of file systems, or lacks files."""
    path, about = run.path, run.about()
    if not {"request", "bob", "workloads"} <= set(about):
        raise no_probe(path, about)
    if "environment" not in about:
        raise StoreError(f"{path} stopped before its guests were ready", hint="--resume continues it")
    request = request_of(run)
    with reading(path / "run.json"):
        environment = decode(Environment, about["environment"])
    workloads = run.planned()
    if "skipped" in about:  # a skipped run has nothing to judge
        return run.result()
    request = replace(request, by_cause=by_cause or request.by_cause)
    column = column_of(run, request, environment, run.save_traceback)
    for number, planned in enumerate(workloads):
        if run.is_tried(run.folder(number, planned)):
            add_kept(column, run, number, planned, request)
        elif "finished" in about:
            why = f"{run.folder(number, planned)} is damaged: the run was finished, but observed.json is missing"
            raise StoreError(why, hint="restore that file, or probe again")
        else:
            column.refuse(planned, "the run was stopped before this workload was observed")
    if request.recovery_crashes:
        add_recoveries(column, run, workloads, request)
    return keep_result(run, request, environment, [column.result(column.cells())], about.get("finished", ""))


def column_of(
    run: RunDirectory, request: ProbeRequest, environment: Environment, broke: Callable[[str, str], object]
) -> Column:
    """Return a new column of the table of answers, for the configuration (a file system with its options) in
    ``request``. The table has a row for each property. The caller then adds recordings to the column. The column saves
    its witnesses (documents about states that break a property) in ``run``. If bob itself fails, the column calls
    ``broke`` with a title and the traceback."""
    properties = [probe.property for probe in request.asked]
    measured_on = asdict(environment)
    return Column(request.configuration, properties, measured_on, run.save_witness, broke, by_cause=request.by_cause)


def keep_result(
    run: RunDirectory,
    request: ProbeRequest,
    environment: Environment,
    subjects: Sequence[SubjectResult],
    finished: str,
    program: AskedProgram | None = None,
    protocols: Sequence[Protocol] = (),
) -> Result:
    """Make the result of a run, write it to ``run``, and return it. ``subjects`` has the results of the run's
    configurations, one for each. ``program`` is the program that the run checked (None: the run is a probe of file
    systems). ``finished`` is the time when the run ended, or empty if it has not ended."""
    about = run.about()
    result = Result(
        run=Run(about["id"], about["started"], finished, about["bob"], request.seed, request.budget),
        environment=environment,
        device_model=DeviceModelDocument.of(request.model),
        subjects=tuple(subjects),
        program=program,
        protocols=tuple(protocols),
    )
    run.save_result(result)
    return result


def add_kept(column: Column, run: RunDirectory, number: int, planned: Workload, request: ProbeRequest) -> None:
    folder = run.folder(number, planned)
    if refused := run.unobserved(folder):
        column.refuse(planned, refused.reason, refused.fall)
        return
    workload, base_name, recording = run.recording(folder)
    base, observed = run.base(base_name), run.observed(folder)
    try:
        case = Case.of(request.configuration, workload, base, recording, request.model)
    except Exception as broken:
        column.broke(workload, broken)
    else:
        column.add(case, observed)


def told(directory: SearchDirectory, lots: Sequence[tuple[Path, Result]]) -> Result:
    """Merge the results in ``lots`` into one result of the whole search. Write it to the search's directory, and return
    it. A search runs many small workloads in batches, called lots. ``lots`` has the folder and the result of each
    batch, and must not be empty."""
    about, first = directory.about(), lots[0][1]
    search = search_in(about["search"])
    times = about["started"], about.get("finished", "")
    run = Run(about["id"], *times, about["bob"], first.run.seed, first.run.budget, search.words)
    result = merged([within(result, folder.name) for folder, result in lots], run)
    [subject] = result.subjects
    rows = [*(one.name for one in search.space().asked), BESIDE]
    ordered = sorted(subject.answers, key=lambda answer: rows.index(answer.name) if answer.name in rows else len(rows))
    notes = dict.fromkeys((*subject.notes, *about.get("skipped", ())))
    result = replace(result, subjects=(replace(subject, answers=tuple(ordered), notes=tuple(notes)),))
    directory.save_result(result)
    return result
