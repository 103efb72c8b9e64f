"""Recoveries in a real guest: what recovery writes is recorded, and crashing it changes nothing on ext4."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bob.catalogue.probe_files import shipped_probes
from bob.claim.idempotence import judged
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Question
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan, writes_of_operations
from bob.judge.recoveries import recovery_of
from bob.observe.effort import Effort
from bob.observe.explore import explore
from bob.progress import Silent
from bob.record.base import put_base
from bob.record.recorder import record_recovery
from bob.result import Verdict
from bob.run.recoveries import after_crash
from bob.run.shrinker import Shrinker
from bob.subject import configuration
from bob.trace.check import checked
from bob.workload.language import parse
from bob.workload.operations import Finish

from .conftest import Inhabited
from .workloads import EXT4, expected, found, observe, take, workload

pytestmark = pytest.mark.vm


def test_recovery_is_recorded_and_crashed(recording: Inhabited) -> None:
    """The journal has the operations, the tree not yet: recovery has a transaction to replay."""
    agent, asked = recording.agent, workload("create /d/new; rename /b /c", Finish("fsync", parse("fsync /d")))
    taken = take(agent, asked)
    [before] = observe(agent, taken, [taken.last])
    base = after_crash(taken.case, taken.last)
    put_base(agent, base)
    recorded = record_recovery(agent, EXT4, base)
    trace = checked(recorded, base)
    plan = Plan(trace, base, DeviceModel())
    assert all(write.submitted.time > trace.start.time for write in trace.writes)
    replayed = [write for write in trace.writes if write.submitted.time < trace.end.time]
    assert len(replayed) > 3  # bitmaps, inodes, directories, and the superblocks of journal and file system
    seen = explore(agent, EXT4, plan, Effort(40, 1), lambda _states: None)
    assert seen.lost is None
    assert {seen.findings.observation(0).summary} == {before.summary}
    assert found(seen.findings.observation(0)) == found(before) == expected(asked, 2)
    result, shown = judged(recovery_of(asked, taken.last), seen, before)
    assert (result.verdict, shown) == (Verdict.HOLDS, None)
    assert result.states.explored > 100
    # Had the first recovery found another tree, the control would say so.
    [other] = observe(agent, taken, [taken.first])
    assert judged(recovery_of(asked, taken.last), seen, other)[0].verdict is Verdict.UNKNOWN


# A witness with too much in it becomes one with as much as the violation needs


def test_what_the_violation_does_not_need_is_left_out(recording: Inhabited) -> None:
    """ext4 does not wait for an overwrite before it commits a later create; the other operations are of no account."""
    [probe] = shipped_probes(("overwrite-any",))
    made = configuration("ext4", "", "data=ordered")
    claim = OfProperty(probe.property.name, Question((2,), 3), probe.property)
    shrinker = Shrinker(recording.agent, made, DeviceModel(), claim, 40)
    finish = Finish("fsync /d/new", parse("fsync /d/new"))
    much = replace(
        workload("mkdir /d/x; write /d/a 4096 4096; create /d/new; mkdir /d/y", finish),
        setup=parse("mkdir /d; mkdir /e; write /e/b 0 8192; write /d/a 0 16384; create /e/c"),
    )
    first = shrinker.showing(much)
    assert first is not None
    small = shrinker.smaller_setup(shrinker.fewer_operations(first, Silent()), Silent())
    small = shrinker.nearer(small)
    assert small.case.workload.operations == parse("write /d/a 4096 4096; create /d/new")
    assert small.case.workload.setup == parse("mkdir /d; write /d/a 0 16384")
    assert small.size.departure <= first.size.departure
    assert small.claim.operations == (1, 2)
    # What it hangs on is the data that was sent and is not there, and nothing else: here nothing of it was sent yet.
    pending = small.case.plan.points[small.state.point].pending
    data = writes_of_operations(small.case.plan.trace)[0].intersection(pending)
    assert small.causes == ()
    assert set(shrinker.explained(small).causes) == data - {*small.state.kept}
