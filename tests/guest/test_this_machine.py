"""What this machine can do: KVM or TCG, without either; how many guests fit."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from bob.errors import UsageError
from bob.guest import accelerator, capacity
from bob.guest.accelerator import choose
from bob.guest.spec import Accelerator
from bob.subject import cluster_of, configuration
from bob.subject.file_system import MIB, file_systems
from wording import text_with


@pytest.fixture(autouse=True)
def kvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a /dev/kvm that opens and an empty cache; returns the device."""
    device = tmp_path / "kvm"
    device.touch()
    monkeypatch.setattr(accelerator, "_DEVICE", device)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(accelerator.VARIABLE, raising=False)
    return device


def never() -> bool:
    raise AssertionError("nobody should try")


@pytest.mark.parametrize(("boots", "expected"), [(True, Accelerator.KVM), (False, Accelerator.TCG)])
def test_tried_once_and_remembered(boots: bool, expected: Accelerator) -> None:
    assert choose("QEMU 7", lambda: boots).accelerator is expected
    assert choose("QEMU 7", never).accelerator is expected


def test_another_qemu_is_tried_again() -> None:
    choose("QEMU 7", lambda: False)
    assert choose("QEMU 8", lambda: True).accelerator is Accelerator.KVM


def test_no_device_no_trial(kvm: Path) -> None:
    kvm.unlink()
    choice = choose("QEMU 7", never)
    assert choice.accelerator is Accelerator.TCG
    assert choice.reason.endswith("kvm does not exist")


def test_a_damaged_memory_is_no_memory(tmp_path: Path) -> None:
    choose("QEMU 7", lambda: True)
    (memory,) = (tmp_path / "cache/bob/accelerator").iterdir()
    memory.write_text("{")
    assert choose("QEMU 7", lambda: False).accelerator is Accelerator.TCG


def test_the_variable_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(accelerator.VARIABLE, "kvm")
    assert choose("QEMU 7", never).accelerator is Accelerator.KVM
    monkeypatch.setenv(accelerator.VARIABLE, "xen")
    with pytest.raises(UsageError) as refused:
        choose("QEMU 7", never)
    assert str(refused.value) == snapshot("invalid BOB_ACCELERATOR=xen")


@pytest.mark.parametrize(
    ("processors", "mib", "guests"), [(1, 64_000, 1), (2, 24_000, 2), (8, 3_500, 2), (8, 64_000, 8), (4, 200, 1)]
)
def test_as_many_as_processors_and_memory_allow(
    processors: int, mib: int, guests: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(processors, mib, tmp_path, monkeypatch)
    assert capacity.guests_that_fit() == guests
    capacity.check_jobs(guests)
    capacity.check_jobs(None)


def machine(processors: int, mib: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have bob believe that it runs on a machine with so many processors, and so much free memory."""
    memory = folder / "meminfo"
    memory.write_text(f"MemTotal:       99999999 kB\nMemAvailable:   {mib * 1024} kB\n")
    monkeypatch.setattr(capacity, "_MEMINFO", memory)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(processors)))


@pytest.mark.parametrize(
    ("processors", "mib", "jobs", "said"),
    [
        (2, 64_000, 99, snapshot("--jobs 99: at most two guests per processor, and bob may use 2 processors")),
        (1, 64_000, 3, snapshot("--jobs 3: at most two guests per processor, and bob may use 1 processor")),
        (
            8,
            3_500,
            8,
            snapshot("--jobs 8 needs at least 4,080 MiB for 12 guests (waiting ones included), and 3,500 MiB are free"),
        ),
    ],
)
def test_jobs_that_cannot_fit_are_refused_with_the_numbers(
    processors: int, mib: int, jobs: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(processors, mib, tmp_path, monkeypatch)
    with pytest.raises(UsageError) as refused:
        capacity.check_jobs(jobs)
    assert refused.value.message == said
    assert refused.value.hint == f"--jobs {capacity.guests_that_fit()} fits, and is the default on this machine"
    for few in range(1, jobs):
        with suppress(UsageError):
            capacity.check_jobs(few)
            break
    else:
        pytest.fail("nothing fits")


@pytest.mark.parametrize("jobs", [0, -1])
def test_no_guests_are_refused(jobs: int) -> None:
    with pytest.raises(UsageError, match=f"--jobs {jobs}$"):
        capacity.check_jobs(jobs)


@pytest.mark.parametrize("fs", file_systems())
def test_a_device_has_the_size_that_its_file_system_and_a_guest_can_have(fs: str) -> None:
    known = file_systems()[fs]
    for mib in (0, known.smallest // MIB, capacity.LARGEST_DEVICE_MIB):
        capacity.check_device(configuration(fs, device=mib * MIB))
    if known.smallest > MIB:
        with pytest.raises(UsageError, match=rf"{fs}: below {known.smallest // MIB} MiB"):
            capacity.check_device(configuration(fs, device=known.smallest - MIB))
    with pytest.raises(UsageError) as refused:
        capacity.check_device(configuration(fs, device=801 * MIB))
    assert text_with(str(refused.value), 800) == snapshot(
        "a device of 801 MiB is too large: a guest holds it in memory, at most 800 MiB"
    )


def test_the_nodes_of_a_cluster_have_disks_that_fit_together_and_guests_with_memory_for_them() -> None:
    three = cluster_of([configuration("xfs")] * 3)
    capacity.check_device(three)
    assert capacity.memory_for([configuration("ext4"), three]) == 2048 + 2 * (900 - 800)
    assert capacity.memory_for([configuration("ext4")]) == 2048
    with pytest.raises(UsageError) as many:
        capacity.check_device(cluster_of([configuration("xfs")] * 9))
    assert text_with(many.value.message, "9 nodes", "2,700 MiB", "1,000 MiB")
    with pytest.raises(UsageError):
        capacity.check_device(cluster_of([configuration("ext4", device=4 * MIB)] * 3))
