"""What the machine refuses is told in its own words, and the next recording works."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bob.agent.client import AgentBroken
from bob.agent.inside.mounts import ROOT
from bob.agent.shared import Manner
from bob.errors import BobError, UsageError
from bob.record.base import base_name, drop_base, make_base, put_base
from bob.record.encode import encode_subject, encode_workload
from bob.subject import Subject
from bob.workload.language import parse

from .conftest import Inhabited
from .workloads import EXT4, WRITES, expected, found, observe, take

pytestmark = pytest.mark.vm

MIB = 1024 * 1024


def config(mkfs: str | tuple[str, ...] = "", mount: str = "", device: int = 0, driver: str = "ext4") -> Subject:
    """ext4, but not quite: more options of mkfs, or another mkfs."""
    fs = replace(EXT4.fs, driver=driver, mkfs=EXT4.fs.mkfs if isinstance(mkfs, str) else mkfs)
    return Subject("made", fs, mkfs if isinstance(mkfs, str) else "", mount, (device,) if device else ())


def request(**changes: Any) -> dict[str, Any]:
    """A request to record :data:`WRITES`, as the host makes it, with ``changes``."""
    work, blob = encode_workload(WRITES)
    parts = {"subject": encode_subject(EXT4), "work": work, "manner": Manner("prompt", 600.0, virtual=True)}
    changed = {
        name: part._replace(**{field: changes[field] for field in part._fields if field in changes})
        for name, part in parts.items()
    }
    return {"base": changes["base"], "blob": blob, **changed}


def assert_usable(guest: Inhabited) -> None:
    """Nothing is left of a failure, and the next recording is like any other."""
    assert "/tmp/bob" not in guest.run("cat /proc/mounts").replace("bob /tmp/bob tmpfs", "")
    assert "/tmp/bob" not in guest.run("cat /sys/block/loop*/loop/backing_file")
    assert guest.run("dmsetup ls").strip() == "No devices found"
    taken = take(guest.agent, WRITES)
    last, first = observe(guest.agent, taken, [taken.last, taken.first])
    assert found(last) == expected(WRITES, 4)
    assert found(first) == expected(WRITES, 0)


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        (config(mount="foo=bar"), r"mount refused \(EINVAL\): ext4: Unknown parameter 'foo'"),
        (config(mount="data=sometimes"), r"mount refused \(EINVAL\): ext4: Bad value for 'data'"),
        (config(mkfs="-O nosuchfeature"), r"mkfs.ext4 failed \(1\): Invalid filesystem option set: nosuchfeature"),
        (config(mkfs="--nosuchoption"), r"mkfs.ext4 failed \(1\): mkfs.ext4: invalid option"),
        (config(mkfs="-O ^has_journal", mount="data=journal"), r"mount refused \(EINVAL\): .*w/o journal"),
        (config(mkfs=("mkfs.nosuchfs", "DEVICE")), "mkfs.nosuchfs is not installed in the guest"),
        (
            config(driver="nosuchfs"),
            r"mount refused \(ENODEV\): the kernel 6\.\S+ does not know the file system 'nosuchfs'",
        ),
        (config(device=MIB, mkfs="-b 4096 -N 1000000"), r"mkfs.ext4 failed \(1\): (?s:.*) too big for a"),
    ],
)
def test_a_base_is_refused_in_the_machines_words(recording: Inhabited, configuration: Subject, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make_base(recording.agent, configuration, WRITES.setup)
    assert_usable(recording)


def test_a_device_that_is_too_small_is_refused_by_mkfs(recording: Inhabited) -> None:
    xfs = config(mkfs=("mkfs.xfs", "-q", "-f", "DEVICE"), driver="xfs")
    with pytest.raises(UsageError, match=r"mkfs.xfs failed \(1\): .*[Ff]ilesystem must be larger than 300MB"):
        make_base(recording.agent, xfs, WRITES.setup)
    with pytest.raises(
        UsageError, match=r"operation 2 of the initial tree .* failed: No space left on device|too small"
    ):
        make_base(recording.agent, config(device=MIB), parse("create /a; write /b 0 2M"))
    assert_usable(recording)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"options": "nosuchoption"}, r"mount refused \(EINVAL\): ext4: Unknown parameter 'nosuchoption'"),
        ({"driver": "xfs", "options": ""}, r"mount refused \(EINVAL\): XFS \(dm-0\): Invalid superblock magic number"),
        ({"driver": "nosuchfs"}, r"does not know the file system 'nosuchfs'"),
        (
            {"operations": [[1, "rename", ["/nothing", "/d/x"], 0, 0]]},
            r"operation 1 \(rename /nothing /d/x\) failed: No su",
        ),
        ({"finish": [[9, "rmdir", ["/d"], 0, 0]]}, r"operation 9 \(rmdir /d\) failed: Directory not empty"),
        ({"log_bytes": 64 * 1024}, "the log device is full"),
        ({"timeline_kib": 4}, "the guest's trace buffer overflowed"),
        ({"deadline": 3.0}, "the file system was still writing after 3 s"),
        ({"base": "nobase"}, "the guest lacks the base image nobase"),
    ],
)
def test_a_recording_is_refused_in_the_machines_words(
    recording: Inhabited, changes: dict[str, Any], words: str
) -> None:
    base = make_base(recording.agent, EXT4, WRITES.setup)
    with pytest.raises(UsageError, match=words):
        recording.agent.ask("record", timeout=300, **request(**{"base": base.name, **changes}))
    assert_usable(recording)


def test_a_mount_that_stays_busy_is_the_agents_failure_and_goes_when_it_can(recording: Inhabited) -> None:
    base = make_base(recording.agent, EXT4, WRITES.setup)
    stay = f"echo $$ >/tmp/holder; until cd {ROOT}/d 2>/dev/null; do sleep 0.1; done; exec sleep 10000000"
    holder = recording.guest.shell.open_channel(stay)
    with pytest.raises(AgentBroken, match="umount"):
        recording.agent.ask("record", timeout=300, **request(base=base.name))
    with pytest.raises(BobError, match="dmsetup failed"):
        recording.agent.ask("record", timeout=300, **request(base=base.name))
    recording.run("kill $(cat /tmp/holder)")
    holder.close()
    take(recording.agent, WRITES)
    assert_usable(recording)


def test_a_base_that_was_not_finished_is_no_base(recording: Inhabited) -> None:
    setup = parse("create /unfinished")
    refused = config(mount="foo=bar")
    with pytest.raises(UsageError):
        make_base(recording.agent, refused, setup)
    name = base_name(refused, setup)
    assert recording.agent.ask("has_base", timeout=60, base=name)[0] == {"has": False}


def test_a_base_can_be_put_again_and_dropped(recording: Inhabited) -> None:
    taken = take(recording.agent, WRITES)
    name = taken.base.name
    drop_base(recording.agent, taken.base)
    assert recording.agent.ask("has_base", timeout=60, base=name)[0] == {"has": False}
    with pytest.raises(UsageError, match=f"the guest lacks the base image {name}"):
        recording.agent.ask("record", timeout=300, **request(base=name))
    put_base(recording.agent, taken.base)
    put_base(recording.agent, taken.base)
    again = take(recording.agent, WRITES, base=taken.base)
    assert found(observe(recording.agent, again, [again.last])[0]) == expected(WRITES, 4)


def test_what_nobody_can_ask_is_the_hosts_mistake(recording: Inhabited) -> None:
    with pytest.raises(AgentBroken, match="KeyError: 'nosuchrequest'"):
        recording.agent.ask("nosuchrequest", timeout=60)
    with pytest.raises(AgentBroken, match="TypeError"):
        recording.agent.ask("record", timeout=60, base="x")
    with pytest.raises(UsageError, match="observe_prepare must come first"):
        recording.agent.ask("observe", timeout=60, states=[], audit=True, lookups=[])
    assert_usable(recording)
