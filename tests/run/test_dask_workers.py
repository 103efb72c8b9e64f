"""Runs on a Dask cluster of two worker processes on loopback, whose guests are made up: what is handed out comes back,
also where a worker is killed, and makes the same run directory as one machine does.

A worker does all that a real one does but for the guests: :func:`simulated` puts answers that were recorded in their
place (samples_of_runs).
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import tempfile
import threading
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.answer.answer import Cross
from bob.answer.result import Allowed, AskedProgram, Checks, Environment, Missed, Result
from bob.apm.builtin import builtin
from bob.catalogue.probe_files import Probe, shipped_probes
from bob.catalogue.request import Host, ProbeRequest
from bob.claim.verdict import Verdict
from bob.crash import case
from bob.crash.coverage import States
from bob.documents import opened
from bob.errors import GuestError, MissingProgramError, StoreError, UsageError
from bob.guest.spec import Accelerator
from bob.image.cache import GUEST_MODULES
from bob.judge.again import judge_again, keep_result
from bob.judge.merging import merge
from bob.judge.modelled import unknown
from bob.program.answer import Consequence
from bob.program.program import Program, ProgramDocument, ProgramFile
from bob.progress import Earlier, Silent
from bob.record.base import base_name
from bob.report.saved import load
from bob.run import dask_workers, parcel_process, prober, programs, scheduler, timings
from bob.run import matrix as module
from bob.run import search as searching
from bob.run.parcels import Parcel, ParcelResult, new_in, packed, unpack
from bob.run.pipeline import ExploredCase, Task
from bob.run.program_parts import asked_of
from bob.schema import decode
from bob.search.space import Part
from bob.search.spaces import Search, search
from bob.store.matrix_directory import MatrixDirectory
from bob.store.run_directory import RunDirectory
from bob.store.search_directory import SearchDirectory
from bob.subject import ConfigurationSet, configuration
from samples_of_programs import by_model, file_system, way
from wording import text_with

distributed = pytest.importorskip("distributed")

CHOSEN = ConfigurationSet(
    "three", "", (configuration("ext2"), configuration("xfs"), configuration("ext4", "", "data=ordered"))
)
NAMES = [made.name for made in CHOSEN.configurations]
[OVERWRITE] = shipped_probes(("overwrite-any",))
MINE = Probe(1, replace(OVERWRITE.property, name="mine"), OVERWRITE.workloads[:9])
"""What samples_of_runs breaks, asked of few workloads."""
REQUEST = ProbeRequest(CHOSEN.configurations[0], probes=(MINE,))
SEEN = samples.observed(
    (samples.FIRST, 0),
    (samples.LAST, 1),
    (samples.CrashState(1), 2),
    (samples.CrashState(0, (2,)), 3),
    found=[samples.NOTHING, samples.ALL, samples.OUT_OF_ORDER, samples.UNMOUNTABLE],
)
ORDERS = "BOB_TEST_ORDERS"
"""A folder in which files say what a worker is to do; whoever removes one does it."""


def orders() -> Path:
    return Path(os.environ.get(ORDERS, "/nowhere"))


def ordered(name: str) -> bool:
    """Whether a worker is to do this, once."""
    try:
        (orders() / name).unlink()
    except FileNotFoundError:
        return False
    return True


class Hypervisor(SimpleNamespace):
    """No libvirt."""

    @classmethod
    @contextmanager
    def open(cls, _connect: object, _step: object) -> Iterator[Hypervisor]:
        other = orders() / "other"  # the first worker that comes to it is another machine than the rest
        if ordered("one-is-other"):
            other.write_text(str(os.getpid()))
        qemu = "10.0" if other.exists() and other.read_text() == str(os.getpid()) else "7.2"
        yield cls(
            versions=SimpleNamespace(qemu=qemu, libvirt="9.0"),
            choice=lambda _spec: SimpleNamespace(accelerator=Accelerator.TCG),
        )


class Guests:
    """In the place of a pipeline: what was recorded and seen is what samples_of_runs has. A base image is never the
    same twice, as that of a real guest; a recording says which it was made on."""

    def __init__(self, _hypervisor: object, _image: object, tasks: Sequence[Task], progress: Any, _jobs: int) -> None:
        self._tasks, self._progress = tasks, progress

    def __enter__(self) -> Guests:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def result(self, place: int, number: int) -> ExploredCase | None:
        task = self._tasks[place]
        run, workload, name = task.run, task.workloads[number], task.configuration.name
        folder = run.folder(number, workload)
        if run.is_done(folder):
            return None
        if (fails := orders() / f"refuse-{name}").exists():
            raise UsageError(fails.read_text())
        if ordered(f"kill-{name}-{number}"):
            time.sleep(0.5)  # what it told before is on its way
            os.kill(os.getpid(), signal.SIGKILL)
        if (orders() / f"break-{name}-{number}").exists():
            raise ValueError("it broke")
        if ordered(f"wait-{name}-{number}"):
            (orders() / "waits").touch()
            while IS_WANTED[0]():
                time.sleep(0.05)
            raise KeyboardInterrupt
        known = base_name(task.configuration, workload.setup, workload.pattern)
        if not run.has_base(known):
            run.save_base(replace(samples.BASE, name=known, mkfs=uuid.uuid4().hex))
        base = run.base(known)
        run.save_recording(folder, samples.WORKLOAD, base, replace(samples.RECORDING, timeline=base.mkfs))
        self._progress.recorded(workload.title)
        run.keep_observed(folder, workload, SEEN)
        self._progress.observed(workload.title, 4)
        self._progress.finished(workload.title, task.effort.budget - 4)
        return ExploredCase(samples.case(), SEEN)


def program_here(run: RunDirectory, host: Host, _progress: Any) -> None:
    """The answer for a program: what was found says which configuration it is of."""
    program, asked, [number] = (
        decode(ProgramDocument, run.about()["program"]).program,
        asked_of(run, host),
        run.about()["numbers"],
    )
    name = asked.request.configuration.name
    witness = run.save_witness(f"{number:02d}-1-lost", {"of": name})
    found = (way(Consequence.LOST, f"lost on {name}", 3, witness=witness),) if number else ()
    verdict = Verdict.FAILS if found else Verdict.HOLDS
    allowed = Allowed("", 0, 0, 0, is_all=False, missed=tuple(Missed(name, one.evidence, True) for one in found))
    answers = [replace(unknown(model.name, "", "not asked"), model=allowed) for model in asked.models]
    if asked.models and asked.answers:
        assert number == 0, "one part has the answers of models"
        predicted = way(Consequence.LOST, f"lost on {NAMES[1]}")
        answers = [by_model(one.name, Verdict.FAILS, (predicted,), allowed) for one in answers]
    subject = file_system(name, verdict, found, States(5, 6, 7, None, 4), Checks(1, 2, 3))
    measured_on = {**samples.ENVIRONMENT, "qemu": "7.2"}
    run.note(environment=measured_on)
    subjects = (subject, *answers)
    of = AskedProgram(program.name, program.about, program.digest, program.must_fail)
    keep_result(run, asked.request, Environment(**measured_on), subjects, "", of)


IS_WANTED: list[Callable[[], bool]] = []


def without_guests() -> None:
    """Have this process do without guests; in a worker, for good."""
    image = SimpleNamespace(
        name="debian-bookworm",
        key="k",
        named="debian-bookworm (k)",
        kernel_release="6.1",
        tools={"e2fsprogs": "1", "xfsprogs": "2"},
        modules=frozenset({*GUEST_MODULES, "ext4", "xfs"}),
        needed=GUEST_MODULES,
        instead=("another image", "another image"),
    )

    def guests_of(_image: object, connect: object, step: object) -> Any:
        return Hypervisor.open(connect, step)

    for room in (prober, parcel_process):
        for name, made in (("image_called", lambda *_: image), ("guests_of", guests_of), ("Pipeline", Guests)):
            setattr(room, name, made)
    prober.GuestSpec = lambda *_: None  # type: ignore[assignment,misc]
    case.checked = lambda _recording, _base: samples.TRACE  # type: ignore[assignment]


def simulated(parcel: Parcel) -> ParcelResult:
    """What :func:`bob.run.dask_workers.work` does, but in this process and without guests."""

    def in_this_process(parcel: Parcel, folder: Path, tell: Any, is_wanted: Callable[[], bool]) -> ParcelResult:
        IS_WANTED[:] = [is_wanted]
        done = []
        stream = SimpleNamespace(write=lambda line: done.append(json.loads(line)), flush=lambda: tell([done.pop()]))
        parcel_process.go_on = program_here
        piece = parcel_process.done(parcel, folder / "run", parcel_process.ParcelProgress(stream))  # type: ignore[arg-type]
        return replace(piece, files=new_in(folder / "run", parcel.given))

    without_guests()
    timings.note = lambda _more: None  # no guest is no measure of one
    dask_workers.in_a_process = in_this_process  # type: ignore[assignment]
    return REAL_WORK(parcel)


REAL_WORK = dask_workers.work


@dataclass
class Watching(Silent):
    """Notes what it is told."""

    steps: list[str] = field(default_factory=list)
    states: int = 0
    done: int = 0
    paces: list[tuple[int, Earlier | None]] = field(default_factory=list)

    def expected(self, guests: int, earlier: Earlier | None) -> None:
        self.paces.append((guests, earlier))

    def step(self, text: str) -> None:
        self.steps.append(text)

    def observed(self, workload: str, states: int) -> None:
        self.states += states

    def finished(self, workload: str, unused: int) -> None:
        self.done += 1


class Both:
    """A scheduler with two workers, each a process with a nurse that replaces it."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._cluster = self._made()

    def _made(self) -> Any:
        return distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            local_directory=str(self._scratch),
            silence_logs=50,
        )

    def address(self) -> str:
        """Of a scheduler that has both. A nurse of Dask's that loses a worker does not always replace it (measured:
        one of ten, on a busy machine): then the cluster is made anew."""
        for _ in range(3):
            with distributed.Client(self._cluster) as client, suppress(TimeoutError):
                client.wait_for_workers(2, timeout=20)
                return str(self._cluster.scheduler_address)
            self._cluster.close()
            self._cluster = self._made()
        raise AssertionError("no cluster has two workers")

    def close(self) -> None:
        self._cluster.close()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    os.environ[ORDERS] = str(tmp_path_factory.mktemp("orders"))
    made = Both(tmp_path_factory.mktemp("scratch"))
    yield made
    made.close()


@pytest.fixture
def host(both: Both, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """Where runs of this test go."""
    monkeypatch.setattr(dask_workers, "work", simulated)
    monkeypatch.setattr(case, "checked", lambda _recording, _base: samples.TRACE)
    yield Host(scheduler=both.address())
    for left in orders().iterdir():
        left.unlink()


def interrupted_when_it_waits() -> None:
    """Ctrl-C when a worker has come to where it waits."""

    def interrupt() -> None:
        while not (orders() / "waits").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()


def order(name: str, words: str = "") -> None:
    (orders() / name).write_text(words)


@contextmanager
def here() -> Iterator[None]:
    """This process does without guests, too."""
    kept = {(room, name): getattr(room, name) for room in (prober, parcel_process) for name in PATCHED}
    checked, spec = case.checked, prober.GuestSpec
    without_guests()
    shrink, searching.shrink = searching.shrink, lambda *_, **_more: []  # type: ignore[assignment]
    try:
        yield
    finally:
        searching.shrink = shrink
        for (room, name), value in kept.items():
            setattr(room, name, value)
        case.checked, prober.GuestSpec = checked, spec  # type: ignore[misc]


PATCHED = ("image_called", "guests_of", "Pipeline")


def on_one_machine(tmp_path: Path) -> Result:
    with here():
        return module.matrix(CHOSEN, REQUEST, tmp_path / "one", Silent())[0]


def check_bases(run: Path) -> None:
    """Each recording is beside the base image that it was made on."""
    for column in MatrixDirectory(run).columns():
        assert column.workloads()
        for folder in column.workloads():
            _workload, base, recording = column.recording(folder)
            assert column.base(base).mkfs == recording.timeline


def cells(result: Result) -> list[tuple[str, list[tuple[str, Verdict, int]]]]:
    found = [
        (column.name, [(cell.name, cell.verdict, len(cell.recordings)) for cell in column.answers])
        for column in result.subjects
    ]
    assert any(verdict is Verdict.FAILS for _name, column in found for _cell, verdict, _workloads in column)
    return found


@pytest.mark.parametrize("parcels", [1, 2, 100])
def test_a_matrix_is_the_same_as_on_one_machine_though_a_worker_is_killed(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parcels: int
) -> None:
    monkeypatch.setattr(module, "PARTS_PER_PLACE", parcels)
    monkeypatch.setattr(module, "FEWEST", 3)
    order("kill-xfs-4")
    watching = Watching()
    result, run = module.matrix(CHOSEN, replace(REQUEST, host=host), tmp_path / "run", watching)

    assert cells(result) == cells(on_one_machine(tmp_path))
    assert result.run.finished and load(run).result == result
    assert [column.name for column in result.subjects] == NAMES
    assert not (orders() / "kill-xfs-4").exists()
    lost = [step for step in watching.steps if "was lost" in step]
    assert any("xfs" in step and "again" in step for step in lost), "others may have been done, and not fetched yet"
    check_bases(run)
    every = [folder for column in MatrixDirectory(run).columns() for folder in column.workloads()]
    assert watching.states == 4 * len(every) and watching.done == len(every)
    assert not list(run.rglob("lost.json"))
    assert judge_again(run).subjects == result.subjects


def test_what_is_refused_is_skipped(host: Host, tmp_path: Path) -> None:
    order("refuse-xfs", "mkfs.xfs failed (1): too small")
    result, run = module.matrix(CHOSEN, replace(REQUEST, host=host), tmp_path / "run", Silent())
    assert {(cell.verdict, cell.reason) for cell in result.subjects[1].answers} == {
        (Verdict.SKIPPED, "mkfs.xfs failed (1): too small")
    }
    assert [cell.verdict for cell in result.subjects[0].answers] == [
        cell.verdict for cell in result.subjects[2].answers
    ]
    assert result.run.finished and load(run).result == result


@pytest.mark.parametrize("parcels", [1, 100])
def test_what_is_finished_is_kept_when_it_is_stopped(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parcels: int
) -> None:
    monkeypatch.setattr(module, "PARTS_PER_PLACE", parcels)
    monkeypatch.setattr(module, "FEWEST", 3)
    order("wait-xfs-2")
    interrupted_when_it_waits()
    request = replace(REQUEST, host=host)
    with pytest.raises(KeyboardInterrupt):
        module.matrix(CHOSEN, request, tmp_path / "run", Silent())
    xfs = MatrixDirectory(tmp_path / "run").columns()[1]
    assert len(xfs.workloads()) >= 2
    before = {path: path.read_bytes() for path in xfs.workloads()[0].iterdir()}

    watching = Watching()
    result, run = module.resume(tmp_path / "run", host, watching)
    assert cells(result) == cells(on_one_machine(tmp_path))
    assert {path: path.read_bytes() for path in before} == before, "nothing is done twice"
    check_bases(run)
    assert watching.done < sum(len(column.workloads()) for column in MatrixDirectory(run).columns())


BOUNDS = """about = "two files"
setup = ["write /f 0 4096", "write /g 0 4096"]
files = ["/f", "/g"]
operations = ["write FILE 0 512", "append FILE 512"]
calls = ["fsync FILE"]
promises = ["fsync-file.size"]
"""


def asked_search(tmp_path: Path, part: Part, seconds: int | None = None) -> Search:
    (tmp_path / "two.toml").write_text(BOUNDS)
    return search(str(tmp_path / "two.toml"), ("overwrite-any",), 2, part, seconds)


WHOLE = Part(sample=8)
IN_SEARCH = ProbeRequest(configuration("ext4", "", "data=ordered"))


def searched(tmp_path: Path) -> Result:
    with here():
        return searching.search(asked_search(tmp_path, WHOLE), IN_SEARCH, tmp_path / "one" / "run", Silent())[0]


def test_a_search_is_the_same_as_on_one_machine_though_a_worker_is_killed(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "FIRST_LOT", 2)
    order("kill-ext4-ordered-1")
    request = replace(IN_SEARCH, host=host)
    result, run = searching.search(asked_search(tmp_path, WHOLE), request, tmp_path / "run", watching := Watching())
    assert not (orders() / "kill-ext4-ordered-1").exists()
    assert cells(result) == cells(searched(tmp_path))
    directory = SearchDirectory(run)
    assert len(directory.lots()) >= 3 and "finished" in directory.about()
    assert directory.known()[1] == 0, "they were begun side by side"
    assert any("was lost" in step for step in watching.steps)
    assert any("workloads tried" in step for step in watching.steps)
    assert [(guests, earlier and earlier.seconds) for guests, earlier in watching.paces] == [(2, None)]
    assert not any("this takes" in step for step in watching.steps), "that is of one machine"
    with here():
        assert cells(searching.resume(run, Host(), Silent())[0]) == cells(result), "nothing is left to do"


def test_a_search_that_was_stopped_goes_on_here_or_there(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "FIRST_LOT", 2)
    order("wait-ext4-ordered-1")
    interrupted_when_it_waits()
    with pytest.raises(KeyboardInterrupt):
        searching.search(asked_search(tmp_path, WHOLE), replace(IN_SEARCH, host=host), tmp_path / "run", Silent())
    begun = len(SearchDirectory(tmp_path / "run").lots())
    copytree(tmp_path / "run", tmp_path / "elsewhere" / "run")
    whole = cells(searched(tmp_path))
    assert cells(searching.resume(tmp_path / "run", host, Silent())[0]) == whole
    assert len(SearchDirectory(tmp_path / "run").lots()) >= begun  # on a busy machine all have begun
    with here():
        assert cells(searching.resume(tmp_path / "elsewhere" / "run", Host(), Silent())[0]) == whole


def test_shards_of_a_matrix_become_the_whole(tmp_path: Path) -> None:
    with here():
        whole, _run = module.matrix(CHOSEN, REQUEST, tmp_path / "one", Silent())
        for number in (1, 2):
            part = CHOSEN.part(number, 2)
            module.matrix(part, REQUEST, tmp_path / f"part-{number}", Silent())
        parts = [tmp_path / "part-2", tmp_path / "part-1"]
        result = merge(tmp_path / "whole", parts, "merged")
    assert isinstance(result, Result)
    assert cells(result) == cells(whole) and result.run.finished
    assert load(tmp_path / "whole").result == result
    with here():
        assert judge_again(tmp_path / "whole").subjects == result.subjects
    for column in result.subjects:
        assert all((tmp_path / "whole" / str(cell.witness)).is_file() for cell in column.answers if cell.witness)
    with here():
        assert cells(module.resume(tmp_path / "whole", Host(), Silent())[0]) == cells(whole), "it can be gone on with"
    with pytest.raises(UsageError) as refused:
        merge(tmp_path / "half", parts[:1], "half")
    assert text_with(str(refused.value), "1/2") == snapshot("shard 1/2 is missing")
    with pytest.raises(UsageError) as refused:
        merge(tmp_path / "half", [*parts[:1], *parts[:1]], "half")
    assert str(refused.value) == snapshot("a run is named twice")
    [column] = MatrixDirectory(parts[0]).columns()
    column.note(environment={**column.about()["environment"], "kernel": "6.12"})
    with pytest.raises(UsageError) as refused:
        merge(tmp_path / "half", parts, "half")
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot(
        "the environment differs between TMP/part-1/ext2 and TMP/part-2/xfs (kernel)"
    )
    assert not (tmp_path / "half").exists()


def test_probes_become_a_matrix(tmp_path: Path) -> None:
    with here():
        for made in CHOSEN.configurations:
            prober.probe(replace(REQUEST, configuration=made), tmp_path / made.name, Silent())
        result = merge(tmp_path / "whole", [tmp_path / name for name in NAMES], "merged")
        assert isinstance(result, Result) and cells(result) == cells(on_one_machine(tmp_path))
        prober.probe(replace(REQUEST, budget=7), tmp_path / "other", Silent())
    with pytest.raises(UsageError) as refused:
        merge(tmp_path / "bad", [tmp_path / "xfs", tmp_path / "other"], "merged")
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot(
        "the request differs between TMP/xfs and TMP/other (budget)"
    )
    with pytest.raises(UsageError) as refused:
        copytree(tmp_path / "ext2", tmp_path / "again")
        merge(tmp_path / "bad", [tmp_path / "ext2", tmp_path / "again"], "merged")
    assert text_with(str(refused.value), "ext2") == snapshot("several of these runs have the configuration ext2")


def test_shards_of_a_search_become_the_whole(tmp_path: Path) -> None:
    """Which lot a workload is in makes no difference to what is said of it."""
    with here():
        for number in (1, 2):
            asked = asked_search(tmp_path, Part(number, 2, 4))
            searching.search(asked, IN_SEARCH, tmp_path / f"part-{number}", Silent())
        with pytest.raises(UsageError) as refused:
            merge(tmp_path / "whole", [tmp_path / "part-2"], "merged")
        assert text_with(str(refused.value), "1/2") == snapshot("shard 1/2 is missing")
        result = merge(tmp_path / "whole", [tmp_path / "part-2", tmp_path / "part-1"], "merged")
    assert isinstance(result, Result)
    parts = [load(tmp_path / f"part-{number}").result for number in (1, 2)]
    for cell in result.subjects[0].answers:
        theirs = [one for part in parts for one in part.subjects[0].answers if one.name == cell.name]
        assert len(cell.recordings) == sum(len(one.recordings) for one in theirs)
        assert cell.verdict is not Verdict.UNKNOWN
        assert (cell.verdict is Verdict.FAILS) == any(one.verdict is Verdict.FAILS for one in theirs)
    with here():
        assert cells(judge_again(tmp_path / "whole")) == cells(result)
    with pytest.raises(StoreError) as refused:
        searching.resume(tmp_path / "whole", Host(), Silent())
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot("TMP/whole is merged from finished searches")
    with pytest.raises(UsageError) as refused:
        merge(tmp_path / "bad", [tmp_path / "part-1", prober_run(tmp_path)], "merged")
    assert str(refused.value) == snapshot("bob cannot merge these runs")


def prober_run(tmp_path: Path) -> Path:
    with here():
        return prober.probe(REQUEST, tmp_path / "probe", Silent())[1]


PROGRAM = Program("mine", "", (ProgramFile("workload", b"#!/bin/sh\n", True),))


def test_a_program_is_tried_on_each_file_system_by_some_worker(host: Host, tmp_path: Path) -> None:
    requests = [replace(REQUEST, configuration=made, host=host) for made in CHOSEN.configurations]
    models = [builtin("ext4-o"), builtin("btrfs")]
    answers, run = programs.try_program(PROGRAM, requests, tmp_path / "run", Silent(), models)
    assert [(one.name, one.answer.verdict) for one in answers.file_systems] == [
        (NAMES[0], Verdict.HOLDS), (NAMES[1], Verdict.FAILS), (NAMES[2], Verdict.FAILS)
    ]  # fmt: skip
    for one in answers.file_systems[1:]:
        [found] = one.answer.ways
        assert opened((run / str(found.witness)).read_bytes()) == {"of": one.name}
    for model, subject in zip(models, answers.models, strict=True):
        assert (subject.name, subject.answer.verdict) == (model.name, Verdict.FAILS) and subject.model is not None
        missed = [one.configuration for one in subject.model.missed]
        assert missed == NAMES[1:], "each file system's own calls were asked"
        [predicted] = subject.answer.ways
        assert [predicted.crossed[name] is Cross.CONFIRMED for name in NAMES[1:]] == [True, False]
    kept = load(run).result
    assert kept.subjects == answers.subjects and [one.name for one in kept.file_systems] == NAMES
    assert (kept.run.id, kept.program, kept.environment.qemu) == (answers.run.id, answers.program, "7.2")


def test_shards_of_a_program_become_the_whole(host: Host, tmp_path: Path) -> None:
    requests = [replace(REQUEST, configuration=made, host=host) for made in CHOSEN.configurations]
    for shard in (1, 2):
        numbers = range(3)[shard - 1 :: 2]
        mine = [requests[number] for number in numbers]
        programs.try_program(PROGRAM, mine, tmp_path / f"part-{shard}", Silent(), numbers=numbers)
    parts = [load(tmp_path / f"part-{shard}").result for shard in (1, 2)]
    whole = merge(tmp_path / "whole", [tmp_path / "part-2", tmp_path / "part-1"], "merged")
    [first, third], [second] = (part.file_systems for part in parts)
    assert whole.subjects == (first, second, third) and [one.name for one in whole.subjects] == NAMES
    assert (whole.run.id, whole.program) == ("merged", parts[0].program)
    assert load(tmp_path / "whole").result == whole
    assert (tmp_path / "whole" / "witnesses" / "01-1-lost.json").is_file()
    with pytest.raises(UsageError) as refused:
        merge(tmp_path / "half", [tmp_path / "part-2"], "merged")
    assert str(refused.value) == snapshot("a shard is missing, or named twice")


def test_a_worker_that_is_another_machine_is_left_out(host: Host, tmp_path: Path) -> None:
    whole = cells(on_one_machine(tmp_path))
    request = replace(REQUEST, host=host)
    module.matrix(CHOSEN, request, tmp_path / "run", Silent())
    column = MatrixDirectory(tmp_path / "run").columns()[1]
    column.save_loss(column.workloads()[2], samples.WORKLOAD, "the guest was lost")
    order("one-is-other")
    result, run = module.resume(tmp_path / "run", host, watching := Watching())
    assert cells(result) == whole
    [told] = [step for step in watching.steps if "leaving out" in step]
    assert "qemu is 10.0, but the run has 7.2" in told
    assert {one.about()["environment"]["qemu"] for one in MatrixDirectory(run).columns()} == {"7.2"}


def test_what_is_left_of_a_merged_matrix_is_done_by_workers(host: Host, tmp_path: Path) -> None:
    """Its columns have the names of the runs that they come from."""
    with here():
        for made in CHOSEN.configurations:
            prober.probe(replace(REQUEST, configuration=made), tmp_path / made.name, Silent())
        whole = merge(tmp_path / "whole", [tmp_path / name for name in NAMES], "merged")
    column = MatrixDirectory(tmp_path / "whole").columns()[1]
    column.save_loss(column.workloads()[2], samples.WORKLOAD, "the guest was lost")
    result, _run = module.resume(tmp_path / "whole", host, watching := Watching())
    assert isinstance(whole, Result) and cells(result) == cells(whole)
    assert (watching.done, watching.states) == (1, 4), "the worker's progress arrives"
    assert not column.losses() and column.is_finished()


def test_what_no_worker_can_do_is_unknown_and_tried_again_some_day(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PARTS_PER_PLACE", 100)
    monkeypatch.setattr(module, "FEWEST", 3)
    order("break-xfs-4")
    result, run = module.matrix(CHOSEN, replace(REQUEST, host=host), tmp_path / "run", watching := Watching())
    by_name = {column.name: column.answers[0] for column in result.subjects}
    assert [step for step in watching.steps if step.startswith("unknown: xfs") and "it broke" in step]
    xfs = MatrixDirectory(run).columns()[1]
    assert xfs.losses() and not xfs.is_finished()
    assert 0 < len(by_name["xfs"].recordings) < len(by_name["ext2"].recordings) == len(MINE.workloads)
    (orders() / "break-xfs-4").unlink()
    assert cells(module.resume(run, host, Silent())[0]) == cells(on_one_machine(tmp_path))
    assert not xfs.losses() and xfs.is_finished()


def test_where_no_worker_can_do_anything_the_run_ends(host: Host, tmp_path: Path) -> None:
    for name in NAMES:
        order(f"break-{name}-0")
    with pytest.raises(GuestError) as refused:
        module.matrix(CHOSEN, replace(REQUEST, host=host), tmp_path / "run", Silent())
    assert str(refused.value) == snapshot("no worker can do it: ValueError: it broke")


def test_no_scheduler_and_no_dask_are_told_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "CONNECT_SECONDS", 0.5)
    for number, wrong in enumerate(("tcp://127.0.0.1:1", "nonsense", "xyz://here:1")):
        request = replace(REQUEST, host=Host(scheduler=wrong))
        with pytest.raises(UsageError, match=f" {wrong}"):
            module.matrix(CHOSEN, request, tmp_path / f"run-{number}", Silent())
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingProgramError) as caught:
        module.matrix(CHOSEN, request, tmp_path / "run", Silent())
    assert str(caught.value) == snapshot("--scheduler needs Dask")
    assert caught.value.hint == "in a checkout of bob: pip install '.[cluster]'"


def test_a_scheduler_is_found_by_the_file_that_it_wrote(both: Both, tmp_path: Path) -> None:
    address = both.address()
    (tmp_path / "scheduler.json").write_text(json.dumps({"type": "Scheduler", "address": address}))
    assert scheduler.reached(str(tmp_path / "scheduler.json")) == address == scheduler.reached(address)


PROCESS = """
import json, os, pickle, sys, time
from pathlib import Path
folder, what = Path(sys.argv[2]), sys.argv[1]
from bob.run.program_parts import asked_of
from bob.run.parcels import ParcelResult
(folder / "run").mkdir()
(folder / "run" / "made").write_text("x")
for number in range(3):
    print(json.dumps(["observed", "a", 5]), flush=True)
print(json.dumps(["finished", "a", 1]), flush=True)
if what == "breaks":
    raise ValueError("it broke")
if what == "waits":
    os.read(0, 1)
(folder / "answer").write_bytes(pickle.dumps(ParcelResult(b"", stopped=what == "waits")))
"""


@pytest.mark.parametrize("what", ["ends", "breaks", "waits"])
def test_a_parcel_has_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    told: list[Any] = []
    wanted = iter([True, True, *[False] * 1000]) if what == "waits" else iter([True] * 1000)
    parcel = Parcel("run", "key", "title", "0", b"")
    process = (sys.executable, "-c", PROCESS, what)
    piece = dask_workers.in_a_process(parcel, tmp_path, told.extend, lambda: next(wanted), process)
    unpack(piece.files, tmp_path / "back")
    assert [path.name for path in (tmp_path / "back").iterdir()] == ["made"]
    assert told == [["observed", "a", 15], ["finished", "a", 1]]
    assert piece.stopped == (what == "waits")
    assert (piece.broke == "bob failed in a worker: ValueError: it broke") == (what == "breaks")


@given(
    st.dictionaries(st.from_regex(r"[a-z]{1,4}(/[a-z]{1,4}){0,2}", fullmatch=True), st.binary(max_size=9), max_size=6),
    st.data(),
)
def test_what_travels_is_what_was_there(files: dict[str, bytes], data: st.DataObject) -> None:
    files = {name: held for name, held in files.items() if not any(other.startswith(f"{name}/") for other in files)}
    with tempfile.TemporaryDirectory() as place:
        one, other = Path(place) / "one", Path(place) / "other"
        one.mkdir()
        for name, held in files.items():
            (one / name).parent.mkdir(parents=True, exist_ok=True)
            (one / name).write_bytes(held)
        before = packed(one)
        unpack(before, other)
        assert {str(path.relative_to(other)): path.read_bytes() for path in other.rglob("*") if path.is_file()} == files
        changed = data.draw(st.sets(st.sampled_from(sorted(files)))) if files else set()
        for name in changed:
            (one / name).write_bytes(files[name] + b"!")
        unpack(new_in(one, before), Path(place) / "new")
        new = {str(path.relative_to(Path(place) / "new")) for path in Path(place, "new").rglob("*") if path.is_file()}
        assert new == changed


def test_no_file_leads_out_of_a_run(tmp_path: Path) -> None:
    for name in ("../x", "/x", "a/../../x"):
        with zipfile.ZipFile(buffer := io.BytesIO(), "w") as archive:
            archive.writestr(name, b"x")
        with pytest.raises(StoreError, match="does not belong to a run"):
            unpack(buffer.getvalue(), tmp_path / "run")
    assert not (tmp_path / "x").exists()
    with pytest.raises(StoreError) as refused:
        unpack(b"PK nothing", tmp_path / "run")
    assert str(refused.value) == snapshot("a worker sent damaged files: File is not a zip file")
