"""How a cluster scales: ``python bench/cluster.py RUN ... [--jobs 2] [--faster 10] [--workers 1,2,4,8]``.

Each RUN is the run directory of a probe (a column of a matrix, or a lot of a search). Together they are the matrix that
is measured, and their files are what its guests answer: a worker of this cluster starts no guest. It sleeps for as long
as the run took for each of its workloads, times the guests that did it side by side (``--jobs``), divided by
``--faster``, and gives back the files that the run has. All else is real: Dask's scheduler and workers (processes on
loopback), what travels, the judging, and what the machine that asks does; ``--faster`` leaves these as slow as they
are, so they weigh so many times as much as with guests.

It prints, for each number of workers, the time, how many times as fast as one worker that is, what the machine that
asks took of a processor, and the bytes that came back; then what a task and a message of progress cost the scheduler.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import dask
from distributed import Client, LocalCluster, get_worker

from bob.catalogue.request import Host
from bob.judge.again import judge_again
from bob.progress import Silent
from bob.run import dask_workers, matrix
from bob.run.parcels import Parcel, ParcelResult, new_in, packed, unpack
from bob.run.parts import RunPart
from bob.store.matrix_directory import MatrixDirectory
from bob.store.run_directory import RunDirectory, now

RUNS, JOBS, FASTER = "BOB_BENCH_RUNS", "BOB_BENCH_JOBS", "BOB_BENCH_FASTER"
"""What a worker is told: the directory with the runs, and how long it sleeps."""
TASKS, MESSAGES = 2000, 2000


def seconds_of(run: RunDirectory) -> float:
    """How long a guest took for a workload of a run, on average: from its first file to its last one."""
    times = [path.stat().st_mtime for folder in run.workloads() for path in folder.iterdir()]
    return (max(times) - min(times)) * int(os.environ[JOBS]) / len(run.workloads())


def recorded(parcel: Parcel) -> ParcelResult:
    """In a worker: what the run has of a parcel, after the time that it took. A whole column is judged in earnest."""
    run = RunDirectory(Path(os.environ[RUNS]) / parcel.key.partition("-from-")[0])
    about, address = run.about(), get_worker().address
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / "run"
        unpack(parcel.given, here)
        workloads = run.planned()
        numbers = range(len(workloads)) if parcel.numbers is None else parcel.numbers
        left = [run.folder(number, workloads[number]).name for number in numbers]
        left = [name for name in left if not (here / "workloads" / name / "observed.json").exists()]
        time.sleep(len(left) * seconds_of(run) / float(os.environ[FASTER]))
        unpack(packed(run.path, lambda path: path.parts[0] == "bases" or not {*path.parts}.isdisjoint(left)), here)
        if parcel.numbers is None:
            made = RunDirectory(here)
            (here / "witnesses").mkdir(exist_ok=True)
            made.note(environment=about["environment"], finished=now())
            judge_again(here)
        return ParcelResult(
            new_in(here, parcel.given), about["environment"], worker=address, seconds=time.monotonic() - began
        )


def idle(number: int) -> int:
    """A task that does nothing."""
    return number


def talk(messages: int) -> None:
    """A task that tells of progress, as one with a lot to tell does."""
    worker = get_worker()
    for number in range(messages):
        worker.log_event("bob-bench", ["lot-001", "a" * 32, worker.address, [["observed", f"workload {number}", 20]]])


class Counting(dask_workers.Workers):
    """The workers, with a count of what came back."""

    came: list[int] = []  # noqa: RUF012

    def finished(self) -> tuple[RunPart, ParcelResult]:
        """The next part, counted."""
        part, piece = super().finished()
        self.came.append(len(piece.files))
        return part, piece


def matrix_of(runs: Sequence[Path], folder: Path) -> MatrixDirectory:
    """A new matrix that asks what ``runs`` were asked."""
    abouts = [RunDirectory(run).about() for run in runs]
    names = [f"column-{number:02d}" for number in range(len(runs))]
    about = {"id": folder.name, "started": abouts[0]["started"], "bob": abouts[0]["bob"], "set": "bench", "about": ""}
    directory = MatrixDirectory.create(folder, about, names)
    for place, one in zip(directory.folders, abouts, strict=True):
        asked = {key: value for key, value in one.items() if key not in ("environment", "finished")}
        RunDirectory.create(place, asked)
    return directory


def measured(runs: Sequence[Path], number: int, scratch: Path) -> tuple[float, float, list[int]]:
    """Seconds, processor seconds of this process, and the bytes of each piece, with so many workers."""
    Counting.came = []
    with LocalCluster(
        n_workers=number,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        local_directory=str(scratch / "scratch"),
        silence_logs=50,
        scheduler_kwargs={"dashboard": False},
    ) as made:
        directory = matrix_of(runs, scratch / f"run-{number}")
        began, before = time.monotonic(), time.process_time()
        matrix.spread(directory, Host(scheduler=made.scheduler_address), Silent())
        return time.monotonic() - began, time.process_time() - before, list(Counting.came)


def of_the_scheduler(scratch: Path) -> tuple[float, float]:
    """What a task, and a message of progress, cost scheduler, client and network together: seconds each."""
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            local_directory=str(scratch / "scratch"),
            silence_logs=50,
        ) as made,
        Client(made.scheduler_address, set_as_default=False) as client,
    ):
        began = time.monotonic()
        futures = [client.submit(idle, number, pure=False) for number in range(TASKS)]
        client.gather(futures)
        each = (time.monotonic() - began) / TASKS
        heard: list[object] = []
        client.subscribe_topic("bob-bench", heard.append)
        began = time.monotonic()
        client.submit(talk, MESSAGES, pure=False).result()
        while len(heard) < MESSAGES:
            time.sleep(0.01)
        return each, (time.monotonic() - began) / MESSAGES


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--faster", type=float, default=10.0)
    parser.add_argument("--workers", default="1,2,4,8")
    asked = parser.parse_args()
    dask.config.set({"distributed.comm.timeouts.connect": "120s"})  # many processes start at once
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "runs").mkdir()
        for number, run in enumerate(asked.runs):
            (scratch / "runs" / f"column-{number:02d}").symlink_to(run.resolve())
        os.environ |= {RUNS: str(scratch / "runs"), JOBS: str(asked.jobs), FASTER: str(asked.faster)}
        runs = [RunDirectory(run) for run in asked.runs]
        count = sum(len(run.workloads()) for run in runs)
        slept = sum(seconds_of(run) * len(run.workloads()) for run in runs)
        print(f"{count} workloads in {len(runs)} columns, {slept:.0f} s of guests, {asked.faster:g} times as fast")
        matrix.workers.__wrapped__.__globals__["Workers"] = Counting  # type: ignore[attr-defined]
        dask_workers.work = recorded
        print("workers  seconds  times as fast  processor s here  parcels  MB back  KB a workload")
        first = None
        for number in map(int, asked.workers.split(",")):
            seconds, here, came = measured(asked.runs, number, scratch)
            first = first or seconds
            print(
                f"{number:7}  {seconds:7.1f}  {first / seconds:13.2f}  {here:16.1f}  {len(came):7}"
                f"  {sum(came) / 1e6:7.1f}  {sum(came) / 1e3 / count:13.1f}",
                flush=True,
            )
        task, message = of_the_scheduler(scratch)
        print(f"a task costs {1e3 * task:.2f} ms, a message of progress {1e3 * message:.2f} ms")
        print(f"memory here, at the most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
