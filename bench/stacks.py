"""How fast bob finds outcomes on layers, beside the same file system on one disk: ``python bench/stacks.py``.

In one guest in virtual time, some workloads are recorded on one disk and on the layers. Then one guest explores them:
on one disk, on the layers, and on one disk once more, since a guest that is new is slower. An outcome counts as in
bench/speed.py. On a busy machine, compare the seconds of processor time that QEMU took, not the wall-clock seconds.

Torn states and examinations are part of the work, as in a probe. EXPLODE (OSDI'06, section 8) checked 3.2 crashes a
second on one disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from prediction import processor_seconds
from speed import WORKLOADS, agent_in, explored, recorded, told

from bob.catalogue.probe_files import shipped_probes
from bob.catalogue.workloads import distinct
from bob.guest.hypervisor import Hypervisor
from bob.guest.machine import Guest
from bob.guest.spec import Clock, GuestSpec
from bob.image import ensure
from bob.subject import configuration

QUICK = 3  # workloads
EXPLODE = 3.2  # crash checks a second


@click.command()
@click.option("--fs", default="ext4", show_default=True)
@click.option("--stack", "stacks", multiple=True, default=("raid1",), show_default=True)
@click.option("--quick", is_flag=True, help=f"Only {QUICK} of {len(WORKLOADS)} workloads.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the numbers into this file, too.")
def main(fs: str, stacks: tuple[str, ...], quick: bool, path: Path | None) -> None:
    """Measure and print."""
    shipped = distinct(workload for probe in shipped_probes() for workload in probe.workloads)
    workloads = [workload for workload in shipped if (workload.name, workload.finish.name) in WORKLOADS]
    workloads = workloads[:QUICK] if quick else workloads
    options = "data=ordered" if fs == "ext4" else ""
    made = {name: configuration(fs, "", options, on=name) for name in ("", *stacks)}
    spec = GuestSpec(ensure("debian-bookworm", print), Clock.REAL)
    rows: list[dict[str, Any]] = []
    with Hypervisor.open() as hypervisor:
        with hypervisor.guest(GuestSpec(spec.image, Clock.VIRTUAL)) as guest:
            agent = agent_in(guest)
            ready = {name: list(recorded(agent, subject, workloads)) for name, subject in made.items()}
        with hypervisor.guest(spec) as guest:
            agent = agent_in(guest)
            print(f"{'on':12} workload      outcomes  mounts  legal whole  wall s   cpu s  cpu ms/mount")
            for name in ("", *stacks, ""):
                explored(agent, made[name], ready[name][0])  # what a guest or a scratch device needs once
                for number, one in enumerate(ready[name]):
                    used = processor_seconds(pid_of(guest))
                    cost = explored(agent, made[name], one)
                    cost["processor"] = processor_seconds(pid_of(guest)) - used
                    rows.append({"stack": name, "workload": number, **told(cost)})
                    a_mount = 1000 * cost["processor"] / max(1, cost["mounts"])
                    print(
                        f"{name or 'one disk':12} {number:8}  {cost['outcomes']:12,} {cost['mounts']:7,}"
                        f" {cost['legal_writes']:12.3g} {cost['seconds']:7.2f} {cost['processor']:7.2f} {a_mount:8.1f}",
                        flush=True,
                    )
    for clock in ("seconds", "processor"):
        print(f"outcomes and mounts a second, by {clock}:")
        for name in made:
            outcomes, mounts = (rate(rows, name, clock, what) for what in ("outcomes", "mounts"))
            bare = rate(rows, "", clock, "outcomes")
            beside = f"{outcomes / bare:.2f} x one disk, {outcomes / EXPLODE:.0f} x EXPLODE"
            print(f"  {name or 'one disk':12} {outcomes:10.4g} outcomes ({beside}), {mounts:6.1f} mounts")
    if path:
        path.write_text(json.dumps(rows, indent=1))


def pid_of(guest: Guest) -> int:
    assert guest.qemu_pid is not None
    return guest.qemu_pid


def rate(rows: list[dict[str, Any]], name: str, clock: str, what: str) -> float:
    """Outcomes or mounts a second on the layers ``name`` ("": one disk), by one of two clocks."""
    mine = [row for row in rows if row["stack"] == name]
    return sum(int(row[what]) for row in mine) / sum(row[clock] for row in mine)


if __name__ == "__main__":
    main()
