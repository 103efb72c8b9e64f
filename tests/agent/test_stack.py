"""A file system on several disks, in a real guest: each recorded with its own log, assembled anew for each state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bob.claim.property.bench import Bench
from bob.errors import UsageError
from bob.observe.effort import Effort
from bob.observe.explore import explore
from bob.record.base import make_base
from bob.subject import MIB, Stack, configuration
from bob.trace.completion import Completion

from .conftest import Inhabited
from .workloads import NATURAL, SETUP, expected, found, observe, take, workload

pytestmark = pytest.mark.vm

EACH = 16 * MIB
CHUNK = 128  # sectors
TABLE = f"0 {2 * EACH // 512} striped 2 {CHUNK} DISK0 0 DISK1 0"
STRIPED = Stack(
    "striped",
    (EACH, EACH),
    assemble=(
        ("dmsetup", "--noudevsync", "create", "bob-stack", "--table", TABLE),
        ("dmsetup", "mknodes", "bob-stack"),
    ),
    release=(("dmsetup", "--noudevsync", "remove", "--retry", "bob-stack"),),
    device="/dev/mapper/bob-stack",
)
EXT4 = configuration("ext4", mount_options="data=ordered", stack=STRIPED)
WORKLOAD = workload("write /d/a 4096 4096; append /b 300000; rename /d/a /c", NATURAL)


@pytest.mark.parametrize("completion", [Completion.PROMPT, Completion.YOUNGEST_FIRST])
def test_each_disk_has_its_log_and_its_flushes(recording: Inhabited, completion: Completion) -> None:
    taken = take(recording.agent, WORKLOAD, EXT4, completion=completion)
    assert taken.base.disks == (EACH, EACH)
    assert taken.trace.device_sectors == (EACH // 512, EACH // 512)
    assert {write.device for write in taken.trace.writes} == {0, 1}
    assert {flush.device for flush in taken.trace.flushes} == {0, 1}
    # The stripes say where each byte is: the data is where the striped target puts it, and nowhere else.
    data = [write for write in taken.trace.writes if b"[op02:" in write.data]
    assert {write.device for write in data} == {0, 1}
    assert all(write.sector // CHUNK == (write.sector + write.sectors - 1) // CHUNK for write in data)
    last, first = observe(recording.agent, taken, [taken.last, taken.first])
    assert found(last) == expected(WORKLOAD, 3)
    assert found(first) == expected(WORKLOAD, 0)


def test_crash_states_of_two_disks_are_explored(recording: Inhabited, observing: Inhabited) -> None:
    taken = take(recording.agent, WORKLOAD, EXT4)
    observed = explore(observing.agent, EXT4, taken.plan, Effort(40, 1, audit=1.0), lambda _: None)
    assert observed.lost is None
    assert observed.coverage.explored > observed.coverage.mounted
    bench = Bench.of(taken.case, observed)
    assert bench.outcome(taken.first) != bench.outcome(taken.last)


def test_a_stack_that_cannot_be_assembled_is_refused_and_nothing_of_it_stays(recording: Inhabited) -> None:
    wrong = replace(
        STRIPED, assemble=(*STRIPED.assemble, ("dmsetup", "create", "bob-stack-2", "--table", "0 8 nothing"))
    )
    with pytest.raises(UsageError, match="dmsetup failed"):
        make_base(recording.agent, replace(EXT4, stack=wrong), SETUP)
    assert "bob-" not in recording.run("dmsetup ls")
    nowhere = replace(STRIPED, device="/dev/mapper/bob-nowhere")
    with pytest.raises(UsageError, match="made no /dev/mapper/bob-nowhere"):
        make_base(recording.agent, replace(EXT4, stack=nowhere), SETUP)
    assert found(observe(recording.agent, taken := take(recording.agent, WORKLOAD, EXT4), [taken.first])[0])
