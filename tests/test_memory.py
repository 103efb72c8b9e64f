"""Memory that was freed is given back, in a process that does as bob's entry point does."""

from __future__ import annotations

import subprocess
import sys

import pytest

CHILD = """
import re, sys
from pathlib import Path
from bob.memory import give_back_what_is_freed

def mib():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024

if sys.argv[1] == "give back":
    give_back_what_is_freed()
before = mib()
freed = b"x" * (8 << 20)  # from this glibc learns to keep
del freed
freed = [b"x" * (2 << 20) for _ in range(40)]
above = b"y" * 500_000  # nothing below this in the heap can be given back
del freed
print(mib() - before)
"""


def left(how: str) -> int:
    """What a process has more than at its beginning when it has freed everything (MiB)."""
    done = subprocess.run([sys.executable, "-c", CHILD, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc")
def test_what_is_freed_is_given_back() -> None:
    assert left("keep") > 60
    assert left("give back") <= 4
