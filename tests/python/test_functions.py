"""What Python asks: what calls are made into, what is refused and how. No guest is started here."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from inline_snapshot import snapshot

import bob
import bob.run.prober
import bob.run.programs
from bob.apm.model import save
from bob.apm.named import named_model, named_models
from bob.catalogue.request import DEFAULT_IMAGE, DEFAULT_MODEL, CheckPlace, Host, ProbeRequest
from bob.catalogue.sets import RowSet
from bob.cli.help_page import contexts
from bob.crash.caches import CACHES
from bob.errors import BobError, PointedError, StoreError, UsageError
from bob.options import parameters
from bob.program.program import Pace
from bob.python.calls import bound
from bob.run import prober
from bob.run.option_table import MOST_WITNESSES
from bob.run.option_values import property_names
from bob.run.requests import RECORDED_ON
from bob.settings import forget
from bob.subject import DEFAULT_AUDIT, DEFAULT_BUDGET, MIB, configuration
from bob.trace.recording import Completion
from bob.workload.operations import At
from python_stub import stub
from wording import text_with


class Started(Exception):
    """What would start guests was reached; ``asked`` is what it was asked."""

    def __init__(self, *asked: Any) -> None:
        super().__init__()
        self.asked = asked


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory, in which nothing can be started."""

    def start(*asked: Any, **more: Any) -> Any:
        raise Started(*asked, *more.values())

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(prober, "probe", start)
    monkeypatch.setattr(prober, "resume", start)
    monkeypatch.setattr(bob.run.prober, "try_out", start)
    monkeypatch.setattr(bob.run.programs, "try_program", start)
    yield tmp_path
    forget()


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
    for said in (f"else {DEFAULT_BUDGET}.", f"else {DEFAULT_IMAGE}."):
        assert said in " ".join((bob.probe.__doc__ or "").split())


@pytest.mark.parametrize(("function", "command"), [(bob.probe, "probe"), (bob.try_, "try"), (bob.app, "app run")])
def test_python_asks_by_the_options_of_the_command_and_with_their_defaults(
    function: Callable[..., object], command: str
) -> None:
    [context] = [one for one in contexts() if one.command_path == f"bob {command}"]
    there = {one.option.flag: one for one in parameters(inspect.unwrap(context.command.callback))}
    here = [one for one in parameters(inspect.unwrap(function)) if one.option.flag]
    assert len(here) > 10
    for one in here:
        other = there[one.option.flag]
        assert (one.kind, one.option) == (other.kind, other.option)
        assert one.is_required or one.several != other.several or one.default == other.default


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
    assert (request.rows, request.properties) == (RowSet.DURABILITY, property_names(RowSet.DURABILITY))
    assert (request.budget, request.audit, request.seed, request.recovery_crashes) == (7, 0.5, -3, 2)
    assert (request.model.write_cache, request.model.atomic_write_bytes) == (CACHES["none"], 4096)
    assert (request.model.completion, request.host) == (Completion.PROMPT, Host(jobs=1))


def test_a_machine_may_stand_in_place_of_an_image_and_a_path_in_place_of_a_name(elsewhere: Path) -> None:
    request, *_ = asked(lambda: bob.probe("ext4", image="ssh://me@testbox:2222"))
    assert request.image == "ssh://me@testbox:2222"
    declared = Path(bob.__file__).parent / "subject" / "file-systems" / "ext4.toml"
    (elsewhere / "mine.toml").write_text(declared.read_text())
    request, *_ = asked(lambda: bob.probe(Path("mine.toml")))
    assert request.configuration.fs.name == "mine"


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


def test_the_place_of_a_checker_is_asked_for_in_python_and_in_bob_toml() -> None:
    def place(**more: str) -> CheckPlace:
        _program, [request], *_ = asked(lambda: bob.app("replace-rename", model="ext4-o", **more))
        found: CheckPlace = request.host.checks
        return found

    assert [place(), place(checks="host"), place(checks="guest")] == [
        CheckPlace.AUTO,
        CheckPlace.HOST,
        CheckPlace.GUEST,
    ]
    Path("bob.toml").write_text('checks = "guest"\n')
    assert [place(), place(checks="auto")] == [CheckPlace.GUEST, CheckPlace.AUTO]
    Path("bob.toml").write_text('checks = "cellar"\n')
    with pytest.raises(UsageError, match="invalid checks 'cellar'; expected \"auto\""):
        place()
    Path("bob.toml").unlink()
    with pytest.raises(UsageError, match="invalid checks 'cellar'; expected one of auto, host, guest"):
        place(checks="cellar")


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
    "rows": (
        lambda: bob.probe("ext4", rows="table2"),
        UsageError,
        "invalid rows 'table2'; expected",
    ),
    "budget": (lambda: bob.probe("ext4", budget=0), UsageError, "invalid budget 0; expected 1 or more"),
    "audit": (lambda: bob.probe("ext4", audit=2), UsageError, "invalid audit 2.0; expected a share from 0 to 1"),
    "recoveries": (lambda: bob.probe("ext4", recovery_crashes=-1), UsageError, "cannot crash -1 recoveries"),
    "cache": (lambda: bob.probe("ext4", write_cache="big"), UsageError, "unknown write cache 'big'"),
    "unit": (lambda: bob.probe("ext4", atomic_write=3), UsageError, "a device cannot write 3 bytes atomically"),
    "completion": (
        lambda: bob.probe("ext4", completion="late"),
        UsageError,
        "invalid completion 'late'; exp",
    ),
    "image": (lambda: bob.probe("ext4", image="debian-potato"), UsageError, "debian-potato"),
    "no jobs": (lambda: bob.probe("ext4", jobs=0), UsageError, "jobs 0"),
    "jobs": (lambda: bob.probe("ext4", jobs=9999), UsageError, "at most two guests per processor"),
    "no jobs to go on": (lambda: bob.try_("create /a", "mounts", fs="ext4", jobs=-1), UsageError, "jobs -1"),
    "out": (lambda: bob.probe("ext4", out="full"), UsageError, "out: full is not empty"),
    "out of a try": (lambda: bob.try_("create /a", "mounts", fs="ext4", out="full"), UsageError, "out: full is not"),
    "operations": (
        lambda: bob.try_("fsink /a", "mounts", fs="ext4"),
        PointedError,
        "operations, column 1: unknown oper",
    ),
    "no operations": (lambda: bob.try_(" ", "mounts", fs="ext4"), UsageError, "the operations are missing"),
    "setup": (
        lambda: bob.try_("create /a", "mounts", fs="vfat", setup="create /b; link /b /c"),
        PointedError,
        "setup, column 12: vfat does not support 'link'",
    ),
    "no file": (lambda: bob.try_("fsync /a", "mounts", fs="ext4"), PointedError, "operations, column 1: /a does not"),
    "expect": (
        lambda: bob.try_("create /a", ["exists /a", "exists /b"], fs="ext4"),
        PointedError,
        "expect, column 8: neither the setup nor the operations make /b",
    ),
    "nothing expected": (lambda: bob.try_("create /a", [], fs="ext4"), UsageError, "an expectation is missing"),
    "finish": (lambda: bob.try_("create /a", "mounts", fs="ext4", finishes="sinc"), PointedError, "finishes, column 1"),
    "at": (
        lambda: bob.try_("create /a", "mounts", fs="ext4", at="once"),
        UsageError,
        "invalid at 'once'; exp",
    ),
    "witnesses": (lambda: bob.try_("create /a", "mounts", fs="ext4", witnesses=0), UsageError, "cannot keep 0"),
    "program": (lambda: bob.app("sqlite", fs="ext4"), UsageError, "unknown program 'sqlite'"),
    "no file system": (
        lambda: bob.app("replace-rename"),
        UsageError,
        "neither fs nor model is given",
    ),
    "model": (lambda: bob.app("replace-rename", model="ext4-p"), UsageError, "unknown model 'ext4-p'"),
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
    "bob.toml": (
        lambda: _with_settings("budget = 0"),
        UsageError,
        "bob.toml: invalid budget 0; expected a whole number",
    ),
}


def anything(value: Any) -> Any:
    """``value``, as a caller has it that checks no types."""
    return value


def _with_settings(text: str) -> object:
    Path("bob.toml").write_text(text)
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


def test_import_bob_loads_nothing_else() -> None:
    script = "import sys, bob; dir(bob); print(*(name for name in sys.modules if name[:4] in ('bob.', 'clic', 'pyda')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["bob.version"]
    with pytest.raises(AttributeError, match="module 'bob' has no attribute 'prob'"):
        _ = vars(bob)["__getattr__"]("prob")


def test_editors_and_mypy_read_the_same_functions() -> None:
    written = Path(bob.__file__).with_suffix(".pyi").read_text()
    assert written == stub(), "write it anew: python tests/python_stub.py"
    assert f"__all__ = {json.dumps(bob.__all__)}\n" in written


@pytest.mark.parametrize("name", bob.__all__)
def test_help_says_what_each_argument_is(name: str) -> None:
    function = getattr(bob, name)
    told = re.findall(r"^:param (\w+): (.+)$", function.__doc__, flags=re.MULTILINE)
    assert [argument for argument, _words in told] == list(inspect.signature(function).parameters)
    assert function.__module__ == "bob"


@pytest.mark.parametrize("name", bob.__all__)
def test_each_argument_of_a_function_is_checked_and_its_default_passes(name: str) -> None:
    function = getattr(bob, name)
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
    with pytest.raises(UsageError) as refused:
        bob.probe("ext4", properties=pd.Index(["append-any"]), audit=np.float32(0.5), budget=np.int64(0))
    assert text_with(str(refused.value), 0) == snapshot("invalid budget 0; expected 1 or more")


def test_arguments_become_plain_values_that_a_run_can_write_down() -> None:
    given = {"seed": np.int64(3), "audit": np.float32(0.5), "properties": {"append-any"}, "probes": [Path("a"), "b"]}
    arguments = function_arguments(bob.probe, **given)
    assert arguments["probes"] == [Path("a"), "b"] and arguments["properties"] == ["append-any"]
    assert (type(arguments["seed"]), type(arguments["audit"])) == (int, float)


def test_a_run_that_is_not_there_is_not_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with pytest.raises(StoreError) as refused:
        bob.resume("gone")
    assert text_with(str(refused.value), "gone") == snapshot("gone is not a run directory")
