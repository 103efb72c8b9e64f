"""How long the work of bob takes on one machine, for those on which it was never timed.

``usual_timings.py RUN ... > bob/run/usual_timings.json``: of finished runs of ``bob matrix`` by two guests, on a
machine that did nothing else, what each configuration took, and which part of that was recording. The times of the
files of a run directory say when what was done. No guest is needed.

The first run counts most. Of a later one only the other configurations are taken, as long as they would have taken with
the workloads of the first: what both have tells how much dearer one workload is than the other (the median).

A file such as reports/reference/apps-linux-6.1/apps.json.xz counts, too: of each program with a budget, what its
windows took with all recordings, by its first and its last second.

One guest records a configuration from its first workload to its last, while the other observes the one before. So what
recording takes is known, and the rest of what both did until a configuration was observed is what observing took.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from statistics import median

from bob.catalogue.request import request_from_json
from bob.report.saved import load_every
from bob.run.timings import SCHEMA, USUAL_SHARE, TimedWork, Timing
from bob.store.matrix_directory import MatrixDirectory

GUESTS = 2


def times(folders: list[Path], name: str) -> list[float]:
    """When the file ``name`` of each of the ``folders`` was written (seconds)."""
    return sorted((folder / name).stat().st_mtime for folder in folders)


def timings_of(run: Path) -> list[Timing]:
    """What each configuration of a run took, in the order in which they were done."""
    found: list[Timing] = []
    columns = MatrixDirectory(run).columns()
    recorded = [times(column.workloads(), "recorded.json") for column in columns]
    observed = [times(column.workloads(), "observed.json") for column in columns]
    recording = [(one[-1] - one[0]) * len(one) / max(1, len(one) - 1) for one in recorded]
    before = recorded[0][0] - recording[0] / len(recorded[0])
    for number, column in enumerate(columns):
        request = request_from_json(column.about()["request"])
        both = GUESTS * (observed[number][-1] - before) - sum(recording[number + 1 : number + 2])
        if number > 0:
            both += recording[number]
        work = TimedWork.of("probe", request, GUESTS, len(recorded[number]))
        found.append(Timing(work, round(both / GUESTS, 1), round(recording[number] / both, 3)))
        before = observed[number][-1]
    return found


def together(runs: list[list[Timing]]) -> list[Timing]:
    """All of the first run, and of the others what it does not have, scaled to its workloads."""
    first, *others = runs
    found = list(first)
    known = {one.work.configuration: one for one in first}
    for run in others:
        both = [(known[one.work.configuration], one) for one in run if one.work.configuration in known]
        factor = median(each(there) / each(one) for there, one in both)
        for one in run:
            if one.work.configuration not in known:
                work = replace(one.work, workloads=first[0].work.workloads)
                seconds = each(one) * factor * work.workloads
                # To record a workload takes as long, whatever it takes to observe it.
                found.append(Timing(work, round(seconds, 1), round(min(0.9, one.recording / factor), 3)))
    return found


def of_programs(file: Path) -> list[Timing]:
    """What the windows of each program took that was done in one run. The runs used both processors."""
    found: list[Timing] = []
    for saved in load_every(file):
        run, subjects = saved.result.run, saved.result.file_systems
        windows = sum(one.checks.windows for one in subjects if one.checks is not None)
        if run.budget:  # 0: several runs with budgets of their own, put together
            took = datetime.fromisoformat(run.finished) - datetime.fromisoformat(run.started)
            what = f"{saved.result.program_name} on {len(subjects)} file systems and paces"
            work = TimedWork("app", what, "debian-bookworm", GUESTS, run.budget, windows)
            found.append(Timing(work, took.total_seconds(), USUAL_SHARE))
    return found


def each(timing: Timing) -> float:
    """What one workload took (seconds)."""
    return timing.seconds / timing.work.workloads


if __name__ == "__main__":
    runs = [Path(run) for run in sys.argv[1:]]
    every = together([timings_of(run) for run in runs if run.is_dir()])
    every += [timing for file in runs if file.is_file() for timing in of_programs(file)]
    lines = ",\n".join(json.dumps(asdict(one)) for one in every)
    print(f'{{"schema": "{SCHEMA}", "timings": [\n{lines}\n]}}')
