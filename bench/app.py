"""How fast a program's crash states become known, beside the naive way: ``python bench/app.py [PROGRAM] [FS]``.

By default sqlite-rollback on ext4. Bob explores it with one guest. The naive way mounts each state and runs the checker
on it; it is tried on SAMPLE states, in one guest too, in turns with what bob does: before and after. Two ratios are
told: one for all crash states that are known, torn ones too, and one that counts whole ones only, as if the naive way
had no need of others.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from random import Random

from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock
from bob.image import ensure, ensure_world
from bob.observe.session import Checking, Session
from bob.program.folder import load, shipped_programs
from bob.program.program import Program
from bob.progress import Silent
from bob.record.recorder import put_program
from bob.report.counts import compact
from bob.request import Host, ProbeRequest
from bob.run.agents import agent_in
from bob.run.programs import try_program
from bob.store.run_directory import RunDirectory
from bob.subject import configuration

SAMPLE = 40
"""So many states are mounted and checked one by one, each time."""


def main() -> None:
    """Measure, and print."""
    name, fs = [*sys.argv[1:], *("sqlite-rollback", "ext4")[len(sys.argv) - 1 :]]
    program, request = load(shipped_programs()[name]), ProbeRequest(configuration(fs), host=Host(None, 1))
    with tempfile.TemporaryDirectory() as folder:
        _answers, warm = try_program(program, [request], Path(folder) / "warm", Silent())  # images, saved guests
        naive = [_naive(program, request, warm)]
        began = time.monotonic()
        answers, _path = try_program(program, [request], Path(folder) / "run", Silent())
        seconds = time.monotonic() - began
        [result] = answers.results
        naive.append(_naive(program, request, warm))
    states, per_state = result.states, sum(naive) / len(naive)
    whole = states.explored_writes or 0
    print(f"legal states        {compact(states.legal_sectors)}")
    print(f"known states        {compact(states.explored)}")
    print(f"legal whole states  {states.legal_writes:,}")
    print(f"known whole states  {whole:,}")
    print(f"mounts              {states.mounted:,}")
    print(f"distinct outcomes   {result.trees:,}")
    print(f"checks              {result.checks:,}")
    print(f"seconds             {seconds:.1f}")
    print(f"naive, a state      {per_state * 1000:.0f} ms ({', '.join(f'{one * 1000:.0f}' for one in naive)})")
    print(f"times faster        {compact(states.explored * int(per_state * 1e6) // int(seconds * 1e6))}")
    print(f"  whole ones only   {per_state * whole / seconds:.1f}")


def _naive(program: Program, request: ProbeRequest, run: Path) -> float:
    """How long the naive way takes for a state (seconds) of what was recorded in ``run``."""
    kept = RunDirectory(run)
    plan = kept.case(kept.workloads()[0], request.model).plan
    states = [candidate.state for candidate in plan.search(SAMPLE * 4, 1, torn=False)]
    sample = Random(1).sample(states, min(SAMPLE, len(states)))
    floor, payload = plan.composer.floor_delta(), plan.composer.payload_since(0)
    image = ensure(request.image, print)
    world = ensure_world(image, program.packages, print)
    with Hypervisor.open() as hypervisor, agent_in(hypervisor, image, Clock.REAL, world) as agent:
        put_program(agent, program)
        session = Session(agent, request.configuration, plan.base, floor, payload)
        began = time.monotonic()
        for state in sample:
            session.check_program([Checking(plan.composer.delta(state), b"")], payload, program.seconds)
        return (time.monotonic() - began) / len(sample)


if __name__ == "__main__":
    main()
