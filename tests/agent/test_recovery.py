"""Recoveries in a real guest: what recovery writes is recorded, and crashing it changes nothing on ext4."""

from __future__ import annotations

import pytest

from bob.claim.idempotence import judged
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan
from bob.judge.recoveries import recovery_of
from bob.observe.effort import Effort
from bob.observe.explore import explore
from bob.record.base import put_base
from bob.record.recorder import record_recovery
from bob.result import Verdict
from bob.run.recoveries import after_crash
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
    recorded = record_recovery(agent, EXT4, base, virtual=True)
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
