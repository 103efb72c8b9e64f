"""A case: something that was recorded, ready to have its crash states explored.

Whoever records makes one, and whoever explores, judges or tells takes one. Nothing travels beside it.
"""

from __future__ import annotations

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
    """What was done (``work``) to a ``subject`` whose disks held ``base``, the ``recording`` of it, and the ``plan`` of
    all crash states that a device model allows."""

    subject: Subject
    work: Work
    base: Base
    recording: Recording
    plan: Plan

    @classmethod
    def of(
        cls, subject: Subject, work: Work, base: Base, recording: Recording, model: DeviceModel, **more: Any
    ) -> Self:
        """The case of a recording; ``more`` are the fields of its kind of case. Raises RecordingError or MalformedError
        where the recording is not to be believed (:func:`bob.trace.check.checked`)."""
        return cls(subject, work, base, recording, Plan(checked(recording, base), base, model), **more)

    @property
    def workload(self) -> Workload:
        """The operations that were done. Raises TypeError where a program did the work."""
        return workload_in(self.work)

    @property
    def asked(self) -> Plan:
        """The crash states that the workload asks for. Raises RecordingError where the recording does not say which."""
        return self.plan.asked(self.workload.at, len(self.workload.operations))

    @property
    def complete(self) -> CrashState:
        """The crash state with every write of the recording."""
        return self.plan.controls[-1]

    @property
    def inodes(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """The inode numbers by name, before and after the operations."""
        return self.recording.inodes_before, self.recording.inodes_after

    @property
    def statuses(self) -> tuple[Statuses, Statuses]:
        """What else stat said of each name, before and after the operations."""
        return self.recording.status_before, self.recording.status_after
