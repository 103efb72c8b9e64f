"""How fast bob searches: ``python bench/searching.py [FILE_SYSTEM ...]`` (ext4, xfs, btrfs and f2fs).

For each file system, ``bob search --ops 1``, every workload of one operation, as a whole process, with default settings
and an image that is there already. It prints workloads per minute, seconds per workload, and mounts and known crash
states per second of wall-clock time. CrashMonkey took 2.2 s for such a workload, whose crash state is one: that after
the last call, with all that was flushed (Mohan et al., OSDI'18, on KVM). bob explores all that the device allows.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bob.answer.document import from_json
from bob.store.files import read_document
from bob.text import compact

FILE_SYSTEMS = ("ext4", "xfs", "btrfs", "f2fs")
BY_CRASHMONKEY = 2.2
"""Seconds for a workload."""


def searched(fs: str, folder: Path) -> tuple[float, Path]:
    """How long a search takes (seconds), and its run directory."""
    run = folder / fs
    command = [sys.executable, "-m", "bob", "search", "--fs", fs, "--ops", "1", "--quiet", "--out", str(run)]
    started = time.monotonic()
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    return time.monotonic() - started, run


def main() -> None:
    """Measure and print."""
    print("fs     workloads  seconds  per minute  s/workload  (CrashMonkey)  mounts/s  known states/s")
    with tempfile.TemporaryDirectory() as folder:
        for fs in sys.argv[1:] or FILE_SYSTEMS:
            seconds, run = searched(fs, Path(folder))
            [column] = from_json(read_document(run / "result.json")).subjects
            [beside] = [cell for cell in column.answers if cell.name == "collateral"]  # it is asked of each workload
            count = len(beside.recordings)
            known = compact(beside.states.explored // max(1, round(seconds)))
            print(
                f"{fs:5}  {count:9}  {seconds:7.0f}  {60 * count / seconds:10.1f}  {seconds / count:10.2f}"
                f"  {BY_CRASHMONKEY:13}  {beside.states.mounted / seconds:8.1f}  {known:>14}",
                flush=True,
            )


if __name__ == "__main__":
    main()
