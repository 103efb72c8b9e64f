"""The process that does a parcel (a part of a run, sent to a worker of a cluster). The command is ``python -m
bob.run.parcel_process FOLDER``; FOLDER has the pickled ``parcel``. In FOLDER, the process makes the run directory
``run``, and at last the file ``answer``, a pickled ParcelResult. It writes its progress to stdout, as lines with one
JSON array each. The process and its guests end early at SIGTERM or when stdin is closed. If the worker dies, stdin is
closed, too. Finished work stays in FOLDER."""

import json
import os
import pickle
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from bob.answer.result import Environment
from bob.catalogue.request import Host, ProbeRequest
from bob.errors import BobError, UsageError
from bob.guest.capacity import check_jobs
from bob.image import check_kernel
from bob.memory import give_back_what_is_freed
from bob.progress import Silent
from bob.run import prober
from bob.run.agents import guests_of, image_called
from bob.run.parcels import Parcel, ParcelResult, unpack
from bob.run.pipeline import Pipeline, Task
from bob.run.program_parts import asked_of, is_program
from bob.run.programs import go_on
from bob.store.run_directory import FOLDERS, RunDirectory, request_of
from bob.version import __version__


class ParcelProgress(Silent):
    """A writer of the progress as lines of JSON, which the worker reads. It leaves out what concerns a whole run, for
    example how many workloads the run will have."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._lock = stream, threading.Lock()

    def _tell(self, *words: str | int) -> None:
        with self._lock, suppress(OSError, ValueError):
            self._stream.write(json.dumps(words) + "\n")
            self._stream.flush()

    def step(self, text: str) -> None:
        self._tell("step", text)

    def recorded(self, workload: str) -> None:
        self._tell("recorded", workload)

    def observed(self, workload: str, states: int) -> None:
        self._tell("observed", workload, states)

    def finished(self, workload: str, unused: int) -> None:
        self._tell("finished", workload, unused)


def main(folder: Path) -> int:
    """Do the parcel in ``folder``, and write the answer into ``folder``. Return the exit code 0."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # all other output goes to stderr
    threading.Thread(target=_until_left_alone, daemon=True).start()
    give_back_what_is_freed()
    parcel: Parcel = pickle.loads((folder / "parcel").read_bytes())
    answer = done(parcel, folder / "run", ParcelProgress(told))
    (folder / "answer").write_bytes(pickle.dumps(answer))
    return 0


def done(parcel: Parcel, folder: Path, progress: ParcelProgress) -> ParcelResult:
    """Do ``parcel`` in the new folder ``folder``. Return the result. Its ``files`` are empty, since the worker takes
    the files from the folder."""
    for name in FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    unpack(parcel.given, folder)
    if parcel.bob != __version__:
        return ParcelResult(b"", unfit=f"it has bob {__version__}, but the run is of bob {parcel.bob}")
    run, host = RunDirectory(folder), Host(parcel.connect, parcel.jobs)
    environment: dict[str, str] | None = None
    try:
        check_jobs(parcel.jobs)
        request = asked_of(run, host).request if is_program(run) else request_of(run, host)
        environment = asdict(_environment(request, progress))
        if differs := _differences(parcel.environment or {}, environment):
            return ParcelResult(b"", environment, unfit=f"its {differs}")
        try:
            if is_program(run):
                go_on(run, host, progress)
            elif parcel.numbers is None:
                prober.resume(folder, host, progress)
            else:
                _some(run, request, parcel.numbers, progress)
        except UsageError as refusal:
            return ParcelResult(b"", environment, refusal=(refusal.message, refusal.hint))
    except KeyboardInterrupt:
        return ParcelResult(b"", environment, stopped=True)
    except BobError as error:  # the fault is in this machine or in a guest on it
        return ParcelResult(b"", environment, unfit=error.message)
    return ParcelResult(b"", environment)


def _environment(request: ProbeRequest, progress: ParcelProgress) -> Environment:
    image = image_called(request.image, progress.step, request.host.connect)
    check_kernel(image)
    with guests_of(image, request.host.connect, progress.step) as hypervisor:
        return prober.environment_of(hypervisor, image, request)


def _differences(wanted: Mapping[str, str], found: Mapping[str, str]) -> str:
    names = [name for name in wanted if found.get(name) != wanted[name]]
    return ", ".join(f"{name} is {found.get(name)}, but the run has {wanted[name]}" for name in names)


def _some(run: RunDirectory, request: ProbeRequest, numbers: tuple[int, ...], progress: ParcelProgress) -> None:
    image = prober.asked_image(request, progress)
    workloads = tuple(run.planned())
    only, evidence = frozenset(numbers), prober.evidence_of(request)
    task = Task(request.configuration, request.model, request.effort, run, workloads, only, evidence)
    with (
        guests_of(image, request.host.connect, progress.step) as hypervisor,
        Pipeline(hypervisor, image, [task], progress, request.host.jobs or 1) as pipeline,
    ):
        for number in sorted(numbers):
            pipeline.result(0, number)  # the run directory keeps the result


def _until_left_alone() -> None:
    """Wait until the worker closes standard input, and then interrupt this process. If the worker dies, standard input
    is closed, too."""
    with suppress(OSError, ValueError):
        while os.read(0, 4096):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
