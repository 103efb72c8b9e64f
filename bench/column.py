"""How long one column takes, warm: ``python bench/column.py [RUNS]``.

Runs ``bob probe --fs ext4 --mount-opts data=ordered`` with default settings that many times (2), each as a whole
process, and prints for each the wall-clock seconds, and whether verdicts and state counts were those of the first.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bob.text import compact


def column(folder: Path, number: int) -> tuple[float, dict[str, Any]]:
    """Wall-clock seconds of one probe, and its result document."""
    document = folder / f"{number}.json"
    command = [sys.executable, "-m", "bob", "probe", "--fs", "ext4", "--mount-opts", "data=ordered"]
    started = time.monotonic()
    command += ["--quiet", "--out", str(folder / str(number)), "--json", str(document)]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    return time.monotonic() - started, json.loads(document.read_text())


def cells(result: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """Property, verdict and state counts of each cell."""
    (found,) = result["configurations"]
    return [(cell["name"], cell["verdict"], cell["states"]) for cell in found["properties"]]


def compared(ours: list[tuple[str, str, Any]], theirs: list[tuple[str, str, Any]]) -> str:
    """In words what two runs have in common; legal counts may differ by what docs/limits.md names."""
    if ours == theirs:
        return "same verdicts and counts"
    if [cell[:2] for cell in ours] != [cell[:2] for cell in theirs]:
        return "DIFFERENT verdicts"
    differing = [cell[0] for cell, other in zip(ours, theirs, strict=True) if cell != other]
    return f"same verdicts, other counts in {', '.join(differing)} (docs/limits.md says which may vary)"


def told(cell: tuple[str, str, Any]) -> str:
    """A cell's verdict and counts, in few words."""
    _property, verdict, states = cell
    return f"{verdict}, {states['mounted']} mounts, {compact(int(states['explored']))} explored"


def main() -> None:
    """Run and print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with tempfile.TemporaryDirectory() as folder:
        first = None
        for number in range(runs):
            seconds, result = column(Path(folder), number)
            found = cells(result)
            first = first or found
            same = compared(found, first)
            mounts = sum(cell[2]["mounted"] for cell in found)
            print(f"run {number + 1}: {seconds:.0f} s, {mounts} judged mounts, {same}", flush=True)
            for ours, theirs in zip(found, first, strict=True):
                if ours != theirs:
                    print(f"  {ours[0]}: {told(ours)}, and in the first {told(theirs)}")


if __name__ == "__main__":
    main()
