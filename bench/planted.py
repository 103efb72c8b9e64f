"""Programs with a planted bug and their mended twins: does bob app find all bugs, and accuse no twin?

    python bench/planted.py [FILE_SYSTEM ...] [--only NAME]

By default ext4, xfs and btrfs. Prints a line for each program and file system, and ends with 1 where a bug that must
show there was not found, or a mended twin was accused or is not known. It takes about ten seconds each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bob.judge.program_result import Safety
from bob.progress import Silent
from bob.request import Host, ProbeRequest
from bob.run.programs import try_program
from bob.subject import configuration
from planted_programs import EVERYWHERE, PLANTED


def main() -> int:
    """Try all pairs; 0 where every answer is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file_systems", nargs="*", default=EVERYWHERE)
    parser.add_argument("--only", help="one pair")
    parser.add_argument("--jobs", type=int, default=None)
    asked = parser.parse_args()
    wrong = 0
    for planted in PLANTED:
        if asked.only not in (None, planted.name):
            continue
        for mended in (False, True):
            requests = [ProbeRequest(configuration(fs), host=Host(None, asked.jobs)) for fs in asked.file_systems]
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                answers, _path = try_program(planted.program(mended=mended), requests, Path(folder) / "run", Silent())
            seconds = time.monotonic() - began
            for fs, result in zip(asked.file_systems, answers.results, strict=True):
                expected = Safety.VULNERABLE if not mended and fs in planted.matters else Safety.SAFE
                is_right = result.safety is expected or (not mended and fs not in planted.matters)
                wrong += not is_right
                said = result.vulnerabilities[0].evidence if result.vulnerabilities else result.reason or ""
                name = f"{planted.name} {'mended' if mended else 'planted'}"
                mark = "ok" if is_right else "WRONG"
                print(f"{mark:<6}{name:<36}{fs:<7}{result.safety.value:<11}{said}", flush=True)
            print(f"      {seconds:.0f} s", flush=True)
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
