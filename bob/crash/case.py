"""A case: a recording, ready for the exploration of its crash states."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from bob.crash.device import DeviceModel
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.crash.work import Work, workload_in
from bob.subject import Subject
from bob.trace.base import Base
from bob.trace.check import checked
from bob.trace.recording import Recording, Statuses
from bob.workload.operations import Workload


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that bob needs to explore the crash states of one recording. The ``work`` (operations or a program)
    ran on the ``subject`` (the file system and its disks). ``base`` is the initial content of the disks. ``recording``
    is what the disks got, and ``plan`` has all legal crash states."""

    subject: Subject
    work: Work
    base: Base
    recording: Recording
    plan: Plan

    @classmethod
    def of(
        cls, subject: Subject, work: Work, base: Base, recording: Recording, model: DeviceModel, **more: Any
    ) -> Self:
        """Return the case of a recording. ``more`` has values for the fields that a subclass adds. Raises the errors of
        :func:`bob.trace.check.checked`."""
        return cls(subject, work, base, recording, Plan(checked(recording, base), base, model), **more)

    @property
    def workload(self) -> Workload:
        """The work, as a workload of operations. Raises TypeError if a program did the work."""
        return workload_in(self.work)

    @property
    def asked(self) -> Plan:
        """The plan of the crash states that bob explores for this workload. Depending on the workload, these are the
        states of crashes after its end, or of crashes at any time. Raises RecordingError if the recording does not say
        when the last operation returned."""
        return self.plan.asked(self.workload.at, len(self.workload.operations))

    @property
    def complete(self) -> CrashState:
        return self.plan.controls[-1]

    @property
    def inodes(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        return self.recording.inodes_before, self.recording.inodes_after

    @property
    def statuses(self) -> tuple[Statuses, Statuses]:
        return self.recording.status_before, self.recording.status_after
