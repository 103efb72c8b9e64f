"""How many guests fit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bob.guest import capacity


@pytest.mark.parametrize(
    ("processors", "mib", "guests"), [(1, 64_000, 1), (2, 24_000, 2), (8, 3_500, 2), (8, 64_000, 8), (4, 200, 1)]
)
def test_as_many_as_processors_and_memory_allow(
    processors: int, mib: int, guests: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = tmp_path / "meminfo"
    memory.write_text(f"MemTotal:       99999999 kB\nMemAvailable:   {mib * 1024} kB\n")
    monkeypatch.setattr(capacity, "_MEMINFO", memory)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(processors)))
    assert capacity.guests_that_fit() == guests
