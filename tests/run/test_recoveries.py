"""Crashes of recoveries in a row, with made-up recoveries: bob's choice and verdicts against every chain of crashes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import samples_of_runs as samples
from bob.catalogue.request import ProbeRequest
from bob.claim.verdict import Verdict
from bob.crash import case
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.judge.column import Column
from bob.judge.recoveries import add_recoveries, planned, recovery_of
from bob.observe.observation import OutcomeTable
from bob.observe.observations import ExploredState, Observations
from bob.progress import Silent
from bob.report.story import print_story
from bob.run import pool, recoveries
from bob.run.recoveries import crash_recoveries
from bob.store.run_directory import RunDirectory
from bob.trace import differences
from bob.trace.base import Base
from bob.trace.model import DeviceWrite, Flush, Mark, Trace
from bob.witness import document as witness
from mediums import image_of

SECTORS = 3
FIRST = "aaa"  # on the disk before the workload; one letter for each sector
FLUSH = None
Step = tuple[int, str] | None  # a write of a letter to a sector, or a flush
Steps = tuple[Step, ...]
Recovery = Callable[[str], Steps]  # the steps of recovery, by the content of the disk
MANY = 1000


# Every chain of crashes, spelled out


def instants(content: str, steps: Steps) -> list[set[str]]:
    """The disks that a crash can leave, just before each flush that makes something durable, and in the end."""
    durable, pending, found = content, list[tuple[int, str]](), list[set[str]]()
    for step in (*steps, FLUSH):
        if step is not FLUSH:
            pending.append(step)
            continue
        some = product((False, True), repeat=len(pending))
        left = {written(durable, [one for one, is_kept in zip(pending, kept, strict=True) if is_kept]) for kept in some}
        if pending:
            found.append(left)
        durable, pending = written(durable, pending), []
    if not steps or steps[-1] is FLUSH:
        found.append({durable})
    return found


def written(content: str, writes: list[tuple[int, str]]) -> str:
    letters = list(content)
    for sector, letter in writes:
        letters[sector] = letter
    return "".join(letters)


def after(recovery: Recovery, content: str) -> str:
    return written(content, [step for step in recovery(content) if step is not FLUSH])


def crashed(recovery: Recovery, content: str) -> set[str]:
    """The disks that a crash during this recovery can leave."""
    return set().union(*instants(content, recovery(content)))


# A run of bob with such a recovery: only the guest is made up


def trace_of(steps: Steps, device_sectors: int = SECTORS) -> Trace:
    writes, flushes = list[DeviceWrite](), list[Flush]()
    for number, step in enumerate(steps, start=1):
        time = 10 * number
        if step is FLUSH:
            flushes.append(Flush(samples.at(time), samples.at(time + 2)))
        else:
            sector, letter = step
            writes.append(samples.write(len(writes), sector, letter.encode() * 512, time))
    start, end = samples.at(5), samples.at(10 * len(steps) + 15)
    return Trace(tuple(writes), tuple(flushes), (Mark(start, "start"), Mark(end, "end")), start, end, (device_sectors,))


def letters_of(base: Base) -> str:
    image = image_of(base)
    return "".join(chr(image[512 * sector]) for sector in range(SECTORS))


class Guest:
    """A made-up guest, for a disk with this ``recovery``. Disks with the contents ``refused`` do not mount."""

    def __init__(self, recovery: Recovery, steps: Steps, refused: frozenset[str] = frozenset()) -> None:
        self.recovery, self.steps, self.refused = recovery, steps, refused
        self.base = Base("first", SECTORS * 512, packed(FIRST), "rw", "")

    def checked(self, _recording: object, base: Base) -> Trace:
        return trace_of(self.steps if base.name == self.base.name else self.recovery(letters_of(base)))

    def explore(self, _agent: object, _subject: object, plan: Plan, *_: object) -> Observations:
        """Mount each legal state."""
        search = plan.search(MANY, 1, torn=False)
        states = list(dict.fromkeys([CrashState(0), *(candidate.state for candidate in search)]))
        outcomes, found = dict[str, int](), list[ExploredState]()
        for state in states:
            left = replace(plan.base, packed=differences.overlaid(plan.base.packed, plan.runs(state)))
            outcome = outcomes.setdefault(self.outcome(letters_of(left)), len(outcomes))
            found.append(ExploredState(state, outcome))
        coverage = replace(plan.nothing_explored(), explored=len(found), mounted=len(found), exhaustive="writes")
        assert len(found) <= coverage.legal_writes  # contents that are equal come once
        return Observations(tuple(found), OutcomeTable(list(outcomes)), coverage)

    def mounts(self, content: str) -> bool:
        return after(self.recovery, content) not in self.refused

    def outcome(self, content: str) -> str:
        if not self.mounts(content):
            return json.dumps({"error": "Bad message", "repaired": False, "tree": None})
        entry = {"kind": "file", "inode": 11, "links": 1, "size": 1, "content": []}
        name = "/" + after(self.recovery, content)
        return json.dumps({"error": None, "repaired": False, "tree": {name: {**entry, "kind": "dir"}}})


def packed(content: str) -> bytes:
    return differences.packed([(number, letter.encode() * 512) for number, letter in enumerate(content)])


def ran(
    folder: Path, patch: pytest.MonkeyPatch, guest: Guest, depth: int, count: int = MANY
) -> tuple[RunDirectory, Column, dict[str, Any]]:
    """Probe a workload with the steps of ``guest``, crash its recoveries, and judge."""

    @contextmanager
    def agent_in(*_: object) -> Iterator[object]:
        yield SimpleNamespace(is_sound=True)

    patch.setattr(recoveries, "record_recovery", lambda *_, **__: samples.RECORDING)
    patch.setattr(recoveries, "explore", guest.explore)
    patch.setattr(recoveries, "put_base", lambda _agent, _base: None)
    patch.setattr(recoveries, "drop_base", lambda _agent, _base: None)
    patch.setattr(pool, "agent_in", agent_in)
    patch.setattr(case, "checked", guest.checked)
    request = ProbeRequest(samples.CONFIGURATION, recovery_crashes=count, recovery_depth=depth)
    run = RunDirectory.create(folder, {"id": "one"})
    origin = run.folder(0, samples.WORKLOAD)
    run.save_base(guest.base)
    run.save_recording(origin, samples.WORKLOAD, guest.base, samples.RECORDING)
    plan = Plan(trace_of(guest.steps), guest.base, request.model)
    run.keep_observed(origin, samples.WORKLOAD, guest.explore(None, None, plan))
    crash_recoveries(object(), object(), run, request, [samples.WORKLOAD], Silent())  # type: ignore[arg-type]
    kept: dict[str, Any] = {}

    def keep(name: str, document: Mapping[str, Any]) -> str:
        kept[name] = json.loads(json.dumps(document))
        return name

    column = Column(samples.CONFIGURATION, [], samples.ENVIRONMENT, keep)
    add_recoveries(column, run, [samples.WORKLOAD], request)
    return run, column, kept


# bob's choice and its verdicts


def spelled_out(run: RunDirectory, guest: Guest) -> list[tuple[int, str, bool]]:
    """Each recovery that bob crashed: its depth, the disk before it, and whether some crash during it breaks the
    claim."""
    plan, chains, found = planned(run), list[tuple[int, set[str]]](), list[tuple[int, str, bool]]()
    for place, one in enumerate(plan or ()):
        _workload, name, _recording = run.recording(run.recovery_folder(place))
        if one.after is None:
            depth, single = 1, instants(FIRST, guest.steps)[one.state.point]
        else:
            depth, single = chains[one.after][0] + 1, chains[one.after][1]
        chains.append((depth, single))
        content = letters_of(run.base(name))
        legal = {after(guest.recovery, disk) for disk in (content, *single)}
        left = {after(guest.recovery, disk) for disk in crashed(guest.recovery, content) if guest.mounts(disk)}
        found.append((depth, content, not left <= legal))
    return found


LETTERS = st.sampled_from("abc")
STEPS = st.lists(st.one_of(st.just(FLUSH), st.tuples(st.integers(0, SECTORS - 1), LETTERS)), max_size=5).map(tuple)
CONTENTS = ["".join(letters) for letters in product("abc", repeat=SECTORS)]


@settings(max_examples=30, deadline=None)
@given(
    workload=STEPS,
    steps=st.lists(STEPS, min_size=1, max_size=5),
    refused=st.sets(st.sampled_from(CONTENTS), max_size=3),
)
def test_each_chain_of_crashes_is_judged_as_spelled_out(workload: Steps, steps: list[Steps], refused: set[str]) -> None:
    """Recovery is any program that begins with reads. Few such programs are idempotent."""
    table = {content: steps[number * 7 % len(steps)] for number, content in enumerate(CONTENTS)}
    guest = Guest(table.__getitem__, workload, frozenset(refused))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        run, column, kept = ran(Path(folder) / "run", patch, guest, 3)
        found = spelled_out(run, guest)
        answers = {cell.name: cell for cell in column.cells()}
    fails = [breaks for _depth, _content, breaks in found]
    given_verdicts = [one.verdict is Verdict.FAILS for one in answers["recovery-idempotent"].recordings]
    assert given_verdicts == fails
    assert ("recovery-idempotent" in kept) == any(fails)
    # With enough of them, bob crashes the recovery of each disk that the crashes of the depth before have left.
    for depth in (1, 2):
        before = {content for one, content, _breaks in found if one <= depth}
        left = set().union(*(crashed(guest.recovery, disk) for one, disk, _breaks in found if one == depth))
        assert {disk for disk in left if guest.mounts(disk)} - before - {FIRST} <= {
            content for one, content, _breaks in found if one == depth + 1
        }
    disks = [content for one, content, _breaks in found if one > 1]
    assert len(disks) == len(set(disks))


# Sector 0 is the journal: c is committed, a is empty. Sector 1 is the journaled block. Sector 2 counts tries.
COMMITTED = "caa"
COMMIT: Steps = ((0, "c"), FLUSH)


def idempotent(content: str) -> Steps:
    return ((1, "b"), FLUSH, (0, "a")) if content[0] == "c" else ()


def hasty_at_the_second_try(content: str) -> Steps:
    """Recovery that was interrupted once empties the journal too early."""
    if content[0] != "c":
        return ((2, "a"),)
    if content[2] == "a":
        return ((2, "b"), FLUSH, (1, "b"), FLUSH, (0, "a"), FLUSH, (2, "a"))
    return ((0, "a"), FLUSH, (1, "b"), FLUSH, (2, "a"))


@pytest.mark.parametrize(
    ("recovery", "depth", "verdict"),
    [
        (idempotent, 1, Verdict.HOLDS),
        (idempotent, 2, Verdict.HOLDS),
        (hasty_at_the_second_try, 1, Verdict.HOLDS),
        (hasty_at_the_second_try, 2, Verdict.FAILS),
    ],
)
def test_what_breaks_only_in_depth_2_is_found_at_depth_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recovery: Recovery, depth: int, verdict: Verdict
) -> None:
    run, column, kept = ran(tmp_path / "run", monkeypatch, Guest(recovery, COMMIT), depth)
    [cell] = column.cells()
    assert cell.verdict is verdict
    assert max(one for one, _content, _breaks in spelled_out(run, Guest(recovery, COMMIT))) == depth
    if verdict is Verdict.FAILS:
        path = tmp_path / "witness.json"
        path.write_text(json.dumps(kept["recovery-idempotent"]))
        read = witness.read(path)
        assert [earlier.title for earlier in read.earlier] == [
            samples.WORKLOAD.title,
            recovery_of(samples.WORKLOAD, read.earlier[0].state).title,
        ]
        told = Console(file=StringIO(), width=200, theme=None, no_color=True)
        print_story(told, read, "bob replay it")
        assert "crash 2, of recovery of" in told.file.getvalue()  # type: ignore[attr-defined]
        # The witness has the disk after the crashes before: the journal is committed, and one try has begun.
        assert letters_of(read.base) in ("cab", "cbb")
