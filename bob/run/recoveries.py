"""Records recoveries, and explores the crash states in them; what the run directory has is not done again."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bob.agent.client import Agent, AgentBroken, what_happened
from bob.agent.loss import GuestLost
from bob.crash.case import Case
from bob.crash.state import CrashState
from bob.errors import MalformedError, RecordingError, UsageError
from bob.guest.spec import Clock
from bob.image import Image
from bob.judge.recovered import Recovered, chosen
from bob.judge.recoveries import planned, recovery_of
from bob.observe.explore import explore
from bob.observe.observed import Observed
from bob.progress import Progress
from bob.record.base import drop_base, put_base
from bob.record.recorder import record_recovery
from bob.report.counts import plural
from bob.request import ProbeRequest
from bob.run.agents import Guests, agent_in
from bob.run.second_chances import SecondChances, broke, ends_the_run
from bob.store.refused import Refused
from bob.store.run_directory import RunDirectory
from bob.trace import differences
from bob.trace.base import Base
from bob.workload.operations import Workload


class Recoveries:
    """The recoveries of one run, crashed in a guest in virtual time."""

    def __init__(
        self, hypervisor: Guests, image: Image, run: RunDirectory, request: ProbeRequest, progress: Progress
    ) -> None:
        self._hypervisor = hypervisor
        self._image = image
        self._run = run
        self._request = request
        self._progress = progress
        self._chances = SecondChances(progress)

    def crash(self, workloads: Sequence[Workload]) -> None:
        """Crash recoveries of ``workloads``, all that the run has, as far as they were observed."""
        left = deque(self._left(workloads))
        if left:
            name = self._request.configuration.name
            self._progress.step(f"{name}: now crashes during recovery, from {plural(len(left), 'crash state')}")
        while left:
            with agent_in(self._hypervisor, self._image, Clock.VIRTUAL) as agent:
                while left:
                    place, recovered = left.popleft()
                    is_there, again = self._tried(agent, place, recovered, workloads[recovered.number])
                    if again:
                        left.appendleft((place, recovered))
                    if not is_there:
                        break  # go on with a new guest

    def _left(self, workloads: Sequence[Workload]) -> list[tuple[int, Recovered]]:
        run = self._run
        if (plan := planned(run)) is None:
            folders = {number: run.folder(number, workload) for number, workload in enumerate(workloads)}
            observed = ((number, run.observed(path)) for number, path in folders.items() if run.is_observed(path))
            plan = chosen(observed, self._request.recovery_crashes, self._request.seed)
            run.note(recoveries=[recovered.to_json() for recovered in plan])
        return [
            (place, recovered) for place, recovered in enumerate(plan) if not run.is_done(run.recovery_folder(place))
        ]

    def _tried(self, agent: Agent, place: int, recovered: Recovered, origin: Workload) -> tuple[bool, bool]:
        """Crash one recovery, from a state of ``origin``; whether the guest can go on, and whether another one is to
        begin this recovery anew: once, where its guest was lost."""
        workload, folder = recovery_of(origin, recovered.state), self._run.recovery_folder(place)
        try:
            observed = self._one(agent, folder, recovered, origin, workload)
        except (GuestLost, AgentBroken) as loss:
            said = what_happened(loss, " while recording")
            if self._chances.has(place, workload.title, said):
                return False, True
            self._run.save_loss(folder, workload, said)
            return False, False
        except Exception as error:
            if ends_the_run(error):
                raise
            said, trace = broke(error, "crashed")
            self._run.save_loss(folder, workload, said, trace)
            self._progress.step(f"unknown: {workload.title}: {said} ({folder / 'traceback.txt'})")
            return False, False
        if observed is None or observed.lost is None:
            return True, False
        if observed.died and self._chances.has(place, workload.title, observed.lost):
            return False, True
        if not observed.final:
            self._run.save_loss(folder, workload, observed.lost)
        self._run.save_observed(folder, observed)
        return False, False

    def _one(
        self, agent: Agent, folder: Path, recovered: Recovered, origin: Workload, workload: Workload
    ) -> Observed | None:
        """What was seen of a recovery, ``workload``, that was crashed; kept where nothing was lost. None where it was
        refused, which is kept too."""
        run, request = self._run, self._request
        base = after_crash(run.case(run.folder(recovered.number, origin), request.model), recovered.state)
        try:
            put_base(agent, base)
            completion = request.model.completion
            recording = record_recovery(agent, request.configuration, base, completion=completion)
            case = Case.of(workload, base, recording, request.model)
        except (UsageError, RecordingError, MalformedError) as refusal:
            run.save_refusal(folder, Refused(workload, f"the recording was refused: {refusal}"))
            run.clear_loss(folder)
            return None
        run.save_base(base)
        run.save_recording(folder, workload, base, recording)
        observed = explore(agent, request.configuration, case.plan, request.effort, lambda _states: None)
        if observed.lost is None:
            run.save_observed(folder, observed)
            run.clear_loss(folder)
            drop_base(agent, base)
        return observed


def after_crash(case: Case, state: CrashState) -> Base:
    """The disk as a crash left it."""
    base, packed = case.base, differences.overlaid(case.base.packed, case.plan.runs(state))
    name = hashlib.sha256(packed).hexdigest()[:16]
    return replace(base, name=name, packed=packed)
