"""A script that takes too much of its guest is ended at once, and what it took is told."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

STAND_IN = """
import sys
from bob.agent.inside import processes, programs
from bob.agent.inside.frames import Denial
programs.SCRATCH = ()
processes.MOST_TASKS = 40
processes.MOST_WRITTEN = 2**20
left, lost = iter([7] * 3), iter([7, 8, 8])
{more}
try:
    ended = programs.Script({tracer}, sys.argv[1:], "/").wait(20.0)
    print("ended", ended.code, len(ended.output), len(ended.said))
except Denial as refused:
    print(refused)
left = processes.descendants()
print("left", len(left))
"""


def told(tmp_path: Path, script: str, *, workload: bool = True, more: str = "") -> list[str]:
    """What is told of a script, in a process of its own, whose children are those of the script; it is soon told."""
    path = tmp_path / "workload"
    path.write_text(script)
    path.chmod(0o755)
    text = STAND_IN.format(tracer=["env"] if workload else [], more=more)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", text, str(path)], stdout=subprocess.PIPE, text=True, check=True, timeout=120
    )
    assert time.monotonic() - began < 15
    return done.stdout.splitlines()


PYTHON = f"#!{sys.executable}\nimport os, sys, threading, time\n"
TOO_MANY = ["workload started more than 40 processes and threads", "left 0"]
TOO_MUCH = ["workload wrote more than 1 MiB to its output, which bob keeps as acknowledgements", "left 0"]


@pytest.mark.parametrize(
    "script",
    [
        "#!/bin/sh\nfor i in $(seq 200); do sleep 60 & done; wait\n",
        f"{PYTHON}for _ in range(200): threading.Thread(target=time.sleep, args=[60]).start()\n",
        f"{PYTHON}for _ in range(200):\n    if not os.fork(): os.setsid(); os.fork(); time.sleep(60)\ntime.sleep(60)\n",
        f"{PYTHON}for _ in range(200):\n    if not os.fork(): os._exit(0)\ntime.sleep(60)\n",
        f"{PYTHON}for _ in range(200):\n    if os.fork(): time.sleep(60)\ntime.sleep(60)\n",
    ],
    ids=["processes", "threads", "daemons", "zombies", "chain"],
)
def test_too_many_processes(tmp_path: Path, script: str) -> None:
    assert told(tmp_path, script) == told(tmp_path, script, workload=False) == TOO_MANY


@pytest.mark.parametrize(
    "script",
    [
        "#!/bin/sh\nyes\n",
        "#!/bin/sh\nyes >&2\n",
        "#!/bin/sh\nyes | tr -d '\\n'\n",
        "#!/bin/sh\nexec >&-\nyes >&2\n",
    ],
    ids=["output", "error", "one line", "output closed early"],
)
def test_too_much_output(tmp_path: Path, script: str) -> None:
    assert told(tmp_path, script) == TOO_MUCH


@pytest.mark.parametrize("most", [10, 30_000])
def test_calls_that_are_too_much_to_be_taken_down(tmp_path: Path, most: int) -> None:
    """96 MiB of data were 384 MiB of text, and the guest was lost."""
    calls = tmp_path / "calls"
    script = f"#!/bin/sh\nhead -c 20000 /dev/zero > {calls}\nsleep {60 if most == 10 else 0}\n"
    more = f"programs.CALLS, processes.MOST_CALLS = {str(calls)!r}, {most}"
    words = "workload made more calls, or wrote more, than bob records: "
    found = told(tmp_path, script, more=more)
    if most == 10:
        assert found[0].startswith(words) and found[1:] == ["left 0"]
    else:
        assert found == ["ended 0 0 0", "left 0"]
        assert told(tmp_path, script, more=more, workload=False) == found


def test_what_is_not_too_much(tmp_path: Path) -> None:
    script = "#!/bin/sh\nfor i in $(seq 20); do sleep 60 & done\nhead -c 1000000 /dev/zero\nexit 3\n"
    assert told(tmp_path, script) == ["ended 3 1000000 0", "left 0"]
    lines = told(tmp_path, "#!/bin/sh\nyes | head -c 9000000; exit 4\n", workload=False)
    assert lines == ["ended 4 65536 65536", "left 0"], "who prints what is not kept may print much"


def test_no_memory(tmp_path: Path) -> None:
    script, more = "#!/bin/sh\necho so far >&2\nkill -9 $$\n", "processes._killed_for_memory = lambda: next({})"
    assert told(tmp_path, script, more=more.format("left")) == ["ended -9 0 7", "left 0"]
    [said, left] = told(tmp_path, script, more=more.format("lost"))
    assert said.startswith("workload failed (-9): so far; the guest ran out of memory; it has ")
    assert said.endswith(" MiB") and left == "left 0"
