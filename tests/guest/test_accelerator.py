"""Choosing KVM or TCG, without either."""

from __future__ import annotations

from pathlib import Path

import pytest

from bob.errors import UsageError
from bob.guest import accelerator
from bob.guest.accelerator import choose
from bob.guest.spec import Accelerator


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


def test_no_device_no_trial(machine: Path) -> None:
    machine.unlink()
    choice = choose("QEMU 7", never)
    assert choice.accelerator is Accelerator.TCG
    assert "there is no" in choice.reason


def test_a_damaged_memory_is_no_memory(tmp_path: Path) -> None:
    choose("QEMU 7", lambda: True)
    (memory,) = (tmp_path / "cache/bob/accelerator").iterdir()
    memory.write_text("{")
    assert choose("QEMU 7", lambda: False).accelerator is Accelerator.TCG


def test_the_variable_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(accelerator.VARIABLE, "kvm")
    assert choose("QEMU 7", never).accelerator is Accelerator.KVM
    monkeypatch.setenv(accelerator.VARIABLE, "xen")
    with pytest.raises(UsageError, match="xen"):
        choose("QEMU 7", never)
