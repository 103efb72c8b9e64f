"""One answer to one question: a property that is asked alone is judged on what the whole table judges it on.

And the questions themselves, as Python asks them: what they are made into, what is refused and how, and that a call
which is interrupted says so. No guest is started here.
"""

from __future__ import annotations

import inspect
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bob
import bob.run.programs
import bob.run.trial
from bob.apm.model import save
from bob.apm.named import named_model, named_models
from bob.arguments import bound
from bob.catalogue.probe_files import Probe
from bob.catalogue.sets import Rows, probes_of
from bob.claim.property.rules import Property, questions
from bob.crash.caches import CACHES
from bob.errors import BobError, MalformedError, PointedError, StoreError, UsageError
from bob.program.folder import named
from bob.program.pace import Pace
from bob.progress import Silent
from bob.request import DEFAULT_IMAGE, DEFAULT_MODEL, Host, ProbeRequest
from bob.run import interrupts, prober
from bob.run.interrupts import no_guest_left, telling_where
from bob.run.prober import asked_workloads, distinct, recorded_as
from bob.run.requests import MOST_WITNESSES, RECORDED_ON, property_names
from bob.subject import DEFAULT_AUDIT, DEFAULT_BUDGET, MIB, configuration
from bob.subject.file_system import file_systems
from bob.trace.completion import Completion
from bob.workload.history import History
from bob.workload.language import parse
from bob.workload.operations import At, Finish, Workload
from bob.workload.simulation import simulate


@cache
def history_of(workload: Workload) -> History:
    """Each property asks it of the same workloads."""
    return simulate(workload)[0]


def judged_on(prop: Property, workloads: list[Workload]) -> list[Workload]:
    """The workloads on which a property is judged where these are recorded, whatever they are called."""
    nameless = (replace(workload, name="") for workload in workloads)
    return [workload for workload in nameless if questions(prop, history_of(workload))]


@pytest.mark.parametrize("fs", sorted({"ext4", *(name for name, fs in file_systems().items() if fs.lacks)}))
@pytest.mark.parametrize("rows", [Rows.TABLE1, Rows.UNITS])
def test_a_property_is_judged_alone_on_what_it_is_judged_on_in_the_table(fs: str, rows: Rows) -> None:
    made = configuration(fs)
    every = asked_workloads(ProbeRequest(made, rows=rows))
    for probe in probes_of(rows):
        alone = asked_workloads(ProbeRequest(made, (probe.property.name,), rows=rows))
        judged = judged_on(probe.property, alone)
        assert set(judged) == set(judged_on(probe.property, every))
        assert len(alone) == len(judged), "and nothing is recorded that nobody asks for"


def test_directory_operations_are_asked_for_by_other_probes_too() -> None:
    """What was wrong: a dozen workloads of its own said holds where the table had ×."""
    [probe] = [probe for probe in probes_of(Rows.TABLE1) if probe.property.name == "directory-op"]
    alone = asked_workloads(ProbeRequest(configuration("btrfs"), ("directory-op",)))
    assert len(alone) > 2 * len(probe.workloads)


def test_the_whole_table_has_all_workloads_in_the_order_of_its_probes() -> None:
    every = asked_workloads(ProbeRequest(configuration("ext4")))
    assert every == distinct(workload for probe in probes_of(Rows.TABLE1) for workload in probe.workloads)
    alone = asked_workloads(ProbeRequest(configuration("ext4"), ("append-any",)))
    assert len(alone) == len(set(alone))
    assert set(alone) <= set(every)


def test_the_workloads_of_a_propertys_own_probe_come_first() -> None:
    [probe] = [probe for probe in probes_of(Rows.TABLE1) if probe.property.name == "overwrite-any"]
    alone = asked_workloads(ProbeRequest(configuration("ext4"), ("overwrite-any",)))
    assert [recorded_as(one) for one in alone[: len(probe.workloads)]] == [recorded_as(one) for one in probe.workloads]
    assert len(alone) > len(probe.workloads)


def test_a_probe_of_ones_own_brings_its_workloads_and_no_others() -> None:
    [shipped] = [probe for probe in probes_of(Rows.TABLE1) if probe.property.name == "append-append-same-file"]
    mine = Workload("mine", parse("create /a"), parse("write /a 0 4K; append /a 4K"), Finish("natural", natural=True))
    assert mine.at is At.ANY
    own = Probe(99, replace(shipped.property, name="my-appends"), (mine,))
    request = ProbeRequest(configuration("ext4"), probes=(own,))
    assert asked_workloads(request) == [mine]
    beside = asked_workloads(replace(request, properties=(shipped.property.name,)))
    assert beside[-1] == mine
    assert beside[:-1] == asked_workloads(ProbeRequest(configuration("ext4"), (shipped.property.name,)))


# What Python asks


class Started(Exception):
    """What would start guests was reached; ``asked`` is what it was asked."""

    def __init__(self, *asked: Any) -> None:
        super().__init__()
        self.asked = asked


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, in which nothing can be started."""

    def start(*asked: Any, **more: Any) -> Any:
        raise Started(*asked, *more.values())

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(prober, "probe", start)
    monkeypatch.setattr(prober, "resume", start)
    monkeypatch.setattr(bob.run.trial, "try_out", start)
    monkeypatch.setattr(bob.run.programs, "try_program", start)
    return tmp_path


def asked(call: Callable[[], object]) -> tuple[Any, ...]:
    """What a call of Python asks those who start guests."""
    with pytest.raises(Started) as started:
        call()
    return started.value.asked


def test_where_nothing_is_said_it_is_as_on_the_command_line() -> None:
    request, out, _progress = asked(lambda: bob.probe("ext4"))
    assert (request, out) == (ProbeRequest(configuration("ext4")), None)
    trial, out, _progress = asked(lambda: bob.try_("create /a", "exists /a", fs="ext4"))
    assert (trial.request, trial.most_witnesses, out) == (ProbeRequest(configuration("ext4")), MOST_WITNESSES, None)
    assert [workload.finish.name for workload in trial.workloads] == ["natural", "fsync /"]
    for function in (bob.probe, bob.try_, bob.app):
        told = {name: one.default for name, one in inspect.signature(function).parameters.items()}
        assert told["audit"] == DEFAULT_AUDIT
        assert (told["write_cache"], told["atomic_write"]) == (
            DEFAULT_MODEL.write_cache.name,
            DEFAULT_MODEL.atomic_write_bytes,
        )
        assert told["completion"] == DEFAULT_MODEL.completion.value
    for said in (f"or else it is {DEFAULT_BUDGET}.", f"or else it is ``{DEFAULT_IMAGE}``."):
        assert said in (bob.probe.__doc__ or "")


def test_everything_that_can_be_asked_of_a_probe(elsewhere: Path) -> None:
    request, out, _progress = asked(
        lambda: bob.probe(
            "ext4",
            mkfs_options="-O ^has_journal",
            mount_options="data=ordered",
            device=64 * MIB,
            properties=("all", "fsync-file.entry"),
            rows="durability",
            budget=7,
            audit=0.5,
            seed=-3,
            recovery_crashes=2,
            write_cache="none",
            atomic_write=4096,
            completion="prompt",
            jobs=1,
            image=DEFAULT_IMAGE,
            out=elsewhere / "here",
        )
    )
    made = configuration("ext4", "-O ^has_journal", "data=ordered", 64 * MIB)
    assert (request.configuration, out) == (made, elsewhere / "here")
    assert (request.rows, request.properties) == (Rows.DURABILITY, property_names(Rows.DURABILITY))
    assert (request.budget, request.audit, request.seed, request.recovery_crashes) == (7, 0.5, -3, 2)
    assert (request.model.write_cache, request.model.atomic_write_bytes) == (CACHES["none"], 4096)
    assert (request.model.completion, request.host) == (Completion.PROMPT, Host(jobs=1))


def test_one_may_stand_where_several_may() -> None:
    request, *_ = asked(lambda: bob.probe("ext4", properties="append-any"))
    assert request.properties == ("append-any",)
    trial, *_ = asked(lambda: bob.try_("create /a", "exists /a", fs="ext4", finishes="sync", at="any"))
    assert [one.text for one in trial.expectations] == ["exists /a"]
    assert [(workload.finish.name, workload.at) for workload in trial.workloads] == [("sync", At.ANY)]
    program, requests, *_ = asked(lambda: bob.app("replace-rename", fs="ext4"))
    assert program.name == "replace-rename"
    both = [(request.configuration.fs.name, request.pace.value) for request in requests]
    assert both == [("ext4", pace) for pace in ("undisturbed", "slow", "busy")]
    program, requests, *_ = asked(lambda: bob.app("replace-rename", fs="btrfs"))
    assert [request.pace for request in requests] == list(Pace)


def test_a_program_is_held_against_models_with_a_file_system_and_without(elsewhere: Path) -> None:
    save(named_model("ext4-ordered"), elsewhere / "mine.json")
    *_, models, explores = asked(lambda: bob.app("replace-rename", fs="xfs", model=["ext4-o", Path("mine.json")]))
    assert ([model.name for model in models], explores) == (["ext4-o", "ext4-ordered"], True)
    _program, requests, *_, models, explores = asked(lambda: bob.app("replace-rename", model="all"))
    assert [(one.configuration.fs.name, one.pace) for one in requests] == [(RECORDED_ON, Pace.UNDISTURBED)]
    assert (models, explores) == (named_models(["all"]), False)
    _program, requests, *_ = asked(lambda: bob.app("replace-rename", model="ext4-o", pace=["slow", "busy"]))
    assert [one.pace for one in requests] == [Pace.SLOW, Pace.BUSY]
    *_, models, explores = asked(lambda: bob.app("replace-rename", fs="ext4"))
    assert (models, explores) == ([], True)


def test_what_bob_toml_says_is_read_by_each_call_and_the_call_wins() -> None:
    Path("bob.toml").write_text('budget = 9\njobs = 1\nimage = "debian-trixie"\n')
    request, *_ = asked(lambda: bob.probe("ext4"))
    assert (request.budget, request.host, request.image) == (9, Host(jobs=1), "debian-trixie")
    Path("bob.toml").write_text("budget = 8\n")
    request, *_ = asked(lambda: bob.probe("ext4"))
    assert (request.budget, request.host, request.image) == (8, Host(), DEFAULT_IMAGE)
    request, *_ = asked(lambda: bob.probe("ext4", budget=3, image="debian-trixie"))
    assert (request.budget, request.image) == (3, "debian-trixie")
    Path("bob.toml").write_text("jobs = 1\n")
    assert asked(lambda: bob.resume("run"))[:2] == (Path("run"), Host(jobs=1))


REFUSED: dict[str, tuple[Callable[[], object], type[BobError], str]] = {
    "file system": (lambda: bob.probe("ext5"), UsageError, "unknown file system 'ext5'"),
    "mkfs options": (
        lambda: bob.probe("ext4", mkfs_options="'"),
        UsageError,
        'mkfs options "\'": No closing quotation',
    ),
    "device": (lambda: bob.probe("ext4", device=900 * MIB), UsageError, "a device of 900 MiB is too large"),
    "device, bytes": (lambda: bob.probe("ext4", device=1000), UsageError, "not a whole number of MiB"),
    "property": (lambda: bob.probe("ext4", properties="append-every"), UsageError, "unknown property 'append-every'"),
    "probe file": (lambda: bob.probe("ext4", probes="gone.toml"), UsageError, "gone.toml"),
    "rows": (lambda: bob.probe("ext4", rows="table2"), UsageError, "unknown rows 'table2'"),
    "budget": (lambda: bob.probe("ext4", budget=0), UsageError, "a budget of 0 mounts explores nothing"),
    "audit": (lambda: bob.probe("ext4", audit=2), UsageError, "an audit of 2.0 is no share"),
    "recoveries": (lambda: bob.probe("ext4", recovery_crashes=-1), UsageError, "-1 recoveries cannot be crashed"),
    "cache": (lambda: bob.probe("ext4", write_cache="big"), UsageError, "unknown write cache 'big'"),
    "unit": (lambda: bob.probe("ext4", atomic_write=3), UsageError, "a device cannot write 3 bytes atomically"),
    "completion": (lambda: bob.probe("ext4", completion="late"), UsageError, "unknown completion 'late'"),
    "image": (lambda: bob.probe("ext4", image="debian-potato"), UsageError, "debian-potato"),
    "no jobs": (lambda: bob.probe("ext4", jobs=0), UsageError, "that many guests do nothing"),
    "jobs": (lambda: bob.probe("ext4", jobs=9999), UsageError, "each guest takes a whole processor"),
    "no jobs to go on": (lambda: bob.try_("create /a", "mounts", fs="ext4", jobs=-1), UsageError, "do nothing"),
    "out": (lambda: bob.probe("ext4", out="full"), UsageError, "out: full is not empty"),
    "out of a try": (lambda: bob.try_("create /a", "mounts", fs="ext4", out="full"), UsageError, "out: full is not"),
    "operations": (lambda: bob.try_("fsink /a", "mounts", fs="ext4"), PointedError, "operations, column 1: no oper"),
    "no operations": (lambda: bob.try_(" ", "mounts", fs="ext4"), UsageError, "there are no operations"),
    "setup": (
        lambda: bob.try_("create /a", "mounts", fs="vfat", setup="create /b; link /b /c"),
        PointedError,
        "setup, column 12: vfat cannot do 'link'",
    ),
    "no file": (lambda: bob.try_("fsync /a", "mounts", fs="ext4"), PointedError, "operations, column 1: /a does not"),
    "expect": (
        lambda: bob.try_("create /a", ["exists /a", "exists /b"], fs="ext4"),
        PointedError,
        "expect, column 8: neither the setup nor the operations make /b",
    ),
    "nothing expected": (lambda: bob.try_("create /a", [], fs="ext4"), UsageError, "nothing is expected"),
    "finish": (lambda: bob.try_("create /a", "mounts", fs="ext4", finishes="sinc"), PointedError, "finishes, column 1"),
    "at": (lambda: bob.try_("create /a", "mounts", fs="ext4", at="once"), UsageError, "unknown moment of the crash"),
    "witnesses": (lambda: bob.try_("create /a", "mounts", fs="ext4", witnesses=0), UsageError, "0 witnesses show"),
    "program": (lambda: bob.app("sqlite", fs="ext4"), UsageError, "there is no program 'sqlite'"),
    "no file system": (
        lambda: bob.app("replace-rename"),
        UsageError,
        "neither a file system nor a model is named",
    ),
    "model": (lambda: bob.app("replace-rename", model="ext4-p"), UsageError, "there is no model 'ext4-p'"),
    "a seed that is a text": (
        lambda: bob.probe("ext4", seed=anything("x")),
        UsageError,
        "invalid seed 'x'; expected int",
    ),
    "a device with its unit": (
        lambda: bob.probe("ext4", device=anything("64M")),
        UsageError,
        "invalid device '64M'; exp",
    ),
    "options in a list": (lambda: bob.probe("ext4", mount_options=anything(["a"])), UsageError, "['a']; expected str"),
    "a number among names": (
        lambda: bob.probe("ext4", properties=anything(["append-any", 3])),
        UsageError,
        "3]; expected str | ",
    ),
    "a generator": (lambda: bob.probe("ext4", properties=anything(iter("a"))), UsageError, "Sequence[str]"),
    "a table": (lambda: bob.probe(anything(pd.DataFrame([1, 2]))), UsageError, "invalid fs    0\\n0  1"),
    "bytes": (lambda: bob.try_("create /a", anything(b"mounts"), fs="ext4"), UsageError, "invalid expect b'mounts'"),
    "true is no number": (lambda: bob.probe("ext4", budget=True), UsageError, "invalid budget True; expected int"),
    "a text for a share": (
        lambda: bob.probe("ext4", audit=anything("x")),
        UsageError,
        "invalid audit 'x'; expected float",
    ),
    "half a guest": (lambda: bob.probe("ext4", jobs=anything(1.5)), UsageError, "invalid jobs 1.5; expected int"),
    "images": (lambda: bob.probe("ext4", image=anything(["a"])), UsageError, "invalid image ['a']; expected str"),
    "nobody who watches": (
        lambda: bob.probe("ext4", progress=anything(3)),
        UsageError,
        "invalid progress 3; expected bob.progress.Progress",
    ),
    "no name": (lambda: bob.probe(anything(None)), UsageError, "invalid fs None; expected str"),
    "operations in a list": (
        lambda: bob.try_(anything(["a"]), "mounts", fs="ext4"),
        UsageError,
        "invalid operations ['a']",
    ),
    "no program": (
        lambda: bob.app(anything(3), fs="ext4"),
        UsageError,
        "invalid program 3; expected str | os.PathLike",
    ),
    "no path": (lambda: bob.load(anything(3)), UsageError, "invalid path 3; expected str | os.PathLike"),
    "no run": (lambda: bob.resume(anything(3)), UsageError, "invalid run 3; expected str | os.PathLike"),
    "bob.toml": (lambda: _with_settings("budget = 0"), UsageError, "bob.toml: 'budget' is 0"),
    "searches": (lambda: _with_searches("{"), MalformedError, "searched.json"),
}


def anything(value: Any) -> Any:
    """``value``, as a caller has it that checks no types."""
    return value


def _with_settings(text: str) -> object:
    Path("bob.toml").write_text(text)
    return bob.probe("ext4")


def _with_searches(text: str) -> object:
    Path("bob-runs").mkdir()
    (Path("bob-runs") / "searched.json").write_text(text)
    return bob.probe("ext4")


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_asked_is_refused_in_one_line_before_anything_starts(what: str, elsewhere: Path) -> None:
    (elsewhere / "full").mkdir()
    (elsewhere / "full" / "file").touch()
    call, kind, said = REFUSED[what]
    with pytest.raises(BobError) as refused:
        call()
    assert type(refused.value) is kind
    assert said in refused.value.message and "\n" not in refused.value.message
    assert refused.value.hint and "\n" not in refused.value.hint
    assert not (elsewhere / "bob-runs" / "new").exists()


@pytest.mark.parametrize("name", bob.__all__)
def test_each_argument_of_a_function_is_checked_and_its_default_passes(name: str) -> None:
    function = inspect.unwrap(getattr(bob, name))
    for one in inspect.signature(function).parameters.values():
        with pytest.raises(UsageError, match=f"invalid {one.name} <object"):
            function_arguments(function, **{one.name: object()})
        if one.default is not one.empty:
            assert function_arguments(function, **{one.name: one.default})[one.name] == one.default


def function_arguments(function: Callable[..., Any], **named: Any) -> dict[str, Any]:
    """The arguments that ``function`` gets, with a text for each that it must have."""
    must = [one.name for one in inspect.signature(function).parameters.values() if one.default is one.empty]
    return bound(function, (), dict.fromkeys(must, "x") | named).arguments


def test_numbers_and_paths_of_other_libraries_are_taken(elsewhere: Path) -> None:
    with pytest.raises(UsageError, match="a budget of 0 mounts"):
        bob.probe("ext4", properties=pd.Index(["append-any"]), audit=np.float32(0.5), budget=np.int64(0))


def test_arguments_become_plain_values_that_a_run_can_write_down() -> None:
    given = {"seed": np.int64(3), "audit": np.float32(0.5), "properties": {"append-any"}, "probes": [Path("a"), "b"]}
    arguments = function_arguments(inspect.unwrap(bob.probe), **given)
    assert arguments["probes"] == [Path("a"), "b"] and arguments["properties"] == ["append-any"]
    assert (type(arguments["seed"]), type(arguments["audit"])) == (int, float)


def test_a_run_that_is_not_there_is_not_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with pytest.raises(StoreError, match="gone is no run directory"):
        bob.resume("gone")


# Ctrl-C


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[None]]:
    """Filled each time all guests are killed."""
    killed: list[None] = []
    monkeypatch.setattr(interrupts, "_kill_guests", lambda: killed.append(None))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield killed
    signal.signal(signal.SIGINT, before)


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_ctrl_c_ends_the_block_and_the_guests_that_are_left(killed: list[None]) -> None:
    with pytest.raises(KeyboardInterrupt), no_guest_left():
        try:
            press()
        finally:
            press()  # within the second, while what was begun ends: it is the same one
            assert killed == []
    assert len(killed) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_later_one_ends_the_guests_at_once_and_the_block_goes_on_ending(
    killed: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupts, "_SAME", 0.0)
    ended = False
    with pytest.raises(KeyboardInterrupt), no_guest_left():
        try:
            press()
        finally:
            press()
            assert len(killed) == 1
            ended = True
    assert ended


def test_an_interrupt_that_c_code_has_swallowed_is_one_still(killed: list[None]) -> None:
    with pytest.raises(KeyboardInterrupt), no_guest_left():
        try:
            press()
        except KeyboardInterrupt:
            raise TypeError("cannot compare") from None
    with pytest.raises(TypeError), no_guest_left():
        raise TypeError


def test_guests_of_another_call_are_left_alone(killed: list[None]) -> None:
    begun, ends = threading.Event(), threading.Event()

    def other() -> None:
        with no_guest_left():
            begun.set()
            ends.wait()

    thread = threading.Thread(target=other)
    thread.start()
    begun.wait()
    try:
        with pytest.raises(UsageError), no_guest_left():
            raise UsageError("it cannot be")
    finally:
        ends.set()
        thread.join()
    assert killed == []


def test_a_handler_of_ones_own_stays(killed: list[None]) -> None:
    pressed: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: pressed.append(number))
    with no_guest_left():
        press()
    assert (pressed, killed) == ([signal.SIGINT], [])


def test_an_interrupt_says_how_to_go_on_where_a_run_was_begun(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    (runs / "older").mkdir(parents=True)
    (runs / "older" / "run.json").touch()
    with pytest.raises(KeyboardInterrupt) as nothing, telling_where(None, runs):
        raise KeyboardInterrupt
    assert getattr(nothing.value, "__notes__", []) == []
    with pytest.raises(KeyboardInterrupt) as begun, telling_where(None, runs):
        (runs / "new").mkdir()
        (runs / "new" / "run.json").touch()
        raise KeyboardInterrupt
    assert begun.value.__notes__ == [f"what is finished is kept; bob.resume('{runs / 'new'}') goes on"]


def test_two_file_systems_of_one_name_are_no_two_answers(tmp_path: Path) -> None:
    declared = (Path(bob.__file__).parent / "subject" / "file-systems" / "ext4.toml").read_text()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.toml").write_text(declared)
    asked = [ProbeRequest(configuration(str(tmp_path / folder / "mine.toml"))) for folder in ("a", "b")]
    with pytest.raises(UsageError, match="two file systems are called 'mine'"):
        bob.run.programs.preflight(named("replace-rename"), asked, Silent())
