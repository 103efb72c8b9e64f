"""In a real guest, recoveries: what recovery writes is recorded, and crashing it changes nothing on ext4."""

from __future__ import annotations

import base64
import io
import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bob.catalogue.probe_files import shipped_probes
from bob.claim.idempotence import judged
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Question
from bob.claim.verdict import Verdict
from bob.crash.caches import VOLATILE
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan, writes_of_operations
from bob.observe.effort import Effort
from bob.observe.explore import explore
from bob.progress import Silent
from bob.record.base import make_base, put_base
from bob.record.recorder import record_recovery
from bob.run.recoveries import after_crash
from bob.run.shrink import Shrinker
from bob.subject import configuration
from bob.trace.check import checked
from bob.trace.join import DiskLog, join
from bob.trace.log import LogReader
from bob.trace.model import SECTOR_BYTES
from bob.trace.recording import Completion
from bob.trace.timeline import parse_timeline
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload

from .conftest import Inhabited
from .workloads import EXT4, FSYNC, NATURAL, SETUP, expected, found, observe, take, workload

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
    result, shown = judged(seen, before)
    assert (result.verdict, shown) == (Verdict.HOLDS, None)
    assert result.states.explored > 100
    # Had the first recovery found another tree, the control would say so.
    [other] = observe(agent, taken, [taken.first])
    assert judged(seen, other)[0].verdict is Verdict.UNKNOWN


# A witness with too much in it becomes one with as much as the violation needs


def test_what_the_violation_does_not_need_is_left_out(recording: Inhabited) -> None:
    """ext4 does not wait for an overwrite before it commits a later create; the other operations are of no account."""
    [probe] = shipped_probes(("overwrite-any",))
    made = configuration("ext4", "", "data=ordered")
    claim = OfProperty(probe.property.name, Question((2,), 3), probe.property)
    shrinker = Shrinker(recording.agent, made, DeviceModel(), claim, 40, Silent())
    finish = Finish("fsync /d/new", parse("fsync /d/new"))
    much = replace(
        workload("mkdir /d/x; write /d/a 4096 4096; create /d/new; mkdir /d/y", finish),
        setup=parse("mkdir /d; mkdir /e; write /e/b 0 8192; write /d/a 0 16384; create /e/c"),
    )
    first = shrinker.showing(much)
    assert first is not None
    small = shrinker.smaller_setup(shrinker.fewer_operations(first))
    small = shrinker.nearer(small)
    assert small.case.workload.operations == parse("write /d/a 4096 4096; create /d/new")
    assert small.case.workload.setup == parse("mkdir /d; write /d/a 0 16384")
    assert small.size.departure <= first.size.departure
    assert small.claim.operations == (1, 2)
    # What it hangs on is the data that was sent and is not there, and nothing else: here nothing of it was sent yet.
    pending = small.case.plan.points[small.state.point].pending
    data = writes_of_operations(small.case.plan.trace)[0].intersection(pending)
    assert small.causes == ()
    assert set(shrinker.states_of(small.case).explained(small).causes) == data - {*small.state.kept}


# A disk that takes its time, in a real guest: a wait that is missing shows, one that is there changes nothing

IMPATIENT = Path(__file__).with_name("impatient.py")
DEVICE_SECTORS = 1 << 11
LATE = (Completion.YOUNGEST_FIRST, Completion.OLDEST_FIRST)


def durable_after_the_flush(inhabited: Inhabited, completion: Completion, waited: tuple[int, ...]) -> set[int]:
    """Which of two writes are durable when a flush is over before which only those ``waited`` for were over."""
    inhabited.guest.shell.push(IMPATIENT.read_bytes(), "/tmp/impatient.py")
    words = " ".join([completion.value, *map(str, waited)])
    told = json.loads(inhabited.run(f"python3 -S /tmp/impatient.py {words}"))
    assert told["holds"] == [1, 2]
    major, minor = told["device"]
    with closing(LogReader(io.BytesIO(base64.b64decode(told["log"])))) as log:
        trace = join([DiskLog(log, (major, minor), DEVICE_SECTORS)], parse_timeline(told["text"]))
    assert sorted(write.data[0] for write in trace.writes) == [1, 2]
    since = VOLATILE.durable_since(trace)
    ends = trace.end.time
    return {write.data[0] for write in trace.writes if (known := since[write.index]) is not None and known <= ends}


@pytest.mark.parametrize(("completion", "waited"), [(Completion.YOUNGEST_FIRST, 2), (Completion.OLDEST_FIRST, 1)])
def test_a_write_that_was_not_waited_for_is_not_durable_after_the_flush(
    recording: Inhabited, completion: Completion, waited: int
) -> None:
    assert durable_after_the_flush(recording, completion, (waited,)) == {waited}


@pytest.mark.parametrize("completion", Completion)
def test_writes_that_were_waited_for_are_durable_after_the_flush(recording: Inhabited, completion: Completion) -> None:
    assert durable_after_the_flush(recording, completion, (1, 2)) == {1, 2}


def test_on_a_prompt_disk_a_missing_wait_does_not_show(recording: Inhabited) -> None:
    """What the late disk is for. Should this fail some day, the prompt one has become better."""
    assert durable_after_the_flush(recording, Completion.PROMPT, (2,)) == {1, 2}


@pytest.mark.parametrize("completion", LATE)
@pytest.mark.parametrize("name", ["ext4", "xfs", "btrfs", "f2fs", "ext2"])
def test_what_was_synced_is_there_on_a_disk_that_takes_its_time(
    recording: Inhabited, name: str, completion: Completion
) -> None:
    made = configuration(name)
    base = make_base(recording.agent, made, SETUP)
    asked = workload("write /d/a 4096 4096; append /b 4096", Finish("both", parse("fsync /d/a; fsync /b")))
    taken = take(recording.agent, asked, made, base, completion)
    assert taken.recording.completion is completion
    returned = max(mark.at.time for mark in taken.trace.marks)
    since = VOLATILE.durable_since(taken.trace)
    data = [write for write in taken.trace.writes if b"[op0" in write.data and write.submitted.time < returned]
    assert {text for write in data for text in (b"[op01", b"[op02") if text in write.data} == {b"[op01", b"[op02"}
    assert all((time := since[write.index]) is not None and time <= returned for write in data)
    [after] = observe(recording.agent, taken, [taken.last])
    assert found(after) == expected(asked, 2)


def test_both_disks_promise_the_same_of_a_file_system_that_waits(recording: Inhabited) -> None:
    """ext4: the sectors that are durable at the end of the recording, and what they hold."""
    base = make_base(recording.agent, configuration("ext4", mount_options="data=ordered"), SETUP)
    promised = []
    for completion in Completion:
        taken = take(recording.agent, workload("append /b 4096; create /d/c", FSYNC), base=base, completion=completion)
        since = VOLATILE.durable_since(taken.trace)
        sectors: dict[int, bytes] = {}
        for write in taken.trace.writes:
            if since[write.index] is not None and write.submitted.time > taken.trace.start.time:
                for number in range(write.sectors):
                    sectors[write.sector + number] = write.data[number * SECTOR_BYTES : (number + 1) * SECTOR_BYTES]
        promised.append({sector: b"[op" in data for sector, data in sectors.items()})
    assert promised[0]
    assert promised[1] == promised[0]
    assert promised[2] == promised[0]


def test_a_recording_does_not_end_while_data_is_still_sent_to_a_disk_that_takes_its_time(
    recording: Inhabited, observing: Inhabited
) -> None:
    """reiserfs commits every 5 s, so it is never quiet; once, the rest of 6 MiB was cut off after 46 s."""
    made = configuration("reiserfs", "", "data=writeback")
    asked = Workload("w", parse("create /b"), parse("append /b 6M"), NATURAL)
    base = make_base(recording.agent, made, asked.setup)
    taken = take(recording.agent, asked, made, base, Completion.YOUNGEST_FIRST)
    [complete] = observe(observing.agent, taken, [taken.last])
    assert found(complete) == expected(asked, 1)
