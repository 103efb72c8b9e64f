"""The work of a run on the workers of a Dask cluster. A *part* of a run is a piece of its work, such as some of its
workloads. A *parcel* is a part together with the files that a worker needs for it (bob/run/parcels.py). bob sends the
parcels to the workers, and collects the results. If bob loses a worker, it sends the worker's parcel to another worker.
A worker starts a process for each parcel (bob/run/parcel_process.py), and sends messages about its progress as events
of Dask. All workers of a run must have the same environment, for example the same kernel and QEMU. bob does not use
other workers."""

import json
import pickle
import queue
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bob.errors import BobError, GuestError
from bob.progress import Earlier, Progress
from bob.run.parcels import OF_A_CONFIGURATION, Parcel, ParcelResult, keep, new_in, parcel_of
from bob.run.parts import PartedRun, PartEnd, RunPart
from bob.run.scheduler import CONNECT_SECONDS, connected
from bob.run.timings import USUAL_SHARE
from bob.store.run_directory import RunDirectory
from bob.text import plural

TRIES = 3  # after so many failures of a parcel, on any workers, bob gives it up
TELL_SECONDS = 2.0  # between two progress messages of a worker, since each passes the scheduler
END_SECONDS = 60.0  # a worker has this time to end its guests and to send back finished work
FIT_SECONDS = 20.0  # bob waits this long for another worker if the present workers cannot do a parcel
_LOOK_SECONDS = 0.5
_PROCESS = (sys.executable, "-m", "bob.run.parcel_process")
_STOPPED: set[str] = set()  # in a worker's process: the runs that were stopped

ProgressSink = Callable[[Sequence[Sequence[str | int]]], None]
ParcelEvent = tuple[str, str, str, Sequence[Sequence[str | int]]]  # parcel, attempt, worker's address, Progress's calls


def work(parcel: Parcel) -> ParcelResult:
    """Do the work of ``parcel`` in a new process. Dask calls this function in a worker."""
    from distributed import get_worker

    worker = get_worker()
    task, attempt = worker.get_current_task(), uuid.uuid4().hex

    def is_wanted() -> bool:
        known = worker.state.tasks.get(task)
        return parcel.run not in _STOPPED and known is not None and known.state in ("executing", "long-running")

    def tell(words: Sequence[Sequence[str | int]]) -> None:
        worker.log_event(_topic(parcel.run), [parcel.key, attempt, worker.address, list(map(list, words))])

    tell(())
    with tempfile.TemporaryDirectory(prefix="bob-parcel-", dir=worker.local_directory) as folder:
        return replace(in_a_process(parcel, Path(folder), tell, is_wanted), worker=worker.address)


def in_a_process(
    parcel: Parcel, folder: Path, tell: ProgressSink, is_wanted: Callable[[], bool], process: Sequence[str] = _PROCESS
) -> ParcelResult:
    """Do the work of ``parcel`` in a new process. ``process`` is the command that starts the process, and ``folder`` is
    an empty folder for its files. Pass the progress messages of the process to ``tell``. When ``is_wanted`` returns
    False, end the process."""
    if not is_wanted():
        return ParcelResult(b"", stopped=True)
    began = time.monotonic()
    (folder / "parcel").write_bytes(pickle.dumps(parcel))
    with (
        (folder / "said").open("wb") as said,
        subprocess.Popen(
            [*process, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
        ) as running,
    ):
        try:
            _watched(running, tell, is_wanted)
        finally:
            running.kill()  # in case it still runs; its reaper then ends its guests
    try:
        piece: ParcelResult = pickle.loads((folder / "answer").read_bytes())
    except (OSError, EOFError):
        lines = (folder / "said").read_text(errors="replace").splitlines()
        last = next((line for line in reversed(lines) if line.strip()), f"it ended with {running.returncode}")
        piece = ParcelResult(b"", stopped=not is_wanted(), broke=f"bob failed in a worker: {last}")
    return replace(piece, files=new_in(folder / "run", parcel.given), seconds=time.monotonic() - began)


def _watched(running: subprocess.Popen[str], tell: ProgressSink, is_wanted: Callable[[], bool]) -> None:
    told: queue.SimpleQueue[list[str | int]] = queue.SimpleQueue()
    assert running.stdin is not None and running.stdout is not None

    def read(lines: Iterator[str]) -> None:
        for line in lines:
            told.put(json.loads(line))

    reader = threading.Thread(target=read, args=[running.stdout], daemon=True)
    reader.start()
    last, deadline = time.monotonic(), None
    while True:
        with suppress(subprocess.TimeoutExpired):
            running.wait(_LOOK_SECONDS)
            break
        now = time.monotonic()
        if deadline is None and not is_wanted():
            deadline = now + END_SECONDS
            running.stdin.close()
        if deadline is not None and now > deadline:
            running.kill()
        if now - last >= TELL_SECONDS:
            tell(_together(told))
            last = now
    reader.join()
    tell(_together(told))


def _together(told: queue.SimpleQueue[list[str | int]]) -> list[list[str | int]]:
    """Return the progress messages that have come so far. Replace several messages about the crash states of one
    workload by one message with the sum of their counts."""
    words: list[list[str | int]] = []
    states: Counter[str] = Counter()
    with suppress(queue.Empty):
        while True:
            kind, title, *numbers = told.get_nowait()
            if kind == "observed":
                states[str(title)] += int(numbers[0])
            else:
                words.append([kind, title, *numbers])
    observed: list[list[str | int]] = [["observed", title, count] for title, count in states.items()]
    return [*observed, *words]


def _topic(run: str) -> str:
    return f"bob-{run}"


def _end(run: str) -> None:
    _STOPPED.add(run)


@dataclass(slots=True)
class _HandedPart:
    """A part of a run that bob has handed to Dask. ``may`` names the workers that can do the part. None stands for all
    workers. ``tries`` counts how often the part has failed."""

    part: RunPart
    parcel: Parcel
    future: Any = None
    may: list[str] | None = None
    tries: int = 0
    attempt: str = ""
    worker: str = ""
    states: Counter[str] = field(default_factory=Counter)
    recorded: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)


class Workers:
    """The workers of a cluster, for a single run."""

    def __init__(self, client: Any, run: str, environment: Mapping[str, str] | None, progress: Progress) -> None:
        self._client, self._run, self._progress = client, run, progress
        self._environment = environment and _shared(environment)
        self._handed: dict[str, _HandedPart] = {}
        self._ended: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._unfit: dict[str, str] = {}
        self._lock = threading.Lock()
        self._did_any = False
        client.subscribe_topic(_topic(run), self._told)

    @property
    def places(self) -> int:
        """The number of parcels that the present workers can do at the same time."""
        counts: Mapping[str, int] = self._client.nthreads()
        return max(1, sum(counts.values()))

    @property
    def in_hand(self) -> int:
        return len(self._handed)

    def do(self, parts: PartedRun) -> None:
        """Let the workers do all parts of a run. Return when all parts have ended and no further part comes from
        ``parts``. Before this method raises an error, it writes the finished work of each part into that part's run
        directory. Raise GuestError if no present worker can do a part. Raise also the errors of
        :meth:`bob.run.parts.PartedRun.take`."""
        try:
            while True:
                for part in parts.ready(self):
                    self._submit(_HandedPart(part, parcel_of(part, self._run)))
                if not self._handed:
                    return
                part, piece = self.finished()
                keep(piece, part)
                parts.take(part, PartEnd(piece.seconds, piece.refusal, piece.failure))
        except BaseException:
            for part, piece in self._stop():
                with suppress(BobError):  # only the first error is raised
                    keep(piece, part)
            raise

    def finished(self) -> tuple[RunPart, ParcelResult]:
        """Wait until a part ends, and return this part with its result. If bob gave the part up, the result is a
        failure. Raise GuestError if no worker can do any part."""
        while True:
            try:
                key, future = self._ended.get(timeout=5.0)
            except queue.Empty:
                self._hand_again()
                continue
            handed = self._handed.get(key)
            if handed is None or handed.future is not future:
                continue
            piece = self._piece(handed, future)
            if piece is None:
                continue
            if piece.failure is None:
                self._did_any = True
            elif not self._is_given_up(handed, piece.failure, piece):
                self._submit(handed)
                continue
            del self._handed[key]
            future.release()
            return handed.part, piece

    def _stop(self) -> Iterator[tuple[RunPart, ParcelResult]]:
        """Have all workers end their guests. Each worker then sends back what it has finished of its part. Yield each
        part whose result arrives within END_SECONDS, with this result."""
        self._progress.step("waiting for the workers to end their guests")
        with suppress(Exception):  # if the cluster is gone, keep the finished work that is here
            self._client.run(_end, self._run, on_error="ignore")
        deadline = time.monotonic() + END_SECONDS
        while self._handed and time.monotonic() < deadline:
            # Look at the futures, not at the queue: the run may have ended just after an item left the queue.
            for key, handed in list(self._handed.items()):
                if handed.future is None or handed.future.status != "pending":
                    del self._handed[key]
                if handed.future is not None and handed.future.status == "finished":
                    with suppress(Exception):  # its worker may be gone meanwhile
                        yield handed.part, handed.future.result(timeout=CONNECT_SECONDS)
            time.sleep(_LOOK_SECONDS / 5)

    def _submit(self, handed: _HandedPart) -> None:
        if self._environment is not None:
            known = {**self._environment, **(handed.parcel.environment or {})}
            handed.parcel = replace(handed.parcel, environment=known)
        handed.may = None
        if self._unfit:
            deadline = time.monotonic() + FIT_SECONDS
            while not (fit := self._fit()) and time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)  # a new worker may replace a lost one
            handed.may = fit
            if not handed.may:
                raise GuestError(
                    f"no worker can do it: {'; '.join(dict.fromkeys(self._unfit.values()))}",
                    hint="`bob doctor` on the worker's machine says what it lacks",
                )
        key = f"bob-{self._run}-{handed.parcel.key}-{uuid.uuid4().hex[:8]}"
        self._handed[handed.parcel.key] = handed
        future = handed.future = self._client.submit(
            work, handed.parcel, key=key, pure=False, workers=handed.may, allow_other_workers=False
        )
        future.add_done_callback(lambda ended, key=handed.parcel.key: self._ended.put((key, ended)))

    def _fit(self) -> list[str]:
        return [address for address in self._client.nthreads() if address not in self._unfit]

    def _piece(self, handed: _HandedPart, future: Any) -> ParcelResult | None:
        from distributed.scheduler import KilledWorker

        try:
            piece: ParcelResult = future.result(timeout=END_SECONDS)
        except KilledWorker:
            handed.tries = TRIES  # Dask has tried several workers already
            return ParcelResult(b"", broke="several workers in a row were lost while they did this")
        except TimeoutError:
            future.add_done_callback(lambda ended, key=handed.parcel.key: self._ended.put((key, ended)))
            return None
        except Exception as error:  # the worker lacks bob, or has another version
            return ParcelResult(b"", broke=f"{type(error).__name__}: {error}")
        if piece.unfit is None and piece.environment is not None:
            found = _shared(piece.environment)
            self._environment = self._environment or found
            if found != self._environment:
                differs = [f"{name} is {found[name]}" for name in found if found[name] != self._environment.get(name)]
                return replace(piece, files=b"", unfit=f"its {', '.join(differs)}, unlike the other workers'")
        return piece

    def _is_given_up(self, handed: _HandedPart, reason: str, piece: ParcelResult) -> bool:
        self._undo(handed)
        handed.tries += 1
        if piece.unfit is not None and piece.worker not in self._unfit:
            self._unfit[piece.worker] = reason
            self._progress.step(f"leaving out worker {piece.worker}: {reason}")
        if handed.tries < TRIES:
            return False
        if not self._did_any:
            hint = "each worker needs this version of bob-prober[cluster], and what `bob doctor` asks for"
            raise GuestError(f"no worker can do it: {reason}", hint=hint)
        return True

    def _hand_again(self) -> None:
        there = set(self._client.nthreads())
        for handed in list(self._handed.values()):
            if handed.may is not None and not there & set(handed.may) and handed.future.status == "pending":
                handed.future.cancel()
                self._undo(handed)
                self._submit(handed)

    def _told(self, event: tuple[float, ParcelEvent]) -> None:
        """Take a progress message of a worker. Dask calls this in a thread of its own."""
        key, attempt, worker, words = event[1]
        with self._lock:
            handed = self._handed.get(key)
            if handed is None:
                return
            if handed.attempt and handed.attempt != attempt:
                self._progress.step(f"worker {handed.worker} was lost; {worker} starts {handed.parcel.title} again")
                self._undo(handed)
            handed.attempt, handed.worker = attempt, worker
            for kind, title, *numbers in words:
                self._pass_on(handed, str(kind), str(title), list(map(int, numbers)))

    def _pass_on(self, handed: _HandedPart, kind: str, title: str, numbers: Sequence[int]) -> None:
        match kind:
            case "step":
                self._progress.step(f"{handed.worker}: {title}")
            case "observed" if title not in handed.finished:
                handed.states[title] += numbers[0]
                self._progress.observed(title, numbers[0])
            case "recorded" if title not in handed.recorded:
                handed.recorded.add(title)
                self._progress.recorded(title)
            case "finished" if title not in handed.finished:
                handed.finished.add(title)
                self._progress.finished(title, numbers[0])

    def _undo(self, handed: _HandedPart) -> None:
        """Correct the count of observed crash states in the progress after a failed attempt at a part. Subtract the
        crash states of unfinished workloads, since the next attempt will count them again. The next attempt skips
        finished workloads, so their crash states stay in the count."""
        handed.attempt = ""
        for title in [title for title in handed.states if title not in handed.finished]:
            self._progress.observed(title, -handed.states.pop(title))


def _shared(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name != OF_A_CONFIGURATION}


@contextmanager
def workers(address: str, run: str, begun: Sequence[RunDirectory], progress: Progress) -> Iterator[Workers]:
    """Open the cluster whose scheduler has this ``address``, for the run with the identity ``run``. ``begun`` has the
    run directories that earlier work on this run made. If one of them names the environment of the work, all workers
    must have that environment. Raise MissingProgramError if dask.distributed is not installed, and UsageError if no
    scheduler answers."""
    environment = next((found for one in begun if (found := one.about().get("environment"))), None)
    with connected(address) as client:
        if not client.nthreads():
            progress.step(f"waiting for workers: `dask worker {address} --nthreads 1` starts one")
            client.wait_for_workers(1)
        them = Workers(client, run, environment, progress)
        progress.step(
            f"{plural(len(client.nthreads()), 'worker')} at {address}, for {plural(them.places, 'parcel')} at a time"
        )
        progress.expected(them.places, Earlier(None, USUAL_SHARE))
        yield them
