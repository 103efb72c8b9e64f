"""How fast bob finds outcomes, beside a bare mount and the naive way: ``./run bench [--json FILE]``.

For each file system some workloads are recorded; then, in one guest, one after the other (the first two once more in
the end: what they were before and after is averaged, since a guest that is new is slower):

- *bare*: mount(2), list the tree, umount(2), again and again;
- *naive*: for each state copy the image, then losetup, mount, find, umount, losetup, as processes;
- *bob*: the workloads' crash states. An outcome is that of one legal state of whole writes, mounted or not. (Torn ones
  are known too, beyond all counting, and left out.) As one workload with many states decides the rate of all, there is
  also the ratio that half of the workloads reach.

And how the cost grows: with the number of operations in a workload, and with the length of a log for ``bob trace``.
Rates are per second of wall-clock time, to be compared with each other only: they are of one machine, in one run.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import log2
from pathlib import Path
from typing import Any

import click

from bob.agent.client import Agent
from bob.catalogue.probe_files import shipped_probes
from bob.catalogue.workloads import distinct
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan
from bob.guest.hypervisor import Hypervisor
from bob.guest.machine import Guest
from bob.guest.spec import Clock, GuestSpec
from bob.image import ensure
from bob.observe.effort import Effort
from bob.observe.explore import explore
from bob.observe.observations import Observations
from bob.record.base import make_base
from bob.record.recorder import record
from bob.run.agents import agent_stream
from bob.subject import Subject, configuration
from bob.trace.base import Base
from bob.trace.check import checked
from bob.trace.log_format import EntryFlags
from bob.trace.log_writer import NewEntry, write_log
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload

FILE_SYSTEMS = {"ext4": "data=ordered", "xfs": "", "btrfs": ""}
WORKLOADS = (
    ("sector overwrites, plain and mapped", "natural"),
    ("block overwrites, whole and in part", "sync"),
    ("a file in pieces, overwritten and appended to", "natural"),
    ("an append that lands in pieces", "fsync /d/g"),
    ("names of a used file system, and of one file with two", "fsync /e/was"),
    ("write a new file and rename it over an old one", "natural"),
    ("replace a file's contents by truncating it", "sync"),
    ("appends, then every kind of operation", "natural 4.5"),
    ("directory operations, then writes", "fsync /e/w"),
)
"""What is explored, by name and finish: each twelfth of the workloads that were shipped when the first figures were
measured. It stays so, since one workload with many states decides the rate of all."""
BARE_MOUNTS, NAIVE_STATES = 60, 8
OPERATIONS = (1, 10, 100, 1000)
LOG_MB = (1, 10, 100, 1000)
BUDGET = 100


@dataclass(frozen=True)
class Recorded:
    """A workload ready to be explored, and how long recording it took (seconds)."""

    base: Base
    plan: Plan
    seconds: float


def recorded(agent: Agent, made: Subject, workloads: list[Workload]) -> Iterator[Recorded]:
    """Record ``workloads``, in a guest in virtual time."""
    bases: dict[object, Base] = {}
    for workload in workloads:
        if workload.setup not in bases:
            bases[workload.setup] = make_base(agent, made, workload.setup)
        base, started = bases[workload.setup], time.monotonic()
        trace = checked(record(agent, made, base, workload), base)
        yield Recorded(base, Plan(trace, base, DeviceModel()), time.monotonic() - started)


def explored(agent: Agent, made: Subject, one: Recorded) -> dict[str, Any]:
    """Explore one workload."""
    started = time.monotonic()
    found = explore(agent, made, one.plan, Effort(BUDGET, 1), lambda _states: None)
    if found.lost:
        raise click.ClickException(found.lost)
    return {
        "seconds": time.monotonic() - started,
        "mounts": found.coverage.mounted,
        "outcomes": whole_states(found),
        "legal_writes": found.coverage.legal_writes,
        "exhaustive": found.coverage.exhaustive,
    }


def whole_states(found: Observations) -> int:
    """Of how many legal states of whole writes the outcome is known."""
    if found.coverage.exhaustive:
        return found.coverage.legal_writes
    return sum(not seen.state.torn and seen.outcome is not None for seen in found.states)


def agent_in(guest: Guest) -> Agent:
    """Bob's agent in a guest."""
    return Agent(agent_stream(guest))


def beside(guest: Guest, made: Subject) -> dict[str, float]:
    """The bare and the naive rate in ``guest``."""
    guest.shell.push((Path(__file__).parent / "naive.py").read_bytes(), "/tmp/naive.py")
    words = [
        made.fs.driver,
        made.mount_options,
        str(made.device_bytes),
        str(BARE_MOUNTS),
        str(NAIVE_STATES),
        # Another UUID: mkfs.btrfs refuses one that it finds on another device, and bob's scratch device has it.
        *(word.replace("b0b0b0b0-0000", "b0b0b0b1-0000") for word in made.mkfs),
    ]
    done = guest.shell.run("rm -rf /tmp/bench; python3 /tmp/naive.py " + " ".join(f"'{word}'" for word in words), 600)
    if done.code:
        raise click.ClickException(done.stderr.decode())
    rates: dict[str, float] = json.loads(done.stdout)
    return rates


def growth_of_workloads(hypervisor: Hypervisor, spec: GuestSpec) -> Iterator[dict[str, Any]]:
    """What a workload costs, by the number of its operations."""
    made = configuration("ext4", "", "data=ordered")
    setup = parse("mkdir /d; mkdir /e")
    workloads = [
        Workload(
            f"{count}", setup, parse("; ".join(f"create /d/{k}" for k in range(count))), Finish("natural", natural=True)
        )
        for count in OPERATIONS
    ]
    with hypervisor.guest(GuestSpec(spec.image, Clock.VIRTUAL)) as guest:
        ready = list(recorded(agent_in(guest), made, workloads))
    with hypervisor.guest(spec) as guest:
        agent = agent_in(guest)
        for count, one in zip(OPERATIONS, ready, strict=True):
            cost = explored(agent, made, one)
            yield {"operations": count, "record_seconds": one.seconds, **told(cost)}


def growth_of_logs() -> Iterator[dict[str, Any]]:
    """What ``bob trace show`` costs, by the length of the log."""
    data = bytes(64 * 1024)
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in LOG_MB:
            log = Path(folder) / "log"
            with log.open("wb") as file:
                write_log(file, (NewEntry(EntryFlags(0), number * 128, data) for number in range(megabytes * 16)))
            started = time.monotonic()
            words = [sys.executable, "-c", MEASURED, "trace", "show", str(log)]
            done = subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            yield {
                "log_mb": megabytes,
                "seconds": time.monotonic() - started,
                "rss_mb": int(done.stderr.split()[-1]),
            }
            log.unlink()


MEASURED = """
import re, sys
from pathlib import Path
from bob.cli.main import run
code = run(sys.argv[1:])
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024, file=sys.stderr)
sys.exit(code)
"""
"""What ``bob`` does, and how much memory it took (MB). getrusage would count what its parent had when it was forked."""


def told(cost: dict[str, Any]) -> dict[str, Any]:
    """Numbers for JSON: counts as text, since they may have any length."""
    return {name: str(value) if name in ("outcomes", "legal_writes") else value for name, value in cost.items()}


@click.command()
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the numbers into this file, too.")
def main(path: Path | None) -> None:
    """Measure and print."""
    shipped = distinct(workload for probe in shipped_probes() for workload in probe.workloads)
    workloads = [workload for workload in shipped if (workload.name, workload.finish.name) in WORKLOADS]
    if len(workloads) != len(WORKLOADS):
        raise click.ClickException(f"{len(workloads)} of the {len(WORKLOADS)} workloads are shipped still")
    document: dict[str, Any] = {"schema": "bob.bench/1", "fs": {}, "growth": []}
    print("fs     bare/s  naive/s  bob/s      bob/bare   bob/naive  median  mounts/outcome  exhaustive")
    spec = GuestSpec(ensure("debian-bookworm", print), Clock.REAL)
    with Hypervisor.open() as hypervisor:
        for fs, options in FILE_SYSTEMS.items():
            made = configuration(fs, "", options)
            with hypervisor.guest(GuestSpec(spec.image, Clock.VIRTUAL)) as guest:
                ready = list(recorded(agent_in(guest), made, workloads))
            with hypervisor.guest(spec) as guest:
                before = beside(guest, made)
                agent = agent_in(guest)
                explored(agent, made, ready[0])  # what a guest needs once counts as little as its boot
                costs = [explored(agent, made, one) for one in ready]
                after = beside(guest, made)
            rates = {name: (rate + after[name]) / 2 for name, rate in before.items()}
            outcomes, mounts = sum(cost["outcomes"] for cost in costs), sum(cost["mounts"] for cost in costs)
            bob = outcomes / sum(cost["seconds"] for cost in costs)
            bare, naive = rates["bare_per_s"], rates["naive_per_s"]
            median = statistics.median(cost["outcomes"] / cost["seconds"] for cost in costs)
            document["fs"][fs] = {
                **rates,
                "bob_per_s": bob,
                "median_bob_per_s": median,
                "mounts_per_outcome": mounts / outcomes,
            }
            whole = sum(cost["exhaustive"] is not None for cost in costs)
            print(
                f"{fs:5} {bare:7.1f} {naive:8.2f}  {bob:9.3g}  {bob / bare:9.3g}  {bob / naive:9.3g}"
                f"  {median / naive:6.0f}  {mounts / outcomes:14.3g}  {whole} of {len(costs)}",
                flush=True,
            )
        for row in [*growth_of_workloads(hypervisor, spec), *growth_of_logs()]:
            document["growth"].append(row)
            print(
                "  ".join(
                    f"{name} {value:.2f}" if isinstance(value, float) else f"{name} {short(value)}"
                    for name, value in row.items()
                )
            )
    document["host_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"host memory: {document['host_rss_mb']} MB")
    if path:
        path.write_text(json.dumps(document, indent=1))


def short(value: object) -> str:
    """A count of any length in few letters."""
    return f"2^{log2(int(value)):.0f}" if isinstance(value, str) and len(value) > 9 else str(value)


if __name__ == "__main__":
    main()
