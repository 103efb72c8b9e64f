"""Interrupts, however often repeated and at whatever moment, mark nothing finished that is not."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

pytestmark = pytest.mark.vm

CHECKOUT = Path(__file__).parents[2]
ASKED = ["--fs", "ext4", "--property", "append-append-same-file", "--budget", "5", "--jobs", "1", "--quiet"]


@pytest.mark.parametrize("seed", range(3))
def test_interrupts_mark_nothing(seed: int, tmp_path: Path) -> None:
    """Where two came within 0.2 s of each other, nine of twelve runs kept a refusal: "the guest vanished"."""
    random, run = Random(seed), tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, "-m", "bob", "probe", *ASKED, "--out", str(run)],
        cwd=CHECKOUT,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + 300
        while process.poll() is None and not list(run.glob("bases/*.json")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(random.uniform(0, 1))  # somewhere in the first recordings
        for number in random.choices([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], k=random.choice([2, 5])):
            process.send_signal(number)
            time.sleep(random.uniform(0, 0.2))
        _out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted" in err
    assert not [file for name in ("refused", "lost") for file in run.glob(f"workloads/*/{name}.json")]
    assert all('"lost": null' in file.read_text() for file in run.glob("workloads/*/observed.json"))
