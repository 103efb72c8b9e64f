"""A matrix's control flow, with guests that are made up: order, what is skipped, and going on after a stop."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.answer.document import to_json
from bob.catalogue.probe_files import shipped_probes
from bob.catalogue.request import Host, ProbeRequest
from bob.claim.property.judged_case import JudgedCase
from bob.claim.verdict import Verdict
from bob.crash import case
from bob.errors import GuestError, StoreError, UsageError
from bob.guest.spec import Accelerator
from bob.image.cache import GUEST_MODULES
from bob.judge.again import judge_again
from bob.progress import Silent
from bob.report.saved import load
from bob.run import matrix as module
from bob.run import prober
from bob.run.pipeline import ExploredCase, Task
from bob.store.matrix_directory import MatrixDirectory
from bob.store.run_directory import RunDirectory
from bob.subject import ConfigurationSet, configuration, load_set
from wording import text_with

CHOSEN = ConfigurationSet(
    "three", "", (configuration("ext2"), configuration("xfs"), configuration("ext4", "-O ^a/b", "data=ordered"))
)
NAMES = [made.name for made in CHOSEN.configurations]
REQUEST = ProbeRequest(CHOSEN.configurations[0], ("trunc-append-any", "overwrite-any"))
SEEN = samples.observed(
    (samples.FIRST, 0),
    (samples.LAST, 1),
    (samples.CrashState(1), 2),
    (samples.CrashState(0, (2,)), 3),
    found=[samples.NOTHING, samples.ALL, samples.OUT_OF_ORDER, samples.UNMOUNTABLE],
)


@dataclass
class Machine(Silent):
    """Stands in the place of all that takes a guest; it fails at the third workload of the configurations in ``fails``,
    and watches what is told."""

    fails: dict[str, BaseException] = field(default_factory=dict)
    done: list[tuple[str, int]] = field(default_factory=list)
    plan: list[tuple[int, int]] = field(default_factory=list)
    tasks: Sequence[Task] = ()
    asked: Sequence[Task] = ()

    def pipeline(
        self, _hypervisor: object, _image: object, tasks: Sequence[Task], _progress: object, _jobs: int
    ) -> Machine:
        self.tasks = self.asked = tasks
        return self

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.tasks = ()

    def result(self, place: int, number: int) -> ExploredCase | None:
        task = self.tasks[place]
        folder, name = task.run.folder(number, task.workloads[number]), task.configuration.name
        if task.run.is_done(folder):
            return None
        if name in self.fails and (number == 2 or isinstance(self.fails[name], UsageError)):
            raise self.fails.pop(name)
        self.done.append((name, number))
        task.run.save_base(samples.BASE)
        task.run.save_recording(folder, samples.WORKLOAD, samples.BASE, samples.RECORDING)
        task.run.save_observed(folder, SEEN)
        return ExploredCase(samples.case(), SEEN)

    def planned(self, workloads: int, states: int) -> None:
        self.plan.append((workloads, states))

    def skipped(self, workloads: int, states: int) -> None:
        self.plan.append((-workloads, -states))

    @property
    def probed(self) -> list[str]:
        """The configurations of which something was done, in order."""
        return list(dict.fromkeys(name for name, _number in self.done))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()

    class Hypervisor(SimpleNamespace):
        @classmethod
        @contextmanager
        def open(cls, _connect: object, _step: object) -> Iterator[Hypervisor]:
            versions = SimpleNamespace(qemu="7.2", libvirt="9.0")
            yield cls(versions=versions, choice=lambda _spec: SimpleNamespace(accelerator=Accelerator.TCG))

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
    monkeypatch.setattr(prober, "image_called", lambda *_: image)
    monkeypatch.setattr(prober, "guests_of", lambda _image, connect, step: Hypervisor.open(connect, step))
    monkeypatch.setattr(prober, "Pipeline", made.pipeline)
    monkeypatch.setattr(prober, "GuestSpec", lambda *_: None)
    monkeypatch.setattr(case, "checked", lambda _recording, _base: samples.TRACE)
    return made


def test_each_configuration_is_asked_its_rows(machine: Machine, tmp_path: Path) -> None:
    asking = ConfigurationSet("two", "", CHOSEN.configurations[:2], asks={"xfs": ("overwrite-any",)})
    probes = shipped_probes(("trunc-append-any", "overwrite-any"))
    result, _run = module.matrix(asking, replace(REQUEST, properties=(), probes=probes), tmp_path / "run", machine)
    asked = [[cell.name for cell in column.answers] for column in result.subjects]
    assert asked == [["overwrite-any", "trunc-append-any"], ["overwrite-any"]]


def test_columns_come_in_the_order_of_the_set(machine: Machine, tmp_path: Path) -> None:
    result, run = module.matrix(CHOSEN, REQUEST, tmp_path / "run", machine)
    assert [column.name for column in result.subjects] == NAMES
    assert machine.probed == NAMES
    assert [folder.name for folder in MatrixDirectory(run).folders] == ["ext2", "xfs", "ext4--O-^a-b-data=ordered"]
    assert result.subjects[1].answers[0].witness == "xfs/witnesses/overwrite-any.json"
    assert result.subjects[1].unmountable is not None
    assert result.subjects[1].unmountable.witness == "xfs/witnesses/unmountable.json"
    assert (run / "xfs/witnesses/overwrite-any.json").is_file()
    assert result.environment.mkfs_version == "e2fsprogs 1, xfsprogs 2"
    assert [column.mkfs_version for column in result.subjects] == ["e2fsprogs 1", "xfsprogs 2", "e2fsprogs 1"]
    assert load(run).result == result
    assert result.run.finished
    workloads, states = machine.plan[0]
    assert workloads % 3 == 0 and workloads > 0
    assert states == workloads * REQUEST.budget


@pytest.mark.parametrize("was_there", [True, False])
def test_a_refused_probe_leaves_its_directory_to_the_next_command(
    machine: Machine, tmp_path: Path, was_there: bool
) -> None:
    out = tmp_path / "run"
    if was_there:
        out.mkdir()
    machine.fails["ext2"] = UsageError("mount refused (EINVAL)")
    with pytest.raises(UsageError) as refused:
        prober.probe(REQUEST, out, machine)
    assert str(refused.value) == snapshot("mount refused (EINVAL)")
    assert out.exists() == was_there
    result, _run = prober.probe(REQUEST, out, machine)
    assert result.run.finished


def test_a_run_that_lost_something_is_not_finished(machine: Machine, tmp_path: Path) -> None:
    result, run = module.matrix(CHOSEN, REQUEST, tmp_path / "run", machine)
    lost = RunDirectory(run / "xfs")
    [folder, *_others] = lost.workloads()
    lost.save_loss(folder, samples.WORKLOAD, "the guest was lost")
    machine.done.clear()
    again, _run = module.resume(run, Host(), machine)
    assert machine.done == [("xfs", 0)]
    assert [column.name for column in again.subjects] == [column.name for column in result.subjects]


def test_what_breaks_while_it_is_judged_is_unknown_and_told_whole(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("zip() argument 2 is shorter")

    monkeypatch.setattr(JudgedCase, "judge", broken)
    result, run = module.matrix(CHOSEN, REQUEST, tmp_path / "run", machine)
    assert {cell.verdict for column in result.subjects for cell in column.answers} == {Verdict.UNKNOWN}
    [told, *_others] = (run / "xfs").glob("judging-*.txt")
    assert "Traceback (most recent" in told.read_text()
    assert "in broken" in told.read_text()
    assert {cell.verdict for cell in judge_again(run / "xfs").subjects[0].answers} == {Verdict.UNKNOWN}


def test_what_is_refused_is_skipped(machine: Machine, tmp_path: Path) -> None:
    machine.fails["xfs"] = UsageError("mkfs.xfs failed (1): too small")
    result, run = module.matrix(CHOSEN, REQUEST, tmp_path / "run", machine)
    cells = result.subjects[1].answers
    assert {(cell.verdict, cell.reason) for cell in cells} == {(Verdict.SKIPPED, "mkfs.xfs failed (1): too small")}
    assert [cell.name for cell in cells] == ["overwrite-any", "trunc-append-any"]
    assert machine.probed == [NAMES[0], NAMES[2]]
    (planned, _), (given_up, _) = machine.plan
    assert planned == -3 * given_up
    judged = judge_again(run)
    assert judged == result, "what was skipped is skipped, not unknown"
    machine.plan.clear()
    again, _ = module.resume(run, Host(), machine)
    assert machine.plan == [(0, 0)]
    assert not any(task.workloads for task in machine.asked), "nor is it tried again"
    assert again == result
    assert to_json(again)["subjects"] == to_json(result)["subjects"]
    assert machine.probed == [NAMES[0], NAMES[2]]


def test_what_the_kernel_does_not_have_is_skipped(machine: Machine, tmp_path: Path) -> None:
    chosen = ConfigurationSet("two", "", (configuration("ext2"), configuration("f2fs")))
    result, run = module.matrix(chosen, REQUEST, tmp_path / "run", machine)
    reasons = {cell.reason for cell in result.subjects[1].answers}
    assert [text_with(reason, "6.1", "debian-bookworm", "f2fs", "CONFIG_F2FS_FS") for reason in reasons] == snapshot(
        ["the kernel 6.1 of debian-bookworm lacks the module f2fs (CONFIG_F2FS_FS)"]
    )
    assert machine.probed == ["ext2"]
    assert module.resume(run, Host(), machine)[0] == result


def test_a_probe_of_what_the_kernel_does_not_have_makes_no_run(machine: Machine, tmp_path: Path) -> None:
    request = replace(REQUEST, configuration=configuration("f2fs"))
    with pytest.raises(UsageError, match="CONFIG_F2FS_FS"):
        prober.probe(request, tmp_path / "run", machine)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), GuestError("no guest boots")])
def test_a_matrix_that_was_stopped_goes_on(machine: Machine, tmp_path: Path, stop: BaseException) -> None:
    whole, _ = module.matrix(CHOSEN, REQUEST, tmp_path / "whole", Silent())
    once = list(machine.done)
    machine.done.clear()
    machine.fails["xfs"] = stop
    with pytest.raises(type(stop)):
        module.matrix(CHOSEN, REQUEST, tmp_path / "run", machine)
    partly = load(tmp_path / "run").result
    assert [column.name for column in partly.subjects] == NAMES[:1]
    assert partly.run.finished == ""
    result, _ = module.resume(tmp_path / "run", Host(), machine)
    assert result.subjects == whole.subjects
    assert machine.done == once, "nothing is done twice"
    assert machine.plan[1][0] == machine.plan[0][0] * 2 // 3 - 2


def test_a_matrix_that_was_stopped_can_be_judged(machine: Machine, tmp_path: Path) -> None:
    machine.fails["xfs"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        module.matrix(CHOSEN, REQUEST, tmp_path / "run", Silent())
    result = judge_again(tmp_path / "run")
    assert [column.name for column in result.subjects] == NAMES
    assert [column.answers[0].verdict for column in result.subjects] == [
        Verdict.FAILS,
        Verdict.FAILS,
        Verdict.UNKNOWN,
    ]
    assert result.subjects[2].answers[0].reason == snapshot("the run was stopped before this workload was observed")


def test_a_matrix_that_was_never_run(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def ensure(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(prober, "image_called", ensure)
    with pytest.raises(KeyboardInterrupt):
        module.matrix(CHOSEN, REQUEST, tmp_path / "run", Silent())
    with pytest.raises(StoreError) as caught:
        judge_again(tmp_path / "run")
    assert str(caught.value).replace(str(tmp_path), "TMP") == snapshot(
        "TMP/run/ext2 stopped before its guests were ready"
    )
    assert "--resume" in (caught.value.hint or "")


def test_a_probe_looks_at_its_image_once(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine of the user's own is asked over the network what it is, and that is told."""
    looked, found = [], prober.image_called

    def image_called(name: str, progress: Any, connect: str | None) -> Any:
        looked.append((name, connect))
        return found(name, progress, connect)

    monkeypatch.setattr(prober, "image_called", image_called)
    prober.probe(replace(REQUEST, host=Host("qemu:///session")), tmp_path / "run", Silent())
    assert looked == [("debian-bookworm", "qemu:///session")]


def test_another_machine_does_not_go_on(machine: Machine, tmp_path: Path) -> None:
    result, run = module.matrix(CHOSEN, REQUEST, tmp_path / "run", Silent())
    column = MatrixDirectory(run).columns()[1]
    column.note(environment={**column.about()["environment"], "kernel": "6.12"})
    with pytest.raises(StoreError) as refused:
        module.resume(run, Host(), Silent())
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot("TMP/run/xfs began on another machine or image")
    assert result.environment.kernel == "6.1"


def test_what_cannot_be_asked_starts_nothing(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        module.matrix(CHOSEN, replace(REQUEST, properties=("xyzzy",)), tmp_path / "run", Silent())
    assert str(refused.value) == snapshot("unknown property 'xyzzy'")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(StoreError) as refused:
        module.matrix(CHOSEN, REQUEST, tmp_path / "full", Silent())
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot("TMP/full is not empty")
    assert not (tmp_path / "run").exists()


def test_what_is_no_matrix(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as refused:
        prober.resume(MatrixDirectory.create(tmp_path / "matrix", {}, ["ext4"]).path, Host(), Silent())
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot("TMP/matrix is the run of a matrix")
    run = RunDirectory.create(tmp_path / "probe", {"id": "x"})
    for path in (run.path, tmp_path / "gone"):
        with pytest.raises(StoreError, match="is not a run of bob matrix"):
            module.resume(path, Host(), Silent())


def test_folders_of_names_that_look_alike(tmp_path: Path) -> None:
    names = ["a/b", "a b", "a-b-2", "..", "../x", "ext4"]
    folders = MatrixDirectory.create(tmp_path / "run", {}, names).folders
    assert len(set(folders)) == len(names)
    assert all(folder.parent == tmp_path / "run" and folder.name.strip(".") for folder in folders)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["columns"][-1] == "ext4-6"


def test_the_published_set_fits(tmp_path: Path) -> None:
    names = [one.name for one in load_set("osdi14").configurations]
    assert [folder.name for folder in MatrixDirectory.create(tmp_path / "run", {}, names).folders] == names


def test_what_was_lost_is_judged_anew_also_where_it_was_done_before_its_turn(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a column is judged, the guests have long done what was left of the next one."""
    whole, run = module.matrix(CHOSEN, REQUEST, tmp_path / "run", machine)
    column = MatrixDirectory(run).columns()[1]
    lost = column.workloads()[2]
    (lost / "observed.json").unlink()
    column.save_loss(lost, samples.WORKLOAD, "the guest was lost")
    assert judge_again(run).subjects[1] != whole.subjects[1]

    def ahead(_guests: object, _image: object, tasks: Sequence[Task], *_: object) -> Machine:
        column.keep_observed(lost, samples.WORKLOAD, SEEN)
        return machine.pipeline(_guests, _image, tasks, *_)  # type: ignore[arg-type]

    monkeypatch.setattr(prober, "Pipeline", ahead)
    result, _run = module.resume(run, Host(), machine)
    assert [cell.verdict for cell in result.subjects[1].answers] == [cell.verdict for cell in whole.subjects[1].answers]
    assert result.subjects[1].unmountable == whole.subjects[1].unmountable
