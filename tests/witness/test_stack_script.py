"""The lines of shell that start layers without bob, for each way to start one."""

from __future__ import annotations

import subprocess

import pytest
from inline_snapshot import snapshot

from bob.subject import configuration, layers
from bob.witness.stack_script import stack_script


@pytest.mark.parametrize("name", layers())
def test_every_layer_has_a_script_that_a_shell_can_read(name: str) -> None:
    made = configuration(layers()[name].fs or "ext4", on=name)
    script = stack_script(made, [f"disk-{number}" for number in range(len(made.disks))])
    subprocess.run(["sh", "-n"], input="\n".join([*script.start, *script.stop]).encode(), check=True)
    assert script.device.startswith("$device")
    assert len([line for line in script.start if "losetup" in line]) >= len(made.disks)


@pytest.mark.parametrize(
    ("fs", "name", "lost", "lines"),
    [
        (
            "ext4",
            "bcache",
            (),
            snapshot(
                [
                    "device0=$(losetup --find --show disk-0)",
                    "device1=$(losetup --find --show disk-1)",
                    'printf "0 67584 linear $device0 0\\n" | dmsetup create bob-0-back',
                    'printf "0 67584 linear $device1 0\\n" | dmsetup create bob-0-cache',
                    'readlink -f "/dev/mapper/bob-0-cache" > /sys/fs/bcache/register',
                    'readlink -f "/dev/mapper/bob-0-back" > /sys/fs/bcache/register',
                    'device2="/dev/$(basename "$(readlink -f "/sys/block/$(basename "$(readlink -f "/dev/mapper/bob-0-back")")/bcache/dev")")"',
                    "# mount -o  $device2",
                    'echo 1 > "/sys/block/$(basename "$(readlink -f "/dev/mapper/bob-0-back")")/bcache/cache/stop"',
                    "dmsetup remove --retry bob-0-cache",
                    "dmsetup remove --retry bob-0-back",
                    'losetup -d "$device1"',
                    'losetup -d "$device0"',
                ]
            ),
        ),
        (
            "ext4",
            "bcache",
            (1,),
            snapshot(
                [
                    "device0=$(losetup --find --show disk-0)",
                    'printf "0 67584 linear $device0 0\\n" | dmsetup create bob-0-back',
                    'readlink -f "/dev/mapper/bob-0-back" > /sys/fs/bcache/register',
                    'echo 1 > "/sys/block/$(basename "$(readlink -f "/dev/mapper/bob-0-back")")/bcache/running"',
                    'device2="/dev/$(basename "$(readlink -f "/sys/block/$(basename "$(readlink -f "/dev/mapper/bob-0-back")")/bcache/dev")")"',
                    "# mount -o  $device2",
                    'echo 1 > "/sys/block/$(basename "$(readlink -f "/dev/mapper/bob-0-back")")/bcache/stop"',
                    "dmsetup remove --retry bob-0-back",
                    'losetup -d "$device0"',
                ]
            ),
        ),
        (
            "ext4",
            "loop",
            (),
            snapshot(
                [
                    "device0=$(losetup --find --show disk-0)",
                    'mkdir "$copy/bob-0-files" && mount -t ext4 "$device0" "$copy/bob-0-files"',
                    'bob_0_top=$(losetup --find --show "$copy/bob-0-files/disk")',
                    'device1="$bob_0_top"',
                    "# mount -o  $device1",
                    'losetup -d "$bob_0_top"',
                    'umount "$copy/bob-0-files"',
                    'losetup -d "$device0"',
                ]
            ),
        ),
        (
            "ext4",
            "nbd",
            (),
            snapshot(
                [
                    "device0=$(losetup --find --show disk-0)",
                    'modprobe nbd && qemu-nbd --connect /dev/nbd0 --format raw "$device0"',
                    'device1="/dev/nbd0"',
                    "# mount -o  $device1",
                    "qemu-nbd --disconnect /dev/nbd0",
                    'losetup -d "$device0"',
                ]
            ),
        ),
        (
            "ext4",
            "overlay",
            (),
            snapshot(
                [
                    "device0=$(losetup --find --show disk-0)",
                    'mkdir "$copy/bob-0-files" && mount -t ext4 "$device0" "$copy/bob-0-files"',
                    'mkdir "$copy/bob-0-merged" && mount -t overlay -o "lowerdir=$copy/bob-0-files/lower,upperdir=$copy/bob-0-files/upper,workdir=$copy/bob-0-files/work" "overlay" "$copy/bob-0-merged"',
                    'bob_0_top=$(losetup --find --show "$copy/bob-0-merged/disk")',
                    'device1="$bob_0_top"',
                    "# mount -o  $device1",
                    'losetup -d "$bob_0_top"',
                    'umount "$copy/bob-0-merged"',
                    'umount "$copy/bob-0-files"',
                    'losetup -d "$device0"',
                ]
            ),
        ),
        (
            "ext4",
            "raid1-resync",
            (),
            snapshot(
                [
                    "device0=$(losetup --find --show disk-0)",
                    "device1=$(losetup --find --show disk-1)",
                    "mdadm --assemble --run /dev/md/bob-0-array $device0 $device1",
                    'echo resync > "/sys/block/$(basename "$(readlink -f "/dev/md/bob-0-array")")/md/sync_action"',
                    'until [ "$(cat "/sys/block/$(basename "$(readlink -f "/dev/md/bob-0-array")")/md/resync_start")" = "none" ]; do sleep 0.1; done',
                    'until [ "$(cat "/sys/block/$(basename "$(readlink -f "/dev/md/bob-0-array")")/md/sync_action")" = "idle" ]; do sleep 0.1; done',
                    'device2="/dev/md/bob-0-array"',
                    "# mount -o  $device2",
                    "mdadm --stop /dev/md/bob-0-array",
                    'losetup -d "$device1"',
                    'losetup -d "$device0"',
                ]
            ),
        ),
        (
            "ext4",
            "dm-raid1",
            (0,),
            snapshot(
                [
                    "device1=$(losetup --find --show disk-1)",
                    'printf "0 2048 linear $device1 0\\n" | dmsetup create bob-0-metab',
                    'printf "0 65536 linear $device1 2048\\n" | dmsetup create bob-0-datab',
                    'printf "0 65536 raid raid1 3 0 region_size 1024 2 - - /dev/mapper/bob-0-metab /dev/mapper/bob-0-datab\\n" | dmsetup create bob-0-top',
                    'dmsetup message "/dev/mapper/bob-0-top" 0 "frozen"',
                    'device2="/dev/mapper/bob-0-top"',
                    "# mount -o  $device2",
                    "dmsetup remove --retry bob-0-top",
                    "dmsetup remove --retry bob-0-datab",
                    "dmsetup remove --retry bob-0-metab",
                    'losetup -d "$device1"',
                ]
            ),
        ),
        (
            "xfs",
            "xfs-log",
            (),
            snapshot(
                [
                    "device0=$(losetup --find --show disk-0)",
                    "device1=$(losetup --find --show disk-1)",
                    "# mount -o logdev=$device1 $device0",
                    'losetup -d "$device1"',
                    'losetup -d "$device0"',
                ]
            ),
        ),
        (
            "btrfs",
            "btrfs-raid1",
            (1,),
            snapshot(["device0=$(losetup --find --show disk-0)", "# mount -o  $device0", 'losetup -d "$device0"']),
        ),
    ],
)
def test_what_starts_and_stops(fs: str, name: str, lost: tuple[int, ...], lines: list[str]) -> None:
    made = configuration(fs, on=name, lost=lost)
    script = stack_script(made, [f"disk-{number}" for number in range(len(made.disks))])
    assert [*script.start, f"# mount -o {script.options} {script.device}", *script.stop] == lines


def test_an_array_without_any_of_its_disks_is_not_started() -> None:
    """As in bob's guest: the upper array does without it."""
    made = configuration("ext4", on="raid1,raid1", lost=(0, 1))
    script = stack_script(made, [f"disk-{number}" for number in range(4)])
    assert [line for line in script.start if "mdadm" in line] == [
        "mdadm --assemble --run /dev/md/bob-1-array $device2 $device3",
        "mdadm --assemble --run /dev/md/bob-2-array $device5",
    ]
