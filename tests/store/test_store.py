"""The run directory: what is kept reads back the same, whole or not at all, and damage is told in one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob import documents
from bob.agent.loss import Loss, LossCause
from bob.answer.result import Environment, Result, Run
from bob.catalogue.request import ANYWHERE, ProbeRequest
from bob.crash.device import DeviceModel, DeviceModelDocument
from bob.crash.state import CrashState
from bob.errors import StoreError
from bob.judge.again import judge_again
from bob.observe.observations import MixedStates, StateTrouble
from bob.observe.unknown_torn import CauseCount, TornCause
from bob.progress import Silent
from bob.run import prober
from bob.run.matrix import resume as resume_matrix
from bob.run.prober import start
from bob.schema import LATER, decode
from bob.store.files import write_document
from bob.store.lock import writing
from bob.store.matrix_directory import MatrixDirectory
from bob.store.run_directory import RunDirectory
from bob.store.run_documents import RefusedWorkload
from bob.subject import ConfigurationSet, configuration
from bob.trace.recording import Completion
from bob.workload.language import parse
from bob.workload.operations import At, Finish, Workload
from bob.workload.plain import WorkloadDocument, workload_to_json
from mediums import image_of
from wording import text_with
from workload.generators import random_workload

STATES = (
    (samples.FIRST, 0),
    (CrashState(1, (3,), ((4, ((0, 1), (2, 3))),)), 2),
    (CrashState(1), None),
)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run", {"id": "x"})


def test_a_run_names_the_version_of_its_files_and_an_older_one_without_it_is_read(run: RunDirectory) -> None:
    path = run.path / "run.json"
    assert documents.opened(path.read_bytes()) == run.about() == {"schema": "bob.run/1", "id": "x"}
    write_document(path, {"id": "x"})
    assert run.about() == {"id": "x"}
    write_document(path, {"schema": "bob.run/2", "id": "x"})
    for reader in (run.about, run.planned, lambda: judge_again(run.path, Silent().step)):
        with pytest.raises(StoreError, match=r"has schema 'bob\.run/2', and this bob reads 'bob\.run/1'") as refused:
            reader()
        assert refused.value.hint == LATER


def kept(run: RunDirectory, number: int = 0) -> Path:
    folder = run.folder(number, samples.WORKLOAD)
    run.save_base(samples.BASE)
    run.save_recording(folder, samples.WORKLOAD, samples.BASE, samples.RECORDING)
    return folder


def test_a_run_directory_is_made_once(tmp_path: Path) -> None:
    made = RunDirectory.create(tmp_path / "a" / "run", {"id": "x"})
    made.note(finished="now")
    assert RunDirectory(made.path).about() == {"schema": "bob.run/1", "id": "x", "finished": "now"}
    with pytest.raises(StoreError) as refused:
        RunDirectory.create(made.path, {})
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot("TMP/a/run is not empty")
    with pytest.raises(StoreError) as refused:
        RunDirectory(tmp_path)
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot("TMP is not a run directory")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as refused:
        RunDirectory.create(tmp_path / "file" / "run", {})
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot("cannot write TMP/file/run: Not a directory")


@pytest.mark.parametrize("seed", range(20))
def test_workloads_read_back_the_same(seed: int) -> None:
    workload = random_workload(Random(seed))
    for finish in (
        Finish("natural 2.5", natural=True, phase=2.5),
        Finish("x", parse("fsync /d; sync_file_range /a 0 7; msync /a; syncfs; fdatasync /a")),
    ):
        for at in At:
            workload = Workload(f"a name; {seed}", workload.setup, workload.operations, finish, at)
            assert decode(WorkloadDocument, json.loads(json.dumps(workload_to_json(workload)))).workload == workload


def test_a_recording_that_is_older_than_the_choice_of_completion_was_prompt(run: RunDirectory) -> None:
    folder = kept(run)
    document = documents.opened((folder / "recorded.json").read_bytes())
    del document["completion"]
    write_document(folder / "recorded.json", document)
    assert run.recording(folder)[2].completion is Completion.PROMPT


def test_recordings_and_bases_read_back_the_same(run: RunDirectory) -> None:
    folder = kept(run)
    workload, base, recording = run.recording(folder)
    assert (workload, base, recording) == (samples.WORKLOAD, samples.BASE.name, samples.RECORDING)
    late = replace(samples.RECORDING, completion=Completion.YOUNGEST_FIRST)
    run.save_recording(folder, samples.WORKLOAD, samples.BASE, late)
    assert run.recording(folder)[2] == late
    again = run.base(base)
    assert image_of(again) == image_of(samples.BASE)
    run.save_base(again)
    assert run.base(base) == again
    assert not run.is_observed(folder)
    assert run.refusal(folder) is None


def test_observations_read_back_the_same(run: RunDirectory) -> None:
    folder = kept(run)
    seen = samples.observed(*STATES, found=[samples.NOTHING, samples.ALL, samples.TORN], lost="it is gone")
    troubles = (StateTrouble(1, "checker", "e2fsck ends with 4"), StateTrouble(0, "read-only", "EXT4-fs error"))
    seen = replace(
        seen, predicted=frozenset({1, 2}), troubles=troubles, normal=("it is so",), passing=("once",), examined=(0, 2)
    )
    seen = replace(seen, states=(seen.states[0]._replace(whole=1), *seen.states[1:]))
    mixtures = (MixedStates(2**70 - 1, (0, 1)), MixedStates(3, (0, 1, 2)))
    causes = (CauseCount(TornCause.JOURNAL, 60), CauseCount(TornCause.APPENDED, 40))
    seen = replace(seen, mixtures=mixtures, unknown_torn=causes)
    run.save_observed(folder, seen)
    again = run.observed(folder)
    assert run.is_observed(folder)
    assert (again.mixtures, again.unknown_torn) == (mixtures, causes)
    assert (again.states, again.coverage, again.lost) == (seen.states, seen.coverage, seen.lost)
    assert again.predicted == {1, 2}
    assert (again.troubles, again.normal, again.passing) == (seen.troubles, seen.normal, seen.passing)
    assert again.examined == seen.examined
    document = documents.opened((folder / "observed.json").read_bytes())
    newer = ("troubles", "normal", "examined_outcomes", "mixtures", "unknown_torn")
    older = {name: value for name, value in document.items() if name not in newer}
    write_document(folder / "observed.json", older)
    again = run.observed(folder)
    assert (again.troubles, again.normal, again.examined) == ((), (), ())
    assert (again.mixtures, again.unknown_torn) == ((), ())
    assert again.coverage.legal_sectors == 2**70
    assert list(again.findings.observations()) == list(seen.findings.observations())


@pytest.mark.parametrize(
    "mixture", [(5, (99, 0)), (5, (-1, -2)), (5, ()), (5, (0,)), (0, (0, 1)), (-5, (0, 1))], ids=str
)
def test_mixtures_that_cannot_be_are_refused(run: RunDirectory, mixture: tuple[int, tuple[int, ...]]) -> None:
    folder = kept(run)
    seen = samples.observed(*STATES, found=[samples.NOTHING, samples.ALL, samples.TORN])
    run.save_observed(folder, replace(seen, mixtures=(MixedStates(*mixture),)))
    with pytest.raises(StoreError) as caught:
        run.observed(folder)
    assert text_with(caught.value.message, "is damaged: a mixture has", "torn states and the rows")


def test_refusals_read_back_the_same(run: RunDirectory) -> None:
    folder = run.folder(7, samples.WORKLOAD)
    for fall in (None, Loss(LossCause.PANICKED, "kernel BUG at fs/ext4/inline.c:235!", "op 1 begin")):
        refused = RefusedWorkload.of(samples.WORKLOAD, "the guest was lost", fall)
        run.save_refusal(folder, refused)
        assert run.refusal(folder) == refused


def test_folders_are_apart_and_in_order(run: RunDirectory) -> None:
    folders = [run.folder(number, Workload("über / name!" * 20, (), ())) for number in (0, 1, 10, 100)]
    assert [folder.name[:3] for folder in folders] == ["000", "001", "010", "100"]
    assert all(len(folder.name) < 80 and folder.parent == run.path / "workloads" for folder in folders)


def test_nothing_half_written_is_left(run: RunDirectory) -> None:
    folder = kept(run)
    run.save_observed(folder, samples.observed(*STATES, found=[samples.NOTHING]))
    run.save_witness("append-any", {"schema": "x"})
    model, environment = DeviceModelDocument.of(DeviceModel()), Environment(**samples.ENVIRONMENT)
    run.save_result(result := Result(Run("r", "then", "later", "0", 1, 2), environment, model, ()))
    assert run.result() == result
    assert not list(run.path.rglob("*.part"))


@pytest.mark.parametrize("name", ["recorded.json", "log", "timeline"])
def test_what_is_missing(run: RunDirectory, name: str) -> None:
    folder = kept(run)
    (folder / name).unlink()
    with pytest.raises(StoreError, match=name):
        run.recording(folder)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _text: "[]",
        lambda _text: "{}",
        lambda text: text.replace("zlib", "zlob").replace('"states"', '"estates"'),
        lambda text: text.replace('"point"', '"pint"'),
        lambda text: text.replace('"chunks": [4096', '"chunks": [4095'),
        lambda text: text.replace('"contents": "eJ', '"contents": "eK'),
        lambda text: text.replace('"explored": 6', '"explored": "six"'),
        lambda _text: "\udcff",
    ],
)
def test_damaged_observations(run: RunDirectory, damage) -> None:  # type: ignore[no-untyped-def]
    folder = kept(run)
    run.save_observed(folder, samples.observed(*STATES, found=[samples.NOTHING]))
    file = folder / "observed.json"
    file.write_text(damage(file.read_text()), errors="surrogateescape")
    with pytest.raises(StoreError) as caught:
        run.observed(folder)
    assert "observed.json is damaged" in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace("write /a 0 512", "wrote /a 0 512"),
        lambda text: text.replace('"devices": [[254, 0]]', '"devices": [[254]]'),
        lambda text: text.replace('"setup"', '"upset"'),
        lambda text: text.replace('"workload"', '"work"'),
    ],
)
def test_damaged_recordings(run: RunDirectory, damage) -> None:  # type: ignore[no-untyped-def]
    folder = kept(run)
    file = folder / "recorded.json"
    file.write_text(damage(file.read_text()))
    with pytest.raises(StoreError, match=r"recorded\.json .*damaged"):
        run.recording(folder)


def test_a_disk_that_takes_nothing(run: RunDirectory) -> None:
    (run.path / "witnesses").rmdir()
    with pytest.raises(StoreError) as refused:
        run.save_witness("x", {})
    assert str(refused.value).replace(str(run.path), "RUN") == snapshot(
        "cannot write RUN/witnesses/x.json: No such file or directory"
    )


# One process at a time writes a run directory; that one holds a lock which no dead process holds

CHECKOUT = Path(__file__).parents[2]
CHOSEN = ConfigurationSet("two", "", (configuration("ext2"), configuration("xfs")))


@contextmanager
def another_writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes the run directory ``path``."""
    script = "import sys, pathlib, time; from bob.store.lock import writing\n"
    script += "with writing([pathlib.Path(sys.argv[1])]): print('locked', flush=True); time.sleep(60)"
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "locked\n"
            yield process
        finally:
            process.kill()


def test_a_second_writer_is_refused_by_name(tmp_path: Path) -> None:
    with another_writer(tmp_path) as process, pytest.raises(StoreError) as refused, writing([tmp_path]):
        pytest.fail("two may write")
    said = text_with(refused.value.message, process.pid, tmp_path)
    assert said.replace(str(process.pid), "PID").replace(str(tmp_path), "TMP") == snapshot(
        "another bob (process PID) is writing TMP"
    )
    assert refused.value.hint == snapshot("wait until it is done, or stop it")


def test_the_lock_of_a_dead_process_blocks_nobody(tmp_path: Path) -> None:
    with another_writer(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        with writing([tmp_path]):
            assert (tmp_path / "lock").read_text() == str(os.getpid())
    with writing([tmp_path]):
        pass  # and one that was let go of neither


def test_where_nothing_can_be_written_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as refused, writing([tmp_path / "nowhere"]):
        pytest.fail("there is no such directory")
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot(
        "cannot write TMP/nowhere: No such file or directory"
    )


def made_probe(path: Path) -> RunDirectory:
    return start(ProbeRequest(samples.CONFIGURATION, ("overwrite-any",)), path, "id")


def test_a_probe_that_is_written_is_neither_gone_on_with_nor_judged(tmp_path: Path) -> None:
    run = made_probe(tmp_path / "run")
    run.note(environment=samples.ENVIRONMENT)
    with another_writer(run.path) as process:
        with pytest.raises(StoreError, match=str(process.pid)):
            prober.resume(run.path, ANYWHERE, Silent())
        with pytest.raises(StoreError, match=str(process.pid)):
            judge_again(run.path)
    assert not (run.path / "result.json").exists()


@pytest.mark.parametrize("place", [".", "xfs"])
def test_a_matrix_locks_itself_and_its_columns(tmp_path: Path, place: str) -> None:
    about = {"id": "x", "started": "", "bob": "", "set": "two", "about": ""}
    directory = MatrixDirectory.create(tmp_path / "run", about, ["ext2", "xfs"])
    for folder, made in zip(directory.folders, CHOSEN.configurations, strict=True):
        start(ProbeRequest(made, ("overwrite-any",)), folder, "x")
    with another_writer(directory.path / place) as process:
        with pytest.raises(StoreError, match=str(process.pid)):
            resume_matrix(directory.path, ANYWHERE, Silent())
        with pytest.raises(StoreError, match=str(process.pid)):
            judge_again(directory.path)
