"""The device model: what it accepts, and where it cuts a write."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.crash.caches import CACHES
from bob.crash.device import DeviceModel
from bob.errors import UsageError
from bob.trace.model import Write

from .traces import at


def write(sector: int, sectors: int) -> Write:
    return Write(0, sector, bytes(512 * sectors), at(0), at(1))


@pytest.mark.parametrize("size", [8, 64, 512, 4096, 16384])
def test_sizes_that_a_device_can_have(size: int) -> None:
    assert DeviceModel(CACHES["none"], size).atomic_write_bytes == size


@pytest.mark.parametrize("size", [-512, 0, 1, 4, 7, 12, 513, 4095])
def test_sizes_that_it_cannot_have(size: int) -> None:
    with pytest.raises(UsageError):
        DeviceModel(atomic_write_bytes=size)


def test_units_are_aligned_on_the_device() -> None:
    model = DeviceModel(atomic_write_bytes=4096)
    across = write(6, 4)
    assert model.units(across) == 2
    assert model.byte_range(across, 0, 1) == (0, 1024)
    assert model.byte_range(across, 1, 2) == (1024, 2048)
    assert model.units(write(8, 8)) == 1
    assert model.units(write(1, 2)) == 1
    assert DeviceModel(atomic_write_bytes=8).units(write(3, 1)) == 64
    assert DeviceModel(atomic_write_bytes=8).byte_range(write(3, 1), 1, 3) == (8, 24)


@given(st.integers(3, 14), st.integers(0, 40), st.integers(1, 40))
def test_the_units_of_a_write_are_its_bytes(bits: int, sector: int, sectors: int) -> None:
    model = DeviceModel(atomic_write_bytes=1 << bits)
    one = write(sector, sectors)
    edges = [model.byte_range(one, unit, unit + 1) for unit in range(model.units(one))]
    assert edges[0][0] == 0 and edges[-1][1] == len(one.data)
    assert all(before[1] == after[0] < after[1] for before, after in pairwise(edges))
    assert all((sector * 512 + stop) % (1 << bits) == 0 for _, stop in edges[:-1])
    assert model.byte_range(one, 0, model.units(one)) == (0, len(one.data))
