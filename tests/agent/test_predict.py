"""Predicting outcomes on a real kernel: they are those of mounting every state, and a trace with gaps is noticed.

In a guest in virtual time, which can observe too: these tests need no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import Random

import pytest
from inline_snapshot import snapshot

from bob.crash.device import DeviceModel
from bob.crash.drafts import settled, view
from bob.crash.plan import Plan
from bob.crash.sampling import every_state
from bob.guest.spec import Clock
from bob.observe import session as sessions
from bob.observe.accesses import Access, Accesses, accesses
from bob.observe.effort import Effort
from bob.observe.events import AccessEvent, Bio
from bob.observe.explore import explore
from bob.observe.observation import Observation
from bob.observe.observations import Observations
from bob.subject import configuration
from bob.trace.recording import Completion
from bob.workload.language import parse
from bob.workload.operations import At

from .conftest import Guests, Inhabited
from .workloads import FSYNC, WRITES, Taken, observe, session, take, workload

pytestmark = pytest.mark.vm

BUDGET = 120
OWN = parse("mkdir /own")
"""Makes the base one of these tests' own: a guest has the last base that was made of a setup, and no two are alike."""


@pytest.fixture(scope="module")
def taken(guests: Guests) -> Taken:
    return take(guests.get(Clock.VIRTUAL).agent, replace(WRITES, setup=WRITES.setup + OWN))


def explored(agent: Inhabited, taken: Taken, *, predicting: bool = True) -> Observations:
    plan = Plan(taken.trace, taken.base, taken.plan.composer.model)
    return explore(agent.agent, taken.configuration, plan, Effort(BUDGET, 1, predicting=predicting), int)


def shown(observation: Observation) -> object:
    """What is judged. Of the states that do not mount one of each kind is repaired, and which one is no matter."""
    return observation.error, dict(observation.tree or {}) if observation.mounted else None


def test_predictions_are_what_mounting_shows(recording: Inhabited, taken: Taken) -> None:
    synced = replace(workload("write /d/a 4096 4096; append /b 4096", FSYNC), setup=taken.workload.setup)
    for each in (
        taken,
        take(recording.agent, synced, base=taken.base),
        take(recording.agent, taken.workload, configuration("ext4", mount_options="data=journal")),
    ):
        predicted = explored(recording, each)
        assert predicted.lost is None
        assert len(predicted.predicted) > len(predicted.states) // 4
        assert predicted.coverage.mounted == len(predicted.states) - len(predicted.predicted) < 2 * BUDGET
        for one, mounted in zip(
            predicted.states, observe(recording.agent, each, [one.state for one in predicted.states]), strict=True
        ):
            assert one.outcome is not None
            assert shown(predicted.findings.observation(one.outcome)) == shown(mounted)


def test_where_recovery_forgets_every_state_of_whole_writes_is_what_mounting_shows(recording: Inhabited) -> None:
    """xfs writes what it has in its log 30 s later: then its recovery brings those blocks up to date, old or new."""
    natural = workload("mkdir /d/new; append /b 4096")
    each = take(recording.agent, natural, configuration("xfs"))
    predicted = explored(recording, each)
    assert predicted.lost is None
    assert predicted.coverage.exhaustive
    assert predicted.coverage.mounted < predicted.coverage.legal_writes // 2
    views = [view(number, point) for number, point in enumerate(each.plan.points)]
    drafts = list(every_state(views, [1] * len(each.trace.writes), Random(0)))
    assert 100 < len(drafts) == predicted.coverage.legal_writes < 5000
    sample = Random(1).sample(drafts, 60)
    states = [settled(views, views[draft.point].durable | draft.kept, (), draft.point) for draft in sample]
    known = {repr(shown(predicted.findings.observation(one.outcome or 0))) for one in predicted.states}
    assert {repr(shown(found)) for found in observe(recording.agent, each, states)} <= known


def test_a_torn_record_of_the_log_is_not_forgotten(recording: Inhabited) -> None:
    """The header without the body: before it is written, the body makes no difference on xfs. A time tells it."""
    operations = "write /f 0 4096; fdatasync /f"
    setup = parse("write /f 0 8192; setxattr /f user.y 50")
    late = Completion.YOUNGEST_FIRST
    each = take(recording.agent, replace(workload(operations), setup=setup), configuration("xfs"), completion=late)
    plan = Plan(each.trace, each.base, each.plan.composer.model).asked(At.END, 2)
    predicted = explore(recording.agent, each.configuration, plan, Effort(BUDGET, 1), int)
    assert predicted.lost is None
    seen = [(state.state, state.outcome) for state in predicted.states if state.outcome is not None]
    torn = [(state, outcome) for state, outcome in seen if state.torn]
    assert torn
    mounted = observe(recording.agent, each, [state for state, _outcome in torn])
    assert [shown(one) for one in mounted] == [
        shown(predicted.findings.observation(outcome)) for _state, outcome in torn
    ]


@pytest.mark.parametrize(
    ("operations", "atomic_bytes"), [("create /d/new; append /b 100", 2**20), ("write /b 0 512", 2048)]
)
def test_every_legal_state_is_counted_with_its_outcome(
    recording: Inhabited, taken: Taken, operations: str, atomic_bytes: int
) -> None:
    """Of a device that writes 1 MiB at once no write is torn; where it writes 2 KiB, those of a block are."""
    synced = replace(workload(operations, FSYNC), setup=taken.workload.setup)
    model = DeviceModel(atomic_write_bytes=atomic_bytes)
    each = take(recording.agent, synced, base=taken.base)
    each = replace(each, plan=Plan(each.trace, each.base, model))
    told = explored(recording, each)
    assert told.coverage.exhaustive == "sectors"
    views = [view(number, point) for number, point in enumerate(each.plan.points)]
    drafts = list(every_state(views, [model.units(write) for write in each.trace.writes], Random(0)))
    assert 60 < len(drafts) == told.coverage.legal_sectors == told.coverage.explored < 1000
    assert told.coverage.mounted < len(drafts) // 2
    states = [settled(views, views[draft.point].durable | draft.kept, draft.torn, draft.point) for draft in drafts]
    assert any(state.torn for state in states) == (atomic_bytes == 2048)
    counted: Counter[str] = Counter()
    for one in told.states:
        assert one.outcome is not None
        counted[repr(shown(told.findings.observation(one.outcome)))] += one.states
    mounted = Counter(repr(shown(observation)) for observation in observe(recording.agent, each, states))
    assert +counted == mounted


def test_journal_blocks_that_are_only_read_ahead_do_not_count(recording: Inhabited, taken: Taken) -> None:
    composer = taken.plan.composer
    looking = session(recording.agent, taken, watched=composer.sectors.tolist())
    payload = composer.payload_since(0)
    [first] = looking.mount([composer.delta(taken.first)], payload)
    [last] = looking.mount([composer.delta(taken.last)], payload)
    journal = [write for write in taken.trace.writes if write.task.startswith("jbd2")]
    begin = taken.trace.start.time
    commit_and_before = {write.sector for write in journal if write.submitted.time > begin}
    read = [{access.sector for access in each.accesses if access.reads} for each in (first, last)]
    assert len(commit_and_before & read[0]) < len(commit_and_before) // 2
    assert any(not access.reads for access in last.accesses), "the journal is replayed"


def spoilt(change: Callable[[Accesses], Accesses]) -> Callable[[Iterable[AccessEvent]], Accesses]:
    return lambda events: change(accesses(events))


def test_a_trace_without_a_read_that_the_device_has_counted_is_refused(
    recording: Inhabited, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drop(events: Sequence[AccessEvent]) -> Accesses:
        lost = next(number for number, event in enumerate(events) if isinstance(event, Bio) and event.reads)
        return accesses([*events[:lost], *events[lost + 1 :]])

    monkeypatch.setattr(sessions, "accesses", drop)
    observed = explored(recording, taken)
    assert observed.lost == snapshot("the agent failed: the trace of recovery's reads is incomplete")
    assert {one.outcome for one in observed.states} == {None}


def test_reads_that_nobody_saw_are_caught_by_the_control(
    recording: Inhabited, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unseen(found: Accesses) -> Accesses:
        kept: tuple[Access, ...] = tuple(bio for bio in found.bios if not bio.reads or bio.sector < 64)
        return replace(found, bios=kept)

    monkeypatch.setattr(sessions, "accesses", spoilt(unseen))
    observed = explored(recording, taken)
    assert observed.lost is not None
    assert "a control of the predictions failed" in observed.lost
    assert not observed.predicted
    assert 0 < observed.coverage.explored < BUDGET
