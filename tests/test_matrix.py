"""A matrix's control flow, with a machine that is made up: order, what is skipped, and going on after a stop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import samples_of_runs as samples

from bob import matrix as module
from bob.columns import MatrixDirectory
from bob.config import ConfigurationSet, configuration, load_set
from bob.errors import GuestError, StoreError, UsageError
from bob.judge.again import judge_again
from bob.progress import Silent
from bob.report.saved import read_result
from bob.request import ProbeRequest
from bob.result import (
    ConfigurationResult,
    Environment,
    PropertyResult,
    Result,
    Run,
    States,
    Unmountable,
    Verdict,
    from_json,
    to_json,
)
from bob.store import RunDirectory, workload_from_json

ENVIRONMENT = Environment(**samples.ENVIRONMENT)
CHOSEN = ConfigurationSet(
    "three", "", (configuration("ext2"), configuration("xfs"), configuration("ext4", "-O ^a/b", "data=ordered"))
)
REQUEST = ProbeRequest(CHOSEN.configurations[0], ("append-any", "directory-op"))


@dataclass
class Machine(Silent):
    """Probes at once, what it is not told to fail at; also watches what is told."""

    fails: dict[str, BaseException] = field(default_factory=dict)
    probed: list[str] = field(default_factory=list)
    plan: list[tuple[int, int]] = field(default_factory=list)

    def environment(self, request: ProbeRequest) -> Environment:
        return replace(ENVIRONMENT, mkfs_version=request.configuration.fs.package)

    def probe(self, run: RunDirectory, request: ProbeRequest) -> Result:
        about, name = run.about(), request.configuration.name
        if "finished" in about:
            return from_json(run.result())
        if name in self.fails:
            raise self.fails.pop(name)
        self.probed.append(name)
        cell = PropertyResult("append-any", "ordering", Verdict.FAILS, States(), witness="witnesses/append-any.json")
        column = ConfigurationResult(
            name, request.configuration.fs.name, "", "", "rw", (cell,), Unmountable(1, "witnesses/unmountable.json")
        )
        result = Result(
            Run(about["id"], about["started"], "now", about["bob"], request.seed, request.budget),
            self.environment(request),
            "volatile",
            512,
            (column,),
        )
        run.save_result(to_json(result))
        for number, workload in enumerate(map(workload_from_json, about["workloads"])):
            run.save_refusal(run.folder(number, workload), workload, "a test")
        run.note(finished="now", environment=samples.ENVIRONMENT)
        return result

    def planned(self, workloads: int, states: int) -> None:
        self.plan.append((workloads, states))

    def skipped(self, workloads: int, states: int) -> None:
        self.plan.append((-workloads, -states))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()

    @contextmanager
    def prober(_image: str, _connect: str | None, _progress: object) -> Iterator[Machine]:
        yield made

    monkeypatch.setattr(module, "prober", prober)
    return made


def test_columns_come_in_the_order_of_the_set(machine: Machine, tmp_path: Path) -> None:
    result, run = module.matrix(CHOSEN, REQUEST, tmp_path / "run", machine)
    assert [column.name for column in result.configurations] == ["ext2", "xfs", "ext4 -O ^a/b data=ordered"]
    assert machine.probed == [column.name for column in result.configurations]
    assert [folder.name for folder in MatrixDirectory(run).folders] == ["ext2", "xfs", "ext4--O-^a-b-data=ordered"]
    assert result.configurations[1].properties[0].witness == "xfs/witnesses/append-any.json"
    assert result.configurations[1].unmountable.witness == "xfs/witnesses/unmountable.json"
    assert result.environment.mkfs_version == "e2fsprogs, xfsprogs"
    assert read_result(run) == result
    assert result.run.finished
    workloads, states = machine.plan[0]
    assert workloads % 3 == 0 and workloads > 0
    assert states == workloads * REQUEST.budget


def test_what_is_refused_is_skipped(machine: Machine, tmp_path: Path) -> None:
    machine.fails["xfs"] = UsageError("mkfs.xfs failed (1): too small")
    result, run = module.matrix(CHOSEN, REQUEST, tmp_path / "run", machine)
    cells = result.configurations[1].properties
    assert {(cell.verdict, cell.reason) for cell in cells} == {(Verdict.SKIPPED, "mkfs.xfs failed (1): too small")}
    assert [cell.name for cell in cells] == ["directory-op", "append-any"]
    assert machine.probed == ["ext2", "ext4 -O ^a/b data=ordered"]
    (planned, _), (given_up, _) = machine.plan
    assert planned == -3 * given_up
    again, _ = module.resume(run, None, machine)
    assert to_json(again)["configurations"] == to_json(result)["configurations"]
    assert len(machine.probed) == 2


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), GuestError("no guest boots")])
def test_a_matrix_that_was_stopped_goes_on(machine: Machine, tmp_path: Path, stop: BaseException) -> None:
    whole, _ = module.matrix(CHOSEN, REQUEST, tmp_path / "whole", Silent())
    machine.probed.clear()
    machine.fails["xfs"] = stop
    with pytest.raises(type(stop)):
        module.matrix(CHOSEN, REQUEST, tmp_path / "run", machine)
    partly = read_result(tmp_path / "run")
    assert [column.name for column in partly.configurations] == ["ext2"]
    assert partly.run.finished == ""
    result, _ = module.resume(tmp_path / "run", None, machine)
    assert result.configurations == whole.configurations
    assert machine.probed == ["ext2", "xfs", "ext4 -O ^a/b data=ordered"]
    assert machine.plan[1][0] * 3 == machine.plan[0][0] * 2


def test_it_can_be_judged_again(machine: Machine, tmp_path: Path) -> None:
    machine.fails["xfs"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        module.matrix(CHOSEN, REQUEST, tmp_path / "run", Silent())
    result = judge_again(tmp_path / "run")
    assert [column.name for column in result.configurations] == ["ext2"]
    assert {(cell.verdict, cell.reason) for cell in result.configurations[0].properties} == {
        (Verdict.UNKNOWN, "a test")
    }


def test_nothing_was_begun(machine: Machine, tmp_path: Path) -> None:
    machine.fails["ext2"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        module.matrix(CHOSEN, REQUEST, tmp_path / "run", Silent())
    with pytest.raises(StoreError, match="was never run") as caught:
        judge_again(tmp_path / "run")
    assert "--resume" in (caught.value.hint or "")


def test_what_cannot_be_asked_starts_nothing(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown property"):
        module.matrix(CHOSEN, replace(REQUEST, properties=("xyzzy",)), tmp_path / "run", Silent())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(StoreError, match="is not empty"):
        module.matrix(CHOSEN, REQUEST, tmp_path / "full", Silent())
    assert not (tmp_path / "run").exists()


def test_what_is_no_matrix(machine: Machine, tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "probe", {"id": "x"})
    for path in (run.path, tmp_path / "gone"):
        with pytest.raises(StoreError, match="is no run of a matrix"):
            module.resume(path, None, Silent())


def test_folders_of_names_that_look_alike(tmp_path: Path) -> None:
    names = ["a/b", "a b", "..", "../x", "ext4"]
    folders = MatrixDirectory.create(tmp_path / "run", {}, names).folders
    assert len(set(folders)) == len(names)
    assert all(folder.parent == tmp_path / "run" and folder.name.strip(".") for folder in folders)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["columns"][-1] == "ext4"


def test_the_published_set_fits(tmp_path: Path) -> None:
    names = [one.name for one in load_set("osdi14").configurations]
    assert [folder.name for folder in MatrixDirectory.create(tmp_path / "run", {}, names).folders] == names
