"""Guests side by side: some record, in virtual time where waiting is free; others observe what was recorded.

Each worker takes a processor. Up to half of the workers record, each another configuration, in a guest of its own,
while the others observe; when a configuration is recorded its worker observes as well; and when little is left to be
observed, the next configuration is recorded. The guest in which a worker observes waits while it records: another one
would have to be restored, and an emulator that translates all of the kernel anew takes seconds to be quick. What a run
directory has already, since it was stopped and is gone on with, is not done again.

A guest that dies gives its workload back: another one records or observes it from the beginning, and the result tells.
If that dies too, the workload stays unknown, as it does where bob itself breaks at it; the others go on. All that was
lost so is tried again when the run is gone on with. While a run is stopped its guests may be gone before their workers
know of it: then nothing is lost, and nothing is marked.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from bob.agent.client import Agent, AgentBroken, what_happened
from bob.agent.loss import GuestLost
from bob.crash.case import Case
from bob.errors import BobError, MalformedError, OperationRefusedError, RecordingError, UsageError
from bob.guest.capacity import recorders
from bob.guest.spec import Clock
from bob.image import Image
from bob.memory import give_back_now
from bob.observe.explore import explore
from bob.observe.observation import Findings
from bob.observe.observed import Observed
from bob.progress import Progress
from bob.record.base import base_name, make_base, put_base
from bob.record.recorder import record
from bob.run.agents import Guests, agent_in
from bob.run.second_chances import SecondChances, broke, ends_the_run
from bob.run.tasks import Explored, Recorded, Task, Waiting, Work, left_of, may_wait, read_back
from bob.store.refused import Refused
from bob.trace.base import Base
from bob.workload.operations import Workload

FEW = 6
"""With so few workloads left to observe, the next configuration is recorded, which takes a guest and a mkfs first."""
LARGE_LOG_BYTES = 4 * 1024 * 1024
"""A recording with a longer log takes so much memory that it is worth some time to give that back."""


@dataclass(slots=True)
class _Told:
    """How many single crash states of a workload the progress was told of."""

    states: int = 0


class _Early:
    """Nothing is recorded yet, but will be: a guest can be made ready."""


class _Stopped(BaseException):
    """The pipeline was left while a workload was being observed."""


class Pipeline:
    """Runs while ``with`` is open; ask for the :meth:`result` of each workload.

    ``jobs`` are the guests side by side. Leaving ``with`` early ends the guests and the threads.
    """

    def __init__(self, hypervisor: Guests, image: Image, tasks: Sequence[Task], progress: Progress, jobs: int) -> None:
        self._hypervisor = hypervisor
        self._image = image
        self._progress = progress
        self._chances = SecondChances(progress)
        self._work = [Work(task, left_of(task)) for task in tasks]
        # All of what follows changes under this condition only.
        self._changed = threading.Condition()
        self._unrecorded = deque(work for work in self._work if work.left)
        self._recorders = 0
        self._most_recorders = recorders(jobs)
        self._recorded: deque[Waiting] = deque()
        self._failure: BaseException | None = None
        self._stopped = False
        self._threads = [threading.Thread(target=self._guarded, name=f"worker {n}") for n in range(1, jobs + 1)]
        self._at_work = 0

    def __enter__(self) -> Pipeline:
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:  # an interrupt: without a ``with`` block to be left, nothing else would stop them
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True  # before anything that could end a guest, and that waits
        with self._changed:
            self._changed.notify_all()
            # Not Thread.join: when a signal interrupts it, CPython before 3.13 takes the thread for ended
            # (Thread._wait_for_tstate_lock); then Python ends, with all guests, while the thread is still at work.
            self._changed.wait_for(lambda: not self._at_work)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def result(self, task: int, number: int) -> Explored | Refused | None:
        """What came of workload ``number`` of a task, once; None if only the run directory has it: it was done before,
        or too much waited to be asked for.

        Raises the UsageError by which mkfs or the kernel refused the task's configuration, and what failed in a thread.
        """
        work = self._work[task]
        if number not in work.left:
            return None
        with self._changed:
            self._changed.wait_for(lambda: self._failure or work.refusal or number in work.results)
            if failure := self._failure or work.refusal:
                raise failure
            if number == max(work.left):  # the last
                work.task.sights.clear()
            return work.results.pop(number)

    def _guarded(self) -> None:
        try:
            self._at_work_is(+1)
            self._run()
        except BaseException as failure:
            with self._changed:
                self._failure = self._failure or failure
                self._stopped = True
        finally:
            self._at_work_is(-1)

    def _at_work_is(self, more: int) -> None:
        with self._changed:
            self._at_work += more
            self._changed.notify_all()

    def _run(self) -> None:
        """Record or observe, whatever is to be done, until there is no more."""
        with ExitStack() as guest:
            agent: Agent | None = None
            early = True
            while (job := self._next(early=early)) is not None:
                early = False
                if isinstance(job, _Early):
                    with suppress(GuestLost, AgentBroken, UsageError):  # with work at hand it is tried again, and told
                        agent = guest.enter_context(agent_in(self._hypervisor, self._image, Clock.REAL))
                    continue
                if isinstance(job, Work):
                    self._record_all(job)
                    continue
                told = _Told()
                try:
                    recorded = job.recorded or read_back(job.work.task, job.number)
                    try:
                        if agent is None:
                            agent = guest.enter_context(agent_in(self._hypervisor, self._image, Clock.REAL))
                        observed = self._observe(agent, recorded, told)
                    except (GuestLost, AgentBroken, UsageError) as loss:
                        lost, died = what_happened(loss), isinstance(loss, GuestLost)
                        observed = Observed((), Findings(), recorded.case.asked.nothing_explored(), lost, died=died)
                except Exception as error:
                    if ends_the_run(error):
                        raise
                    agent = None
                    guest.close()
                    self._break(job.work, job.number, "observed", error, told.states)
                    continue
                if observed.lost is not None:
                    agent = None
                    guest.close()
                    if self._stopped:  # so the guest was ended, and not lost
                        break
                if observed.died and self._begins_anew(job, recorded, observed.lost or "", told):
                    continue
                self._keep(job, recorded, observed, told)
                is_large = recorded.case.recording.log_bytes > LARGE_LOG_BYTES
                del job, recorded, observed
                if is_large:
                    give_back_now()

    def _keep(self, job: Waiting, recorded: Recorded, observed: Observed, told: _Told) -> None:
        """Keep what was seen of a workload; where it was lost on the way, so that it is tried again some day."""
        run, folder, workload = recorded.task.run, recorded.folder, recorded.case.workload
        before = run.loss(folder)  # when the run was stopped or ended without it
        earlier = self._chances.loss((job.work, job.number, "observed"))
        observed = replace(observed, earlier_loss=earlier or (before.reason if before else None))
        is_lost = observed.lost is not None and not observed.final
        if is_lost:
            run.save_loss(folder, workload, observed.lost or "")
        run.save_observed(folder, observed)
        if not is_lost:
            run.clear_loss(folder)
        unused = recorded.task.effort.budget - told.states
        self._done(job.work, job.number, workload, unused, Explored(recorded, observed))

    def _next(self, *, early: bool) -> Work | Waiting | _Early | None:
        """What to do next: a task to be recorded, or a recording to be observed; None when all is done. Rather than
        wait, where it is ``early``, to have a guest ready for the first recording."""
        with self._changed:
            while not self._stopped:
                if self._unrecorded and self._recorders < self._most_recorders and len(self._recorded) <= FEW:
                    self._recorders += 1
                    return self._unrecorded.popleft()
                if self._recorded:
                    return self._recorded.popleft()
                if not self._recorders and not self._unrecorded:
                    return None
                if early:
                    return _Early()
                self._changed.wait()
        return None

    def _begins_anew(self, job: Waiting, recorded: Recorded, loss: str, told: _Told) -> bool:
        """Have the workload of a guest that died observed by another guest, before all others; whether it will be."""
        title = recorded.case.workload.title
        if not self._chances.has((job.work, job.number, "observed"), title, loss):
            return False
        self._progress.observed(title, -told.states)
        with self._changed:
            self._recorded.appendleft(Waiting(job.work, job.number, recorded))
            self._changed.notify_all()
        return True

    def _done(self, work: Work, number: int, workload: Workload, unused: int, result: Explored | Refused) -> None:
        self._progress.finished(workload.title, unused)
        with self._changed:
            others = [one.recorded for each in self._work for one in each.results.values() if isinstance(one, Explored)]
            is_held = not isinstance(result, Explored) or not others or may_wait(result.recorded, others)
            work.results[number] = result if is_held else None
            self._changed.notify_all()

    def _record_all(self, work: Work) -> None:
        """Record what is left of a task, in a new guest when one is lost."""
        try:
            numbers = self._take_all(work)
            while numbers and not self._stopped:
                numbers = self._record_some(work, numbers)
        except UsageError as refusal:
            with self._changed:
                work.refusal = refusal
        finally:
            with self._changed:
                self._recorders -= 1
                self._changed.notify_all()

    def _take_all(self, work: Work) -> Sequence[int]:
        """Take the recordings that the run has already; the numbers of the workloads of which it has none."""
        task, numbers = work.task, []
        for number, workload in work.left.items():
            folder = task.run.folder(number, workload)
            if not task.run.is_recorded(folder):
                numbers.append(number)
                continue
            self._wait(Waiting(work, number, None), workload)
        return numbers

    def _record_some(self, work: Work, numbers: Sequence[int]) -> Sequence[int]:
        """Record these workloads in one guest; those to go on with in another one."""
        try:
            with agent_in(self._hypervisor, self._image, Clock.VIRTUAL) as agent:
                for place, number in enumerate(numbers):
                    if self._stopped:
                        break
                    try:
                        self._record(agent, work, number)
                    except (GuestLost, AgentBroken) as loss:
                        is_again = self._lose_recorder(work, number, loss)
                        return numbers[place if is_again else place + 1 :]
                    except Exception as error:
                        if ends_the_run(error):
                            raise
                        self._break(work, number, "recorded", error)
                        return numbers[place + 1 :]
        except GuestLost as loss:  # nothing was asked of it yet
            if self._chances.has((work, "started"), work.task.configuration.name, str(loss)):
                return numbers
            raise
        return ()

    def _lose_recorder(self, work: Work, number: int, loss: BobError) -> bool:
        """Whether the workload that was being recorded when its guest was lost is to be recorded anew."""
        said, workload = what_happened(loss, " while recording"), work.left[number]
        if not self._stopped and self._chances.has((work, number, "recorded"), workload.title, said):
            return True
        if isinstance(loss, GuestLost) and loss.loss.is_by_kernel and not self._stopped:
            self._refuse(work, number, Refused.by_kernel(workload, loss.loss))
        else:
            self._lose(work, number, said)
        return False

    def _record(self, agent: Agent, work: Work, number: int) -> None:
        task, workload = work.task, work.left[number]
        narrates = self._chances.loss((work, number, "recorded")) is not None  # it is to be known at which step
        try:
            base = self._base(agent, work, workload, narrates)
        except OperationRefusedError as refusal:
            self._refuse(work, number, Refused(workload, f"its initial tree cannot be made: {refusal}"))
            return
        try:
            made, completion = task.configuration, task.model.completion
            recording = record(agent, made, base, workload, completion=completion, narrates=narrates)
            case = Case.of(workload, base, recording, task.model)
            _ = case.asked  # or it does not say when the operations returned
        except UsageError as refusal:
            self._refuse(work, number, Refused(workload, f"the guest refused it: {refusal}"))
            return
        except (RecordingError, MalformedError) as refusal:
            self._refuse(work, number, Refused(workload, f"the recording was refused: {refusal}"))
            return
        folder = task.run.folder(number, workload)
        task.run.save_recording(folder, workload, base, recording)
        self._wait(Waiting(work, number, Recorded(task, number, folder, case)), workload)

    def _base(self, agent: Agent, work: Work, workload: Workload, narrates: bool) -> Base:
        """The base of a workload; made once a run, as another one would differ in what the kernel draws at random."""
        run, setup = work.task.run, workload.setup
        name = base_name(work.task.configuration, setup, workload.pattern)
        if setup not in work.bases and run.has_base(name):
            work.bases[setup] = run.base(name)
        if (base := work.bases.get(setup)) is not None:
            put_base(agent, base)
            return base
        made = work.task.configuration
        base = work.bases[setup] = make_base(agent, made, setup, workload.pattern, narrates=narrates)
        run.save_base(base)
        return base

    def _wait(self, waiting: Waiting, workload: Workload) -> None:
        """Have a recording, which the run directory has too, wait for a guest that observes."""
        self._progress.recorded(workload.title)
        with self._changed:
            others = [one.recorded for one in self._recorded if one.recorded]
            if waiting.recorded and not may_wait(waiting.recorded, others):
                waiting.recorded = None
            self._recorded.append(waiting)
            self._changed.notify_all()

    def _refuse(self, work: Work, number: int, refused: Refused) -> None:
        task, workload = work.task, refused.workload
        task.run.save_refusal(task.run.folder(number, workload), refused)
        self._progress.step(f"not recorded: {task.configuration.name}, {workload.title}: {refused.reason}")
        self._done(work, number, workload, task.effort.budget, refused)

    def _break(self, work: Work, number: int, done: str, error: Exception, told: int = 0) -> None:
        """Take note that bob itself broke, by ``error``, when a workload was ``done``."""
        self._lose(work, number, *broke(error, done), told)

    def _lose(self, work: Work, number: int, reason: str, trace: str = "", told: int = 0) -> None:
        """Take note that it will not be known of a workload what it should be, of which the progress was ``told`` of so
        many crash states; nothing where the run is being stopped, and its guests end with it."""
        if self._stopped:
            return
        task, workload = work.task, work.left[number]
        folder = task.run.folder(number, workload)
        task.run.save_loss(folder, workload, reason, trace)
        at = f" ({folder / 'traceback.txt'})" if trace else ""
        self._progress.step(f"unknown: {task.configuration.name}, {workload.title}: {reason}{at}")
        self._done(work, number, workload, task.effort.budget - told, Refused(workload, reason))

    def _observe(self, agent: Agent, recorded: Recorded, told: _Told) -> Observed:
        case, task = recorded.case, recorded.task
        title = case.workload.title
        return explore(
            agent,
            task.configuration,
            case.asked,
            task.effort,
            lambda states: self._tell(title, states, told),
            task.sights,
        )

    def _tell(self, title: str, states: int, told: _Told) -> None:
        if self._stopped:
            raise _Stopped
        told.states += states
        self._progress.observed(title, states)
