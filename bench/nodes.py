"""How fast bob decides combinations of a cluster's trees, and the naive way: ``python bench/nodes.py [CLUSTER ...]``.

For each cluster, bob records the client's workload, explores the nodes' disks, and decides combinations as the command
does. Then it checks a few combinations in the naive way, in the same run: it starts the nodes for each of them in a
guest, one after the other, without sandboxes, rules and classes. The rate of the naive way leaves out the recording and
the exploration of the disks. bob's slower rate has the exploration in it.

PACE (OSDI'16) decided 0.96 combinations a second."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import click

from bob.answer.result import ClusterTuples
from bob.catalogue.request import CheckPlace, Host, ProbeRequest
from bob.guest.hypervisor import Hypervisor
from bob.image import ensure
from bob.program.folder import CLUSTER
from bob.program.program import SIGNATURE
from bob.program.transcript import ProgramCase
from bob.progress import Silent
from bob.run.cluster_windows import explore_cluster
from bob.run.pool import ProgramGuests
from bob.run.program_recording import record_program_run
from bob.subject import cluster_of, configuration

PACE = 0.96  # combinations a second


class Watch(Silent):
    """The times of the steps after the exploration of the disks."""

    def __init__(self) -> None:
        self.explored = 0.0

    def step(self, text: str) -> None:
        """Note the time when bob first starts nodes, alone or together."""
        print(f"  {text}", flush=True)
        if text.startswith("starting each node") or " possible; checking " in text:
            self.explored = self.explored or time.monotonic()


def measured(
    guests: ProgramGuests, case: ProgramCase, request: ProbeRequest, jobs: int
) -> tuple[ClusterTuples, float, float]:
    """The counts of an exploration, its seconds, and the seconds of its checks."""
    watch, began = Watch(), time.monotonic()
    _looked, counts = explore_cluster(replace(guests, progress=watch), case, request, jobs)
    ended = time.monotonic()
    return counts, ended - began, ended - watch.explored


@click.command()
@click.argument("clusters", nargs=-1)
@click.option("--fs", default="ext4", show_default=True)
@click.option("--budget", default=200, show_default=True, help="Checks by bob.")
@click.option("--naive", default=6, show_default=True, help="Checks in the naive way.")
@click.option("--jobs", default=1, show_default=True)
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the numbers into this file, too.")
def main(clusters: tuple[str, ...], fs: str, budget: int, naive: int, jobs: int, path: Path | None) -> None:
    """Measure and print."""
    rows = []
    with Hypervisor.open() as hypervisor:
        guests = ProgramGuests(hypervisor, ensure("debian-bookworm", print), Silent())
        for name in clusters or ("toy", "redis"):
            program = CLUSTER.named(name)
            request = ProbeRequest(cluster_of([configuration(fs)] * program.nodes), budget=budget)
            case = record_program_run(guests, program, request)
            counts, seconds, checking = measured(guests, case, request, jobs)
            files = tuple(file for file in program.files if file.path != SIGNATURE)
            plainly = replace(case, work=replace(program, files=files))
            asked = replace(request, budget=naive, by_rules=False, host=Host(checks=CheckPlace.GUEST))
            few, _seconds, each = measured(guests, plainly, asked, 1)
            decided = float(counts.decided or counts.checked)
            row = {
                "cluster": name,
                "possible": float(counts.possible),
                "checked": counts.checked,
                "decided": decided,
                "checks_a_second": counts.checked / checking,
                "decided_a_second": decided / checking,
                "decided_a_second_with_exploration": decided / seconds,
                "naive_a_second": few.checked / each,
            }
            rows.append(row)
            print(
                f"{name}: {counts.checked:,} checks, {decided:,.0f} of {row['possible']:,.0f} combinations decided",
                f"  a second: {row['checks_a_second']:.2f} checks, {row['decided_a_second']:.2f} decided; with the"
                f" exploration {row['decided_a_second_with_exploration']:.2f}; naive {row['naive_a_second']:.3f}",
                f"  {row['decided_a_second'] / row['naive_a_second']:.0f} x naive,"
                f" {row['decided_a_second_with_exploration'] / PACE:.1f} x PACE",
                sep="\n",
                flush=True,
            )
    if path:
        path.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
