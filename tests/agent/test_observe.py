"""Observing in a real guest: nothing leaks from one state into another, and what could is caught."""

from __future__ import annotations

import zlib
from dataclasses import replace
from random import Random

import pytest

from bob.agent.client import AgentBroken
from bob.agent.inside.devices import BASE_EPOCH
from bob.agent.inside.medium import WHOLE_EVERY
from bob.agent.inside.mounts import ROOT
from bob.crash.image import ByteRun
from bob.errors import UsageError
from bob.guest.spec import Clock
from bob.observe.observation import Observation
from bob.observe.session import Session
from bob.record.base import drop_base, put_base
from bob.trace import differences
from bob.trace.base import Base
from bob.trace.model import SECTOR_BYTES
from bob.workload.pattern import stale
from mediums import image_of, lay, put

from .conftest import Guests, Inhabited
from .workloads import FSYNC, WRITES, Taken, expected, found, observe, session, taken_once, workload

pytestmark = pytest.mark.vm

SUPERBLOCK = 2
"""The sector of ext4's superblock."""
GARBAGE = bytes(range(256)) * 2


@pytest.fixture
def taken(recording: Inhabited) -> Taken:
    return taken_once(recording.agent, WRITES)


def flat(runs: tuple[ByteRun, ...]) -> list[int]:
    return [number for run in runs for number in run]


def with_garbage(agent: Inhabited, taken: Taken) -> tuple[Session, int]:
    """A session whose payload has a sector of garbage, and the number of that sector."""
    composer = taken.plan.composer
    payload = composer.payload_since(0)
    looking = Session(agent.agent, taken.configuration, taken.base, composer.floor_delta(), payload + GARBAGE)
    return looking, len(payload) // SECTOR_BYTES


def test_everything_kept_is_the_final_tree_and_nothing_kept_the_initial_one(
    taken: Taken, recording: Inhabited, observing: Inhabited
) -> None:
    synced = taken_once(recording.agent, workload("write /d/a 4096 4096; append /b 4096", FSYNC))
    for each in (taken, synced):
        last, first = observe(observing.agent, each, [each.last, each.first])
        assert found(first) == expected(each.workload, 0)
        assert last.mounted
    assert found(observe(observing.agent, taken, [taken.last])[0]) == expected(WRITES, 4)


def test_what_stat_says_tells_the_base_from_what_came_later(taken: Taken, observing: Inhabited) -> None:
    first, last = observe(observing.agent, taken, [taken.first, taken.last])
    assert first.tree is not None
    assert last.tree is not None
    assert {(node.uid, node.gid) for node in first.tree.values()} == {(0, 0)}
    assert {path: (node.mode, node.links) for path, node in first.tree.items()} == {
        "/b": (0o644, 1), "/d": (0o755, 2), "/d/a": (0o644, 1), "/s": (0o777, 1),
    }  # fmt: skip
    for node in first.tree.values():
        assert 0 < (node.mtime or 0) - BASE_EPOCH * 10**9 < 3600 * 10**9
    written = {path for path, node in last.tree.items() if node.mtime == 0}
    assert written
    assert {path: node for path, node in last.tree.items() if path not in written and path in first.tree} == {
        path: node for path, node in first.tree.items() if path in last.tree.keys() - written
    }


def test_another_base_of_the_same_name_takes_the_place_of_the_first(taken: Taken, observing: Inhabited) -> None:
    """Two runs have bases of one name that are not the same bytes: `bob replay` of both in one guest needs each."""

    def tree_of(base: Base) -> dict[str, object]:
        drop_base(observing.agent, base)
        looking = Session(observing.agent, taken.configuration, base, [], b"")
        return found(looking.findings.observation(looking.observe([[]], b"")[0]))

    after = replace(taken.base, packed=differences.overlaid(taken.base.packed, taken.plan.runs(taken.last)))
    trees = [tree_of(base) for base in (taken.base, after, taken.base)]
    assert trees == [expected(WRITES, 0), expected(WRITES, 4), expected(WRITES, 0)]


def test_inode_numbers_are_those_of_the_recording(taken: Taken, observing: Inhabited) -> None:
    [last] = observe(observing.agent, taken, [taken.last])
    assert last.tree is not None
    inodes = taken.recording.inodes_after
    assert {path: node.inode for path, node in last.tree.items() if path in inodes} == {
        path: inode for path, inode in inodes.items() if path != "/"
    }


def test_the_order_of_the_states_does_not_matter(taken: Taken, observing: Inhabited) -> None:
    states = taken.states(60)
    assert len(states) >= 50
    one = observe(observing.agent, taken, states)
    other_order = Random(1).sample(range(len(states)), len(states))
    again = observe(observing.agent, taken, [states[number] for number in other_order])
    by_number: dict[int, Observation] = dict(zip(other_order, again, strict=True))
    assert [by_number[number] for number in range(len(states))] == one
    assert len({tuple(found(observation)) for observation in one}) > 1


def test_an_outcome_has_one_number_over_requests(taken: Taken, observing: Inhabited) -> None:
    deltas = [taken.plan.composer.delta(state) for state in taken.states(12)]
    looking = session(observing.agent, taken)
    payload = taken.plan.composer.payload_since(0)
    together = looking.observe(deltas, payload)
    assert [looking.observe([delta], payload)[0] for delta in reversed(deltas)] == together[::-1]
    assert sorted(set(together)) == list(range(len(looking.findings.found)))


def test_the_guest_builds_the_image_that_the_host_builds(taken: Taken, observing: Inhabited) -> None:
    states = taken.states(120)
    chosen = [taken.first, taken.last, *Random(2).sample(states, 12)]
    assert any(state.torn for state in chosen)
    looking = session(observing.agent, taken)
    for state in chosen:
        image = bytearray(image_of(taken.base))
        put(taken.plan.composer, state, image)
        delta = taken.plan.composer.delta(state)
        _, packed = observing.agent.ask("state_image", timeout=60, runs=flat(delta))
        in_guest = bytearray(stale(taken.base.length))
        lay(packed, in_guest)
        assert in_guest == image
        looking.observe([delta], taken.plan.composer.payload_since(0))


def test_a_change_that_was_not_undone_is_caught_and_spoils_nothing_later(taken: Taken, observing: Inhabited) -> None:
    before = observe(observing.agent, taken, taken.states(5))
    looking = session(observing.agent, taken)
    deltas = [taken.plan.composer.delta(state) for state in taken.states(5)]
    looking.observe(deltas, taken.plan.composer.payload_since(0))
    free_sector = taken.base.length // SECTOR_BYTES - 1
    observing.agent.ask("tamper", timeout=60, sector=free_sector)
    # Nobody knows that it was written, so the next comparison of the whole image finds it.
    with pytest.raises(AgentBroken, match="differs from its base after the undo"):
        for _ in range(WHOLE_EVERY):
            looking.observe(deltas, taken.plan.composer.payload_since(0))
    with pytest.raises(UsageError, match="observe_prepare must come first"):
        looking.observe(deltas, taken.plan.composer.payload_since(0))
    assert observe(observing.agent, taken, taken.states(5)) == before


@pytest.mark.parametrize("clock", Clock)
def test_a_write_behind_the_observers_back_is_caught(taken: Taken, guests: Guests, clock: Clock) -> None:
    looker = guests.get(clock)
    looking = session(looker.agent, taken)
    delta = taken.plan.composer.delta(taken.first)
    looking.observe([delta], taken.plan.composer.payload_since(0))
    looker.run(f"dd if=/dev/zero of=/dev/{scratch_device(looker)} bs=512 count=1 seek=0 conv=fsync,notrunc 2>&1")
    with pytest.raises(AgentBroken, match="something wrote to the scratch device"):
        looking.observe([delta], taken.plan.composer.payload_since(0))
    assert found(observe(looker.agent, taken, [taken.first])[0]) == expected(WRITES, 0)


def scratch_device(guest: Inhabited) -> str:
    """The kernel's name of the device that crash states are on; empty if there is none."""
    files = "/sys/block/dm-*/dm/name /sys/block/loop*/loop/backing_file"
    found = guest.run(f"grep -lE '^(bob-scratch|/tmp/bob/work.*)$' {files} 2>/dev/null")
    return found.split("/")[3] if found else ""


def test_crash_states_are_in_memory_where_the_guest_has_it_and_else_on_a_loop_device(
    taken: Taken, observing: Inhabited, recording: Inhabited
) -> None:
    for guest in (observing, recording):
        drop_base(guest.agent, taken.base)  # it may have made another one of this name since
    seen = [observe(guest.agent, taken, taken.states(6)) for guest in (observing, recording)]
    assert [scratch_device(guest)[:4] for guest in (observing, recording)] == ["dm-0", "loop"]
    assert seen[0] == seen[1]
    large = Base("large", 305 * 1024 * 1024, zlib.compress(b""), "", "")
    put_base(observing.agent, large)
    Session(observing.agent, taken.configuration, large, [], b"")
    assert scratch_device(observing).startswith("loop")
    assert observe(observing.agent, taken, taken.states(6)) == seen[0]
    assert scratch_device(observing) == "dm-0"


def test_a_state_that_does_not_mount_says_why_and_what_repair_left(taken: Taken, observing: Inhabited) -> None:
    looking, garbage = with_garbage(observing, taken)
    broken: tuple[ByteRun, ...] = ((SUPERBLOCK, garbage, 1),)
    payload = taken.plan.composer.payload_since(0) + GARBAGE
    fine = [taken.plan.composer.delta(state) for state in taken.states(8)]
    numbers = looking.observe([broken, *fine, broken, fine[0], broken], payload)
    # The kernel's log is full of what it said of the others by then. Only the first of a kind is repaired.
    assert numbers[9] == numbers[11]
    assert numbers[10] == numbers[1]
    first, later = (looking.findings.observation(numbers[at]) for at in (0, 9))
    assert (first.repaired, later.repaired) == (True, False)
    assert not first.mounted
    assert not later.mounted
    assert first.error == later.error
    assert "EXT4-fs (loop): VFS: Can't find ext4 filesystem" in str(first.error)
    assert looking.findings.observation(numbers[1]).mounted


def test_how_the_kernel_words_a_refusal_makes_no_outcome(taken: Taken, observing: Inhabited) -> None:
    """Of the group descriptors it tells their checksums, which differ; and of much it tells nothing after a while."""
    looking, garbage = with_garbage(observing, taken)
    one, other = ((8, garbage, 1),), ((9, garbage, 1), (8, garbage, 1))
    payload = taken.plan.composer.payload_since(0) + GARBAGE
    first, *later = looking.observe([one, other, one, other], payload)
    assert not looking.findings.observation(first).mounted
    assert len(set(later)) == 1  # the first is repaired
    assert looking.findings.observation(first).error == looking.findings.observation(later[0]).error


def test_a_file_system_that_has_to_be_repaired_is_looked_at_after_that(taken: Taken, observing: Inhabited) -> None:
    # An inode of the journal that is no journal: the mount fails, e2fsck makes a new one.
    bad_inode = image_of(taken.base)
    looking, garbage = with_garbage(observing, taken)
    table = int.from_bytes(bad_inode[4096 + 8 : 4096 + 12], "little")  # of the first group descriptor
    journal_inode = (table * 4096 + 7 * 256) // SECTOR_BYTES
    [number] = looking.observe([((journal_inode, garbage, 1),)], taken.plan.composer.payload_since(0) + GARBAGE)
    observation = looking.findings.observation(number)
    assert not observation.mounted
    assert observation.tree is not None
    assert "/d/a" in observation.tree
    assert looking.observe([taken.plan.composer.delta(taken.first)], taken.plan.composer.payload_since(0) + GARBAGE)


@pytest.mark.parametrize("run", [(10**9, 0, 1), (0, 10**6, 1), (2**16 - 1, 0, 2)])
def test_sectors_that_do_not_exist_are_refused(taken: Taken, observing: Inhabited, run: ByteRun) -> None:
    looking = session(observing.agent, taken)
    with pytest.raises(AgentBroken):
        looking.observe([(run,)], taken.plan.composer.payload_since(0))
    assert found(observe(observing.agent, taken, [taken.first])[0]) == expected(WRITES, 0)


def test_a_new_agent_starts_from_nothing(taken: Taken, observing: Inhabited) -> None:
    session(observing.agent, taken)
    assert scratch_device(observing)
    observing.stream.close()
    observing.start()
    assert not scratch_device(observing)
    assert "/tmp/bob" not in observing.run("cat /sys/block/loop*/loop/backing_file; ls /tmp/bob")
    assert observing.run("ls /tmp/bob").split() == [ROOT.rpartition("/")[2]]
    assert observing.run("ls /sys/kernel/tracing/instances") == ""
    assert found(observe(observing.agent, taken, [taken.first])[0]) == expected(WRITES, 0)
