"""What predicting outcomes saves: ``python bench/prediction.py RUN [EVERY [BUDGET]]``.

Takes recordings from the run directory RUN (every EVERYth workload, 8; a budget of BUDGET, 100), and explores each of
them twice in one guest: with each single state mounted, and by what recovery reads. Prints for each workload how many
states were mounted, then, both ways: wall-clock seconds; seconds of processor time of QEMU (for a host that is busy
with other things); milliseconds of it for each state that was mounted; and requests. Says so where the outcomes of a
state were not the same.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bob.agent.client import Agent
from bob.crash.caches import CACHES
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock, GuestSpec
from bob.image import ensure
from bob.observe.effort import Effort
from bob.observe.explore import explore
from bob.observe.observations import Observations
from bob.run.agents import agent_stream
from bob.store.run_directory import RunDirectory
from bob.subject import configuration
from bob.text import compact
from bob.trace.check import checked


@dataclass
class Cost:
    """What exploring a workload took: wall-clock seconds, seconds of QEMU's processor time, requests, mounts."""

    wall: float = 0.0
    processor: float = 0.0
    requests: int = 0
    mounts: int = 0

    def add(self, other: Cost) -> None:
        """Add what another workload took."""
        self.wall, self.processor = self.wall + other.wall, self.processor + other.processor
        self.requests, self.mounts = self.requests + other.requests, self.mounts + other.mounts


@contextmanager
def metered(agent: Agent, qemu: int, cost: Cost) -> Iterator[None]:
    """Add to ``cost`` what the agent does meanwhile, in the QEMU with this process id."""
    ask = agent.ask

    def asked(do: str, **arguments: Any) -> tuple[dict[str, Any], bytes]:
        header, blob = ask(do, **arguments)
        if do == "observe":
            cost.requests += 1
            cost.mounts += len(header["outcomes"])
        return header, blob

    agent.ask = asked  # type: ignore[method-assign]
    started, used = time.monotonic(), processor_seconds(qemu)
    try:
        yield
    finally:
        cost.wall += time.monotonic() - started
        cost.processor += processor_seconds(qemu) - used
        agent.ask = ask  # type: ignore[method-assign]


def processor_seconds(pid: int) -> float:
    """User and system time of a process (proc_pid_stat(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def seen(observed: Observations) -> dict[CrashState, object]:
    """What is judged: each state with what was found in it. Which of the unmountable are repaired is left out."""
    found: dict[CrashState, object] = {}
    for one in observed.states:
        observation = None if one.outcome is None else observed.findings.observation(one.outcome)
        tree = observation.tree if observation is not None and observation.mounted else None
        found[one.state] = observation and observation.error, tree
    return found


def ignore(_states: int) -> None:
    """Progress is not shown."""


def remark(without: Observations, predicted: Observations) -> str:
    """What is wrong with two explorations of one workload, if anything is."""
    if lost := without.lost or predicted.lost:
        return f"  LOST: {lost}"
    one, other = seen(without), seen(predicted)
    return "" if all(one[state] == other[state] for state in one.keys() & other.keys()) else "  DIFFERENT outcomes"


def main() -> None:
    """Run and print."""
    run = RunDirectory(Path(sys.argv[1]))
    every = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    budget = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    asked = run.about()["request"]
    made = configuration(asked["fs"], asked["mkfs_options"], asked["mount_options"], asked["device"])
    model = DeviceModel(CACHES[asked["write_cache"]], asked["atomic_write_bytes"])
    totals = Cost(), Cost()
    explored = 0
    print("mounted of explored   wall s         processor s    ratio  ms a mount   requests")
    spec = GuestSpec(ensure(asked["image"], print), Clock.REAL)
    with Hypervisor.open() as hypervisor, hypervisor.guest(spec) as guest:
        agent = Agent(agent_stream(guest))
        for folder in [folder for folder in run.workloads() if run.refusal(folder) is None][::every]:
            _workload, base_name, recording = run.recording(folder)
            base = run.base(base_name)
            trace = checked(recording, base)
            results, costs = [], (Cost(), Cost())
            for predicting, cost, total in zip((False, True), costs, totals, strict=True):
                plan = Plan(trace, base, model)
                with metered(agent, guest.qemu_pid, cost):
                    results.append(explore(agent, made, plan, Effort(budget, 1, predicting=predicting), ignore))
                total.add(cost)
            explored += results[1].coverage.explored
            row(*costs, results[1].coverage.explored, folder.name, remark(*results))
    row(*totals, explored, "all", "")


def row(without: Cost, cost: Cost, explored: int, name: str, remark: str) -> None:
    """One line of the table."""
    print(
        f"{cost.mounts:7,} of {compact(explored):>6}   {without.wall:5.1f} -> {cost.wall:5.1f}"
        f"  {without.processor:5.1f} -> {cost.processor:5.1f}  {without.processor / cost.processor:4.1f}"
        f"  {1000 * without.processor / without.mounts:4.1f} -> {1000 * cost.processor / cost.mounts:4.1f}"
        f"   {without.requests:3} -> {cost.requests:3}  {name}{remark}",
        flush=True,
    )


if __name__ == "__main__":
    main()
