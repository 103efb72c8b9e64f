"""Records recoveries, and explores the crash states in them; what the run directory has is not done again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.errors import MalformedError, RecordingError, UsageError
from bob.guest.agent_client import Agent, AgentBroken, what_happened
from bob.guest.hypervisor import Hypervisor
from bob.guest.loss import GuestLost
from bob.guest.spec import Clock
from bob.guest.with_agent import agent_in
from bob.image import Image
from bob.observe.explore import explore
from bob.progress import Progress
from bob.record.base import drop_base, put_base
from bob.record.check import checked
from bob.record.recorder import record_recovery
from bob.recovery.choice import Recovered, chosen
from bob.recovery.kept import planned, recorded, recovery_of
from bob.report.counts import plural
from bob.request import ProbeRequest
from bob.store import RunDirectory
from bob.trace import differences
from bob.trace.base import Base
from bob.workload.operations import Workload


class Recoveries:
    """The recoveries of one run, crashed in a guest in virtual time."""

    def __init__(
        self, hypervisor: Hypervisor, image: Image, run: RunDirectory, request: ProbeRequest, progress: Progress
    ) -> None:
        self._hypervisor = hypervisor
        self._image = image
        self._run = run
        self._request = request
        self._progress = progress

    def crash(self, workloads: Sequence[Workload]) -> None:
        """Crash recoveries of ``workloads``, all that the run has, as far as they were observed."""
        left = self._left(workloads)
        if left:
            name = self._request.configuration.name
            self._progress.step(f"{name}: now crashes during recovery, from {plural(len(left), 'crash state')}")
        while left:
            with agent_in(self._hypervisor, self._image, Clock.VIRTUAL) as agent:
                while left:
                    place, recovered = left.pop(0)
                    if not self._one(agent, place, recovered, workloads[recovered.number]):
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

    def _one(self, agent: Agent, place: int, recovered: Recovered, origin: Workload) -> bool:
        """Crash one recovery, from a state of ``origin``; whether the guest is still there."""
        run, request, folder = self._run, self._request, self._run.recovery_folder(place)
        workload = recovery_of(origin, recovered.state)
        before, _recording, states = recorded(run, run.folder(recovered.number, origin), request.model)
        base = after_crash(before, states, recovered.state)
        try:
            put_base(agent, base)
            completion = request.completion
            recording = record_recovery(agent, request.configuration, base, virtual=True, completion=completion)
            plan = Plan(checked(recording, base), base, request.model)
        except (UsageError, RecordingError, MalformedError) as refusal:
            run.save_refusal(folder, workload, f"the recording was refused: {refusal}")
            return True
        except (GuestLost, AgentBroken) as loss:
            run.save_refusal(folder, workload, what_happened(loss, " while recording"))
            return False
        run.save_base(base)
        run.save_recording(folder, workload, base, recording)
        observed = explore(
            agent,
            request.configuration,
            base,
            plan,
            budget=request.budget,
            seed=request.seed,
            audit=request.audit,
            observed=lambda _states: None,
        )
        run.save_observed(folder, observed)
        if observed.lost is None:
            drop_base(agent, base)
        return observed.lost is None


def after_crash(base: Base, plan: Plan, state: CrashState) -> Base:
    """The disk as a crash left it."""
    packed = differences.overlaid(base.packed, plan.runs(state))
    name = hashlib.sha256(packed).hexdigest()[:16]
    return Base(name, base.length, packed, base.effective_options, base.mkfs)
