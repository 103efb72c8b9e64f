"""A pool of guests that do jobs. A *worker* is a thread that does jobs in a guest.

bob may lose a guest during a job, for example because the kernel panics. Another guest then begins the job again,
before all other jobs. If bob loses this guest, too, the job gives up. Each kind of job says what this means: for
example, the answer stays unknown, or a panic of the kernel is a finding. If bob itself fails at a job, the job also
gives up, and its guest ends, but other jobs go on. An error that would hit every job, such as a full disk, ends the
run.

Each worker runs the loop :meth:`Pool.done`. If there is only one worker, it may be the command's own thread. Otherwise
:meth:`Pool.start` starts a thread for each worker, and :meth:`Pool.stop` ends these threads. When a user stops a run,
guests may end before their workers notice. bob does not treat these guests as lost."""

import errno
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Generic, TypeVar

from bob.agent.client import Agent, AgentBroken, what_happened
from bob.agent.loss import GuestLost
from bob.errors import BobError, MalformedError, RecordingError
from bob.guest.spec import Clock
from bob.image import Image, ensure_world
from bob.program.program import Program
from bob.progress import Progress
from bob.run.agents import AnyGuests, agent_in, unshared

T = TypeVar("T")
R = TypeVar("R")
StateSink = Callable[[int], None]
"""A function that a job calls with the number of crash states done since its last call. It ends the job when the run is
stopped."""
Errand = Callable[[], None]  # work that a worker does without a guest of this queue


class LostGuest(Exception):
    """An error of a job that lost its guest, but already has a part of its answer. The message says how the guest was
    lost."""


class RunStopped(BaseException):
    """The run was stopped during a job."""


def clock_to_check(programs: Iterable[Program]) -> Clock:
    """Return the clock of guests where the checkers of ``programs`` run. It is virtual if one of the programs
    is a cluster of nodes. Then the time limits of elections do not depend on how busy the host is. Otherwise it is the
    real clock, which is faster."""
    return Clock.VIRTUAL if any(program.nodes for program in programs) else Clock.REAL


class Job:
    """Work for one guest. Messages contain the ``title`` of the job. If the guest is lost, they also contain the text
    ``when``, for example " while recording". If bob itself fails, they contain the text ``verb``, for example
    "recorded". ``first_loss`` says how the first guest for this job was lost, or is None if it was not lost. ``states``
    is the number of crash states that the present guest has tried for this job."""

    when = ""
    verb = "did"

    def __init__(self, title: str) -> None:
        self.title = title
        self.first_loss: str | None = None
        self.states = 0

    def do(self, agent: Agent, tell: StateSink) -> bool:
        """Do the job. Return whether the guest can do another job afterwards. If the guest was lost, raise GuestLost,
        AgentBroken or LostGuest."""
        raise NotImplementedError

    def give_up(self, error: Exception, reason: str, trace: str = "") -> None:
        """Record the failure of the job, for example as an unknown answer. ``reason`` says why it failed: the second
        guest was lost, too, or bob itself failed. If bob itself failed, ``trace`` is the traceback. A kind of job
        without a place to note a failure raises ``error``."""
        raise error


class Idle(Enum):
    """The answer of a queue to a worker that asks for a job while no job is ready. The answer says whether a job may
    still come."""

    WAIT = "wait"  # more jobs may come
    OVER = "over"  # no more jobs will come


class JobQueue:
    """A queue of jobs. The guests for these jobs have the ``clock`` (virtual or real). Unless ``world`` is None, it is
    a disk with a program's packages, and the guests have this disk. The pool calls ``begin`` with the agent of each new
    guest (bob's program in it), to prepare the guest. The pool holds its lock (the condition ``changed``) when it calls
    :meth:`next` and :meth:`put_back`."""

    def __init__(
        self,
        clock: Clock,
        jobs: Iterable[Job] = (),
        world: Path | None = None,
        begin: Callable[[Agent], None] = lambda _agent: None,
    ) -> None:
        self.clock, self.world, self.begin = clock, world, begin
        self._jobs = deque(jobs)

    def next(self, *, has_guest: bool) -> Job | Errand | Idle:
        """Return the next job for a worker. The result may also be an errand: a function that the worker must call, and
        that does not use the worker's guest. ``has_guest`` says whether the worker already has a guest."""
        return self._jobs.popleft() if self._jobs else Idle.OVER

    def put_back(self, job: Job) -> None:
        """Put ``job`` back into the queue, before all other jobs."""
        self._jobs.appendleft(job)


class Pool:
    """A pool of guests that does the jobs of a queue. The condition ``changed`` is notified when a job ends."""

    def __init__(self, guests: AnyGuests, image: Image, progress: Progress) -> None:
        self._guests, self._image, self._progress = guests, image, progress
        self.changed = threading.Condition()
        self.is_stopped = False
        self._failure: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._at_work = self._ended = 0

    def done(self, queue: JobQueue) -> Iterator[Job]:
        """As one worker, do jobs of ``queue`` in one guest until no more jobs will come. If the guest is lost, go on in
        another guest. Yield each job when it ends. Raise GuestLost or AgentBroken if two guests in a row are lost
        before they begin a job. Raise also any error that ends the run (:func:`ends_the_run`), and any error of
        :meth:`Job.give_up`."""
        agent: Agent | None = None
        with ExitStack() as guest:
            while (job := self._next(queue, has_guest=agent is not None)) is not Idle.OVER:
                if not isinstance(job, Job | Idle):
                    job()
                    continue
                agent = agent or self._begun(guest, queue)
                if isinstance(job, Idle):
                    continue
                has_ended, can_go_on = self._tried(job, agent, queue)
                if not can_go_on:
                    _let_go(guest, agent)
                    agent = None
                if has_ended:
                    yield job
                del job  # a job may be large

    def do_all(self, queue: JobQueue, jobs: int) -> None:
        """Do all jobs of ``queue`` in ``jobs`` guests side by side. Raise the errors of :meth:`done`."""
        try:
            self.start(queue, jobs)
            self.wait_until(lambda: self._ended == jobs)
        finally:
            self.stop()

    def start(self, queue: JobQueue, jobs: int) -> None:
        """Start ``jobs`` workers on ``queue``, each with a guest of its own. The caller must call :meth:`stop` in the
        end."""
        self._threads = [threading.Thread(target=self._work, args=[queue], name=f"worker {n + 1}") for n in range(jobs)]
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:  # on an interrupt here, the caller's ``with`` block is not open yet
            self.stop()
            raise

    def stop(self) -> None:
        """Start no more jobs, and wait until every worker has ended its guest."""
        self.is_stopped = True  # first, as all that follows may wait or end a guest
        with self.changed:
            self.changed.notify_all()
            # Not Thread.join: when a signal interrupts it, CPython before 3.13 takes the thread for ended
            # (Thread._wait_for_tstate_lock); then Python ends, with all guests, while the thread is still at work.
            self.changed.wait_for(lambda: not self._at_work)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Wait until ``is_so()`` is true. If a worker fails before, raise the error of the first worker that failed."""
        with self.changed:
            self.changed.wait_for(lambda: self._failure or is_so())
            if self._failure:
                raise self._failure

    def _work(self, queue: JobQueue) -> None:
        with self.changed:
            self._at_work += 1
        try:
            for _job in self.done(queue):
                with self.changed:
                    self.changed.notify_all()
        except BaseException as failure:
            with self.changed:
                self._failure = self._failure or failure
                self.is_stopped = True
        finally:
            with self.changed:
                self._at_work -= 1
                self._ended += 1
                self.changed.notify_all()

    def _next(self, queue: JobQueue, *, has_guest: bool) -> Job | Errand | Idle:
        """Return the next job for a worker. If no job is ready, but one may still come, there are two cases. For a
        worker that already has a guest, wait for the job. For a worker without a guest, return Idle.WAIT at once, and
        the worker uses the time to start a guest."""
        with self.changed:
            while not self.is_stopped:
                job = queue.next(has_guest=has_guest)
                if job is not Idle.WAIT or not has_guest:
                    return job
                self.changed.wait()
        return Idle.OVER

    def _begun(self, guest: ExitStack, queue: JobQueue) -> Agent:
        """Start a guest for the jobs of ``queue``, and return its agent. If the guest is lost at its start, try once
        more."""
        try:
            return self._started(guest, queue)
        except (GuestLost, AgentBroken) as loss:
            if self.is_stopped:
                raise RunStopped from None
            self._progress.step(f"{what_happened(loss, ' at its start')}; starting another one")
        return self._started(guest, queue)

    def _started(self, guest: ExitStack, queue: JobQueue) -> Agent:
        agent = guest.enter_context(agent_in(self._guests, self._image, queue.clock, queue.world))
        try:
            queue.begin(agent)
        except BaseException:
            _let_go(guest, agent)
            raise
        return agent

    def _tried(self, job: Job, agent: Agent, queue: JobQueue) -> tuple[bool, bool]:
        def tell(states: int) -> None:
            if self.is_stopped:
                raise RunStopped
            if states:
                job.states += states
                self._progress.observed(job.title, states)

        trace = ""
        try:
            can_go_on = job.do(agent, tell)
        except (GuestLost, AgentBroken, LostGuest) as loss:
            error: Exception = loss
            reason = str(loss) if isinstance(loss, LostGuest) else what_happened(loss, job.when)
            if not self.is_stopped and job.first_loss is None:
                self._begin_anew(job, reason, queue)
                return False, False
        except Exception as broken:
            if ends_the_run(broken):
                raise
            said = " ".join(f"{type(broken).__name__}: {broken}".split())
            error, reason = broken, f"bob itself failed while it {job.verb} this workload: {said}"
            trace = "".join(traceback.format_exception(broken))
        else:
            return True, can_go_on and agent.is_sound
        if self.is_stopped:  # the stop has ended the guest; the guest was not lost
            raise RunStopped
        job.give_up(error, reason, trace)
        return True, False

    def _begin_anew(self, job: Job, reason: str, queue: JobQueue) -> None:
        job.first_loss = reason
        self._progress.step(f"{job.title}: {reason}; another guest starts it again")
        if job.states:
            self._progress.observed(job.title, -job.states)
            job.states = 0
        with self.changed:
            queue.put_back(job)
            self.changed.notify_all()


def _let_go(guest: ExitStack, agent: Agent) -> None:
    """End the guest of ``agent``. Do this even if the source of guests (:class:`bob.run.agents.KeptGuests`) would keep
    the guest for the next caller."""
    agent.is_sound = False
    guest.close()


class _ItemJob(Job, Generic[T, R]):
    result: R

    def __init__(self, title: str, item: T, make: Callable[[Agent, T], R]) -> None:
        super().__init__(title)
        self._item, self._make = item, make

    def do(self, agent: Agent, tell: StateSink) -> bool:
        self.result = self._make(agent, self._item)
        return True


def each_in_a_guest(
    guests: AnyGuests,
    image: Image,
    clock: Clock,
    items: Sequence[tuple[str, T]],
    do: Callable[[Agent, T], R],
    progress: Progress,
    world: Path | None = None,
) -> Iterator[R]:
    """Call ``do`` with an agent and an item, for each of ``items``, and yield the results. All calls use the same
    guest, unless it is lost. ``items`` are pairs of a title for messages and the item itself. Raise the errors of
    :meth:`Pool.done`."""
    every = [_ItemJob(title, item, do) for title, item in items]
    for job in Pool(guests, image, progress).done(JobQueue(clock, every, world)):
        assert isinstance(job, _ItemJob)
        yield job.result


@dataclass(frozen=True, slots=True)
class ProgramGuests:
    """A source of guests for programs under test. The guests have the system of ``image`` and the packages of the
    program."""

    source: AnyGuests
    image: Image
    progress: Progress

    def world(self, program: Program) -> Path | None:
        """Return the disk with the packages of ``program``. Build the disk if it is missing. Return None if the program
        needs no packages."""
        return ensure_world(self.image, program.world_packages, self.progress.step)

    def pool(self) -> Pool:
        return Pool(self.source, self.image, self.progress)

    def ask(
        self, program: Program, clock: Clock, do: Callable[[Agent], R], *, title: str = "", is_spoilt: bool = False
    ) -> R:
        """Call ``do`` with the agent of a guest, and return the result. If ``do`` may spoil the guest for other work,
        set ``is_spoilt``. The guest then ends after the call. Raise the errors of :func:`each_in_a_guest`."""
        source = unshared(self.source) if is_spoilt else self.source
        items, world = [(title or program.name, None)], self.world(program)
        [result] = each_in_a_guest(
            source, self.image, clock, items, lambda agent, _item: do(agent), self.progress, world
        )
        return result


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


def ends_the_run(error: Exception) -> bool:
    """Return whether ``error`` would hit every job, because its cause lies in this machine, in the run directory or in
    the configuration."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    return isinstance(error, BobError) and not isinstance(error, RecordingError | MalformedError)
