"""How fast a program's crash states become known: ``python bench/app.py [PROGRAM] [FS]`` and ``... --models``.

By default sqlite-rollback on ext4. Bob explores it with one guest. The naive way mounts each state and runs the checker
on it; it is tried on SAMPLE states, in one guest too, in turns with what bob does: before and after. Two ratios are
told: one for all crash states that are known, torn ones too, and one that counts whole ones only, as if the naive way
had no need of others.

With ``--models`` the program is held against the model that promises least: how many states are made and told apart
in a second, and how many the checker looks at, on the host or (``--checks guest``) over two guests. Beside that stands
the floor: the same checker run by a shell in a loop, on one tree, in one guest. With ``--puts N`` the program is a
LevelDB that puts N keys, each with sync, and tells each. Seconds and memory are those of this process; the guests are
processes of QEMU beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

from bob.apm.micro import workings
from bob.apm.model_graph import graph_under
from bob.apm.model_states import ModelState, ModelStates
from bob.apm.named import EVERY, named_models
from bob.catalogue.request import CheckPlace, Host, ProbeRequest
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock
from bob.image import Image, ensure, ensure_world
from bob.judge.reliance import Explaining
from bob.observe.observation import Node
from bob.observe.session import Session
from bob.observe.tree_builder import TreeBuilder
from bob.program.answer import CheckerRun
from bob.program.folder import load, shipped_programs
from bob.program.program import CHECK, Program
from bob.program.transcript import ProgramCase
from bob.progress import Silent
from bob.record.recorder import put_program
from bob.report.counts import of_model
from bob.run.agents import KeptGuests, agent_in
from bob.run.pool import ProgramGuests
from bob.run.program_models import hold_against
from bob.run.program_protocol import both_ends, protocol_of
from bob.run.program_recording import record_program_run, validate_checker
from bob.run.programs import try_program
from bob.store.run_directory import RunDirectory
from bob.subject import configuration
from bob.text import compact

SAMPLE = 40
"""So many states are mounted and checked one by one, each time."""


MADE = 20_000
"""So many states of a model are made, at most, to see how fast that is."""
LOOPS = 20
"""So often the checker is run by hand."""


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("program", nargs="?", default="sqlite-rollback")
    parser.add_argument("fs", nargs="?", default="ext4")
    parser.add_argument("--models", action="store_true")
    parser.add_argument("--puts", type=int, default=0)
    parser.add_argument("--budget", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--checks", type=CheckPlace, default=CheckPlace.AUTO, help="auto, host or guest")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = load(_putting(Path(folder), asked.puts) if asked.puts else shipped_programs()[asked.program])
        host = Host(None, asked.jobs, checks=asked.checks)
        request = ProbeRequest(configuration(asked.fs), budget=asked.budget, host=host)
        if asked.models:
            _models(program, request)
        else:
            _explore(program, replace(request, host=Host(None, 1), budget=ProbeRequest(request.configuration).budget))


def _explore(program: Program, request: ProbeRequest) -> None:
    """Beside the naive way."""
    with tempfile.TemporaryDirectory() as folder:
        _answers, warm = try_program(program, [request], Path(folder) / "warm", Silent())  # images, saved guests
        naive = [_naive(program, request, warm)]
        began = time.monotonic()
        answers, _path = try_program(program, [request], Path(folder) / "run", Silent())
        seconds = time.monotonic() - began
        [result] = answers.subjects
        naive.append(_naive(program, request, warm))
    assert result.checks is not None
    states, per_state = result.answer.states, sum(naive) / len(naive)
    whole = states.explored_writes or 0
    print(f"legal states        {compact(states.legal_sectors)}")
    print(f"known states        {compact(states.explored)}")
    print(f"legal whole states  {states.legal_writes:,}")
    print(f"known whole states  {whole:,}")
    print(f"mounts              {states.mounted:,}")
    print(f"distinct outcomes   {result.checks.trees:,}")
    print(f"checks              {result.checks.runs:,}")
    print(f"seconds             {seconds:.1f}")
    print(f"naive, a state      {per_state * 1000:.0f} ms ({', '.join(f'{one * 1000:.0f}' for one in naive)})")
    print(f"times faster        {compact(states.explored * int(per_state * 1e6) // int(seconds * 1e6))}")
    print(f"  whole ones only   {per_state * whole / seconds:.1f}")


def _naive(program: Program, request: ProbeRequest, run: Path) -> float:
    """How long the naive way takes for a state (seconds) of what was recorded in ``run``."""
    kept = RunDirectory(run)
    plan = kept.case(kept.workloads()[0], request.configuration, request.model).plan
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
            session.check_program([CheckerRun(plan.composer.delta(state), b"")], payload, program.seconds)
        return (time.monotonic() - began) / len(sample)


def _models(program: Program, request: ProbeRequest) -> None:
    """Against the model that promises least, of the built-in ones and those that bob ships."""
    began, watch = time.monotonic(), _Watch()
    model = min(named_models([EVERY]), key=lambda one: len(one.promised))
    image = ensure(request.image, print)
    with Hypervisor.open() as hypervisor, KeptGuests(hypervisor) as kept:  # as the command does
        guests = ProgramGuests(kept, image, watch)
        case = record_program_run(guests, program, request, stores=True)
        validate_checker(guests, case)
        recorded = time.monotonic() - began
        jobs = request.host.jobs or 1
        [found], _steps = hold_against(guests, case, request, [model], jobs, lambda _name: Explaining())
        seconds, peak = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        before, after = both_ends(guests, case)
        by_hand = _by_hand(hypervisor, image, case, after)
    again, _notes = protocol_of(case, before, after)
    asked = graph_under(again.workload, workings(again.history), model.promised)
    made, distinct, making = _made(ModelStates(asked, model.promised, again.outputs, MADE), lambda _tries, _state: None)
    _made_too, built, building = _made(ModelStates(asked, model.promised, again.outputs, MADE // 10), ModelStates.nodes)
    result, answer, checks = found.result.model, found.result.answer, found.result.checks
    assert result is not None and checks is not None
    print(
        f"program            {program.name}, {result.operations:,} operations, {result.micro_operations:,} of a model"
    )
    print(f"model              {model.name}")
    print(f"answer             {answer.verdict.value}{f', {answer.reason}' if answer.reason else ''}")
    print(f"states tried       {result.tried:,}, {of_model(result)}")
    print(f"checks             {checks.runs:,}")
    print(f"seconds            {seconds:.0f}, of which recording {recorded:.0f}")
    print(f"peak memory        {peak:.0f} MB on the host, without QEMU")
    print(f"states a second    {made / making:,.0f} made and told apart, {made:,} of them, {distinct:,} distinct")
    print(f"  trees built too  {built / building:,.0f}")
    print(f"checks a second    {watch.rate:.1f}, {request.host.jobs} side by side, without controls")
    print(f"  by hand, in one  {1 / by_hand:.1f}, {by_hand * 1000:.0f} ms each")
    print(f"notes              {'; '.join(found.result.notes)}")


def _made(tries: ModelStates, look: Callable[[ModelStates, ModelState], object]) -> tuple[int, int, float]:
    """How many states were made, how many of them are distinct, and in how many seconds."""
    start, distinct = time.monotonic(), 0
    for state in tries:
        look(tries, state)
        distinct += 1
    return tries.tried, distinct, time.monotonic() - start


def _by_hand(hypervisor: Hypervisor, image: Image, case: ProgramCase, after: Mapping[str, Node]) -> float:
    """How long the checker takes in a guest where a shell runs it in a loop (seconds), on what a clean end leaves."""
    program, world = case.work, ensure_world(image, case.work.packages, print)
    checker = next(file for file in program.files if file.path == CHECK)
    text = f"""#!/bin/sh
n=0
while [ $n -lt {LOOPS} ]; do "$(dirname "$0")/checker" "$1" "$2" || exit; n=$((n + 1)); done
"""
    files = [file for file in program.files if file is not checker]
    files += [replace(checker, path="checker"), replace(checker, data=text.encode())]
    tree = {path: node for path, node in after.items() if path != "/"}
    with agent_in(hypervisor, image, Clock.REAL, world) as agent:
        put_program(agent, replace(program, files=tuple(files)))
        builder = TreeBuilder(agent, after.get("/", Node("directory")))
        asked = [CheckerRun(tree, case.transcript.output)]
        builder.check(asked, program.seconds)
        start = time.monotonic()
        builder.check(asked, program.seconds)
        return (time.monotonic() - start) / LOOPS


class _Watch(Silent):
    """Sees how fast the checker's answers come in: the first ones, before which guests start, are not counted."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []

    def observed(self, workload: str, states: int) -> None:
        """Some answers came in."""
        self._seen.append((time.monotonic(), states))

    @property
    def rate(self) -> float:
        """Answers a second."""
        if len(self._seen) < 2:
            return 0
        (first, _states), *_more, (last, _last) = self._seen
        return sum(states for _at, states in self._seen[1:]) / (last - first)


def _putting(folder: Path, puts: int) -> Path:
    """A program in ``folder`` that is like the LevelDB that bob ships, but for ``puts`` puts."""
    like = os.path.relpath(shipped_programs()["leveldb"], folder)
    about = f'about = "LevelDB, {puts} puts, each with sync and told"'
    declared = f'{about}\nlike = {json.dumps(like)}\npackages = ["python3-plyvel"]\nseconds = 1200\n'
    (folder / "app.toml").write_text(declared)
    for name, text in (("workload", _WORKLOAD), ("check", _CHECK)):
        (folder / name).write_text(text.replace("PUTS", str(puts)))
        (folder / name).chmod(0o755)
    return folder


_WORKLOAD = """#!/usr/bin/env python3
import plyvel

db = plyvel.DB("db")
for n in range(1, PUTS + 1):
    db.put(b"%04d" % n, b"%04d" % n * 375, sync=True)
    print(f"committed {n}", flush=True)
db.close()
"""
_CHECK = """#!/usr/bin/env python3
import sys

import plyvel

folder, told = sys.argv[1], open(sys.argv[2]).read()
try:
    db = plyvel.DB(f"{folder}/db", create_if_missing=False)
    found = dict(db.iterator(verify_checksums=True))
except plyvel.Error as error:
    print(f"cannot open: {error}")
    sys.exit(12)
there = [n for n in range(1, PUTS + 1) if b"%04d" % n in found]
if not {b"a0", b"b0"} <= set(found) or any(found[b"%04d" % n] != b"%04d" % n * 375 for n in there):
    print("what is there is damaged")
    sys.exit(11)
if there != list(range(1, len(there) + 1)):
    print("a put is there without one before it")
    sys.exit(11)
if len(there) < told.count("committed"):
    print("a put that was told is lost")
    sys.exit(10)
"""


if __name__ == "__main__":
    main()
