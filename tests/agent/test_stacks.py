"""A file system on layers over several disks, in a real guest: each disk is recorded with its own log, and each crash
state is assembled anew from its disks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from _pytest.mark.structures import ParameterSet

from bob.agent.client import AgentBroken
from bob.claim.idempotence import judged
from bob.claim.property.judged_case import JudgedCase
from bob.claim.verdict import Verdict
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.errors import UsageError
from bob.observe.effort import Effort
from bob.observe.explore import explore
from bob.record.base import make_base, put_base
from bob.record.recorder import record_recovery
from bob.run.recoveries import after_crash
from bob.subject import MIB, Layer, Subject, configuration, layers
from bob.trace.check import checked
from bob.trace.model import DeviceWrite
from bob.trace.recording import Completion
from bob.workload.language import parse
from bob.workload.operations import Finish

from .conftest import Inhabited
from .workloads import NATURAL, SETUP, Taken, expected, found, observe, session, take, workload

pytestmark = pytest.mark.vm

EACH = 16 * MIB
CHUNK = 128  # sectors
SUPERBLOCK, MAGIC = 1024, 56  # ext4's, and the place of its number in it (bytes)
WORKLOAD = workload("write /d/a 4096 4096; append /b 300000; rename /d/a /c", NATURAL)


def ext4_on(stack: str) -> Subject:
    return configuration("ext4", mount_options="data=ordered", device=EACH, on=stack)


STRIPED, LINEAR, RAID1 = ext4_on("striped"), ext4_on("linear"), ext4_on("raid1")


def left_behind(inhabited: Inhabited) -> str:
    """The layers' devices that are there: none after a request that failed, nor between crash states."""
    devices = "dmsetup ls | grep -E 'bob-(stack|recorded)'; ls /sys/block | grep -E '^(md|bcache)'"
    return inhabited.run(f"{devices}; ls /sys/fs/bcache | grep -e -; grep /tmp/bob/layer /proc/mounts; true")


def data_of(taken: Taken, operation: str) -> list[DeviceWrite]:
    return [write for write in taken.trace.writes if f"[{operation}:".encode() in write.data]


@pytest.mark.parametrize("completion", [Completion.PROMPT, Completion.YOUNGEST_FIRST])
def test_each_disk_has_its_log_and_its_flushes(recording: Inhabited, completion: Completion) -> None:
    taken = take(recording.agent, WORKLOAD, STRIPED, completion=completion)
    assert taken.base.disks == (EACH, EACH)
    assert taken.trace.device_sectors == (EACH // 512, EACH // 512)
    assert {write.device for write in taken.trace.writes} == {0, 1}
    assert {flush.device for flush in taken.trace.flushes} == {0, 1}
    # The stripes say where each byte is: the data is where the striped target puts it, and nowhere else.
    data = data_of(taken, "op02")
    assert {write.device for write in data} == {0, 1}
    assert all(write.sector // CHUNK == (write.sector + write.sectors - 1) // CHUNK for write in data)
    last, first = observe(recording.agent, taken, [taken.last, taken.first])
    assert found(last) == expected(WORKLOAD, 3)
    assert found(first) == expected(WORKLOAD, 0)


def test_the_second_disk_of_a_linear_device_begins_where_the_first_ends(recording: Inhabited) -> None:
    taken = take(recording.agent, WORKLOAD, LINEAR)
    assert taken.configuration.volume_bytes == 2 * EACH
    assert taken.base.sector(SUPERBLOCK // 512)[MAGIC : MAGIC + 2] == b"\x53\xef"
    last, first = observe(recording.agent, taken, [taken.last, taken.first])
    assert found(last) == expected(WORKLOAD, 3)
    assert found(first) == expected(WORKLOAD, 0)


@pytest.mark.parametrize(
    "subject",
    [STRIPED, pytest.param(LINEAR, marks=pytest.mark.long), RAID1],
    ids=lambda subject: subject.layers[-1].name,
)
def test_crash_states_of_two_disks_are_explored(recording: Inhabited, observing: Inhabited, subject: Subject) -> None:
    taken = take(recording.agent, WORKLOAD, subject)
    observed = explore(observing.agent, subject, taken.plan, Effort(40, 1, audit=1.0), lambda _: None)
    assert observed.lost is None
    assert observed.coverage.explored > observed.coverage.mounted
    bench = JudgedCase.of(taken.case, observed)
    assert bench.outcome(taken.first) != bench.outcome(taken.last)
    assert not left_behind(observing)


def half(name: str, sectors: int, start: int) -> Layer:
    """A layer of one linear target, on the device with the number 2."""
    return Layer(name, (2,), sectors, (("dm", "TOP", "0", str(sectors), "linear", "DISK0", str(start)),))


SHIFTED = half("shifted", 2 * EACH // 512 - CHUNK, CHUNK)


def test_a_layer_may_be_on_another_one(recording: Inhabited) -> None:
    """The start of the upper device is the first chunk of the stripes on the second disk."""
    made = replace(STRIPED, layers=(*STRIPED.layers, SHIFTED))
    taken = take(recording.agent, WORKLOAD, made)
    superblock = SUPERBLOCK // 512
    assert taken.base.sector(EACH // 512 + superblock)[MAGIC : MAGIC + 2] == b"\x53\xef"
    last, first = observe(recording.agent, taken, [taken.last, taken.first])
    assert found(last) == expected(WORKLOAD, 3)
    assert found(first) == expected(WORKLOAD, 0)


def test_a_tree_of_layers_is_assembled(recording: Inhabited) -> None:
    made = ext4_on("linear,raid1")
    taken = take(recording.agent, WORKLOAD, made)
    assert len(taken.base.disks) == 4
    mirrored = {(write.device // 2, write.sector) for write in data_of(taken, "op02")}
    assert {(write.device // 2, write.sector) for write in data_of(taken, "op02") if write.device % 2} == mirrored
    last, first = observe(recording.agent, taken, [taken.last, taken.first])
    assert found(last) == expected(WORKLOAD, 3)
    assert found(first) == expected(WORKLOAD, 0)
    assert not left_behind(recording)


BROKEN: Sequence[tuple[tuple[Layer, ...], str]] = (
    ((*STRIPED.layers, replace(SHIFTED, start=(("dm", "TOP", "0", "8", "nothing", "x"),))), "target nothing: "),
    ((*STRIPED.layers, replace(SHIFTED, device="/dev/mapper/bob-nowhere")), "did not make /dev/mapper/bob-nowhere"),
    ((*STRIPED.layers, replace(SHIFTED, sectors=8)), r"made a device of \d+ sectors, not 8"),
    ((*STRIPED.layers, replace(SHIFTED, start=(("no-such-program",),), device="/dev/x")), "is not installed"),
    ((replace(RAID1.layers[0], make=()),), "md cannot assemble the array: ADD_NEW_DISK: Invalid argument"),
    ((*RAID1.layers, replace(SHIFTED, start=(("md", "UPPER", "DISK0", "DISK0"),))), "layer shifted does not start"),
    ((), "the subject does not say how to assemble 2 disks"),
)


@pytest.mark.parametrize(("layers", "words"), BROKEN)
def test_a_stack_that_cannot_be_assembled_is_refused_and_nothing_of_it_stays(
    recording: Inhabited, layers: tuple[Layer, ...], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        make_base(recording.agent, replace(STRIPED, layers=layers), SETUP)
    assert not left_behind(recording)
    assert found(observe(recording.agent, taken := take(recording.agent, WORKLOAD, STRIPED), [taken.first])[0])


# md RAID1

ARRAY_DATA = 2048  # sectors before the data of each disk
DIRTY, CLEAN = 0, 2**64 - 1  # resync_offset of the superblock
SUPER_SECTOR, RESYNC_OFFSET = 8, 208


def test_both_mirrors_get_each_write_and_flush_on_their_own(recording: Inhabited) -> None:
    taken = take(recording.agent, WORKLOAD, RAID1)
    assert taken.configuration.volume_bytes == EACH - ARRAY_DATA * 512
    data = data_of(taken, "op02")
    assert data and all(write.sector >= ARRAY_DATA for write in data)
    first, second = ({(write.sector, write.data) for write in data if write.device == device} for device in (0, 1))
    assert first == second
    assert {flush.device for flush in taken.trace.flushes} == {0, 1}
    # Before the first data after a rest the superblock says that the array may be out of sync, and later that it is not.
    superblocks = [write for write in taken.trace.writes if write.sector == SUPER_SECTOR]
    said = [int.from_bytes(write.data[RESYNC_OFFSET : RESYNC_OFFSET + 8], "little") for write in superblocks]
    assert {DIRTY, CLEAN} <= set(said)
    assert min(write.submitted.time for write in data) > max(
        write.completed.time for write in superblocks if write.submitted.time < data[0].submitted.time
    )


def only_on(taken: Taken, mirror: int) -> CrashState:
    """The last state that could lack the whole overwrite, with the overwrite on ``mirror`` only."""
    data = {write.index for write in data_of(taken, "op01")}
    for number, point in reversed(list(enumerate(taken.plan.points))):
        if data <= set(point.pending):
            writes = taken.trace.writes
            kept = [index for index in point.pending if index not in data or writes[index].device == mirror]
            return CrashState(number, tuple(kept))
    raise AssertionError("no state lacks the data")


@pytest.mark.parametrize("lost", [0, 1])
def test_a_mirror_does_without_the_other(recording: Inhabited, lost: int) -> None:
    """Known answer: what both mirrors got is there if either is lost."""
    subject = replace(RAID1, lost=(lost,))
    taken = take(recording.agent, WORKLOAD, subject)
    assert {write.device for write in taken.trace.writes} == {0, 1}, "it is lost with the crash, not before"
    last, first = observe(recording.agent, taken, [taken.last, taken.first])
    assert found(last) == expected(WORKLOAD, 3)
    assert found(first) == expected(WORKLOAD, 0)
    assert not left_behind(recording)


def test_a_disk_that_failed_before_gets_nothing(recording: Inhabited) -> None:
    taken = take(recording.agent, WORKLOAD, replace(ext4_on("raid5"), missing=(0,)))
    assert {write.device for write in taken.trace.writes} == {1, 2}
    last, first = observe(recording.agent, taken, [taken.last, taken.first])
    assert found(last) == expected(WORKLOAD, 3)
    assert found(first) == expected(WORKLOAD, 0)
    assert not left_behind(recording)


@pytest.mark.parametrize("lost", [(0, 1), (0, 2), (3,)])
def test_an_array_does_without_an_array_below_it(recording: Inhabited, lost: tuple[int, ...]) -> None:
    """Each half is an array of two disks. A half without disks does not start, and the upper array needs only one."""
    taken = take(recording.agent, WORKLOAD, replace(ext4_on("raid1,raid1"), lost=lost))
    last, first = observe(recording.agent, taken, [taken.last, taken.first])
    assert found(last) == expected(WORKLOAD, 3)
    assert found(first) == expected(WORKLOAD, 0)
    assert not left_behind(recording)


def test_an_array_does_without_a_layer_that_does_not_start(recording: Inhabited) -> None:
    """In one half, a damaged superblock keeps the lower array from starting."""
    subject = ext4_on("raid1,raid1")
    taken = take(recording.agent, WORKLOAD, subject)
    delta, payload = taken.plan.composer.delta(taken.last), taken.plan.composer.payload_since(0)
    zeros = len(payload) // 512
    without = [(disk * EACH // 512 + SUPER_SECTOR, zeros, 1) for disk in (0, 1)]
    looking = session(recording.agent, taken)
    [whole, half] = looking.observe([delta, [*delta, *without]], payload + bytes(512))
    assert found(looking.findings.observation(half)) == expected(WORKLOAD, 3)
    assert whole == half
    both = [(disk * EACH // 512 + SUPER_SECTOR, zeros, 1) for disk in range(4)]
    [none] = looking.observe([[*delta, *both]], payload + bytes(512))
    assert "the layer raid1 does not start: md cannot assemble" in str(looking.findings.observation(none).error)
    assert not left_behind(recording)


@pytest.mark.parametrize("name", ["striped", "raid0"])
def test_stripes_do_not_start_without_a_disk(recording: Inhabited, name: str) -> None:
    taken = take(recording.agent, WORKLOAD, replace(ext4_on(name), lost=(1,)))
    [last] = observe(recording.agent, taken, [taken.last])
    assert last.error is not None and f"the layer {name} does not start" in last.error
    assert not left_behind(recording)


OFTEN = {"raid1", "raid5", "crypt", "integrity", "thin", "bcache", "dm-raid1", "loop", "ext4-journal"}
"""Layers that CI starts in a guest: one for each way to start a layer."""


def with_marks(names: Iterable[str]) -> list[ParameterSet]:
    return [pytest.param(name, marks=() if name in OFTEN else pytest.mark.long) for name in names]


def on_layer(name: str) -> Subject:
    """The file system that the layer is for (or ext4) on this layer."""
    if fs := layers()[name].fs:
        return configuration(fs, on=name)
    return ext4_on(name)


@pytest.mark.parametrize("name", with_marks(name for name in sorted(layers()) if not layers()[name].packages))
def test_every_layer_keeps_what_was_written(recording: Inhabited, observing: Inhabited, name: str) -> None:
    """It is made, recorded, and started for each state; nothing of it stays."""
    taken = take(recording.agent, WORKLOAD, on_layer(name))
    seen = observe(observing.agent, taken, [taken.last, taken.first, taken.last])
    assert [found(one) for one in seen] == [expected(WORKLOAD, step) for step in (3, 0, 3)]
    assert not left_behind(recording) and not left_behind(observing)
    assert "50" not in recording.run("cat /sys/class/bdi/*/min_ratio").split()


def test_mirrors_that_differ_are_one_of_the_two(recording: Inhabited) -> None:
    """A crash may leave the data on one mirror only. bob's array never resyncs, so md reads the first mirror."""
    asked = workload("write /d/a 4096 4096; create /d/new", NATURAL)
    taken = take(recording.agent, asked, RAID1)
    states = [taken.first, only_on(taken, 0), only_on(taken, 1), taken.last]
    before, first, second, after = observe(recording.agent, taken, states)
    assert found(before) == expected(asked, 0)
    assert found(after) == expected(asked, 2)
    assert found(first) != found(second)
    again = observe(recording.agent, taken, list(reversed(states)))
    assert [found(one) for one in reversed(again)] == [found(one) for one in (before, first, second, after)]
    assert not left_behind(recording)


def test_an_array_that_cannot_be_assembled_is_an_outcome_of_its_crash_state(recording: Inhabited) -> None:
    """Without superblocks the state does not mount, and the next one is as before."""
    taken = take(recording.agent, WORKLOAD, RAID1)
    whole, payload = taken.plan.composer.delta(taken.last), taken.plan.composer.payload_since(0)
    zeros = [(device * EACH // 512 + SUPER_SECTOR, len(payload) // 512, 1) for device in (0, 1)]
    looking = session(recording.agent, taken)
    numbers = looking.observe([whole, [*whole, *zeros], whole], payload + bytes(512))
    good, seen, again = (looking.findings.observation(number) for number in numbers)
    assert found(good) == found(again) == expected(WORKLOAD, 3)
    assert seen.error is not None and "the layer raid1 does not start: md cannot assemble" in seen.error
    assert not left_behind(recording)


RESYNCED = ext4_on("raid1-resync")
DAMAGED = ("sh", "-c", "printf damaged | dd of=DISK1 bs=512 seek=9000 conv=notrunc,fsync")


def test_the_halves_of_an_array_agree_after_a_resync(recording: Inhabited) -> None:
    """A crash leaves the data on one mirror. What a layer's declaration checks is asked of states that are examined."""
    layer = RESYNCED.layers[0]
    damaged = replace(RESYNCED, layers=(replace(layer, examine=(DAMAGED, *layer.examine)),))
    for subject, words in ((damaged, "md/mismatch_cnt is '128', not '0'"), (RESYNCED, "")):
        taken = take(recording.agent, workload("write /d/a 4096 4096; create /d/new", NATURAL), subject)
        composer = taken.plan.composer
        looking = session(recording.agent, taken)
        [wrong] = looking.examine([composer.delta(only_on(taken, 1))], composer.payload_since(0))
        assert [(one.kind, one.words) for one in wrong] == ([("layer", words)] if words else [])
    assert not left_behind(recording)


HOLD = 'import os, signal; held = os.open("%s", os.O_RDWR | os.O_EXCL); print(os.getpid(), flush=True); signal.pause()'


def test_a_disk_that_is_busy_is_no_outcome_of_a_crash_state(recording: Inhabited) -> None:
    """While another process holds a disk, each start fails with EBUSY: this is no answer, and it passes."""
    taken = take(recording.agent, WORKLOAD, RAID1)
    whole, payload = taken.plan.composer.delta(taken.last), taken.plan.composer.payload_since(0)
    looking = session(recording.agent, taken)
    looking.observe([whole], payload)
    part = recording.run("grep -l bob-part-0 /sys/block/dm-*/dm/name").split("/")[3]
    held = "/tmp/held"
    recording.run(f"nohup python3 -c '{HOLD % f'/dev/{part}'}' >{held} 2>&1 & until [ -s {held} ]; do sleep 0.01; done")
    with pytest.raises(AgentBroken, match=r"the layer raid1 cannot be started: md cannot assemble .*busy"):
        looking.observe([whole], b"")
    recording.run(f"kill $(cat {held})")
    [seen] = observe(recording.agent, taken, [taken.last])
    assert found(seen) == expected(WORKLOAD, 3)
    assert not left_behind(recording)


def test_the_kernel_loads_the_driver_of_an_array_that_names_no_module(recording: Inhabited) -> None:
    """The agent keeps modprobe from the kernel while it starts an array, unless the driver is missing."""
    before = recording.run("cat /proc/sys/kernel/modprobe; modprobe -r raid1")
    assert "raid1" not in recording.run("cat /proc/mdstat")
    made = replace(RAID1, layers=tuple(replace(layer, modules=()) for layer in RAID1.layers))
    make_base(recording.agent, made, SETUP)
    assert "[raid1]" in recording.run("cat /proc/mdstat")
    assert recording.run("cat /proc/sys/kernel/modprobe") == before
    assert not left_behind(recording)


def test_the_assembly_of_an_array_is_part_of_a_recovery_that_is_crashed(recording: Inhabited) -> None:
    asked = workload("create /d/new; rename /b /c", Finish("fsync", parse("fsync /d")))
    taken = take(recording.agent, asked, RAID1)
    [before] = observe(recording.agent, taken, [taken.last])
    base = after_crash(taken.case, taken.last)
    put_base(recording.agent, base)
    recorded = record_recovery(recording.agent, RAID1, base)
    trace = checked(recorded, base)
    assert {write.device for write in trace.writes if write.sector == SUPER_SECTOR} == {0, 1}
    plan = Plan(trace, base, DeviceModel())
    seen = explore(recording.agent, RAID1, plan, Effort(40, 1), lambda _states: None)
    assert seen.lost is None
    result, shown = judged(seen, before)
    assert (result.verdict, shown) == (Verdict.HOLDS, None)
