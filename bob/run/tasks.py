"""What the pipeline works on: the workloads of configurations, and what comes of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bob.crash.case import Case
from bob.crash.device import DeviceModel
from bob.errors import UsageError
from bob.observe.effort import Effort
from bob.observe.mount_cache import Sights
from bob.observe.observations import Observations
from bob.store.run_directory import RunDirectory
from bob.store.run_documents import RefusedWorkload
from bob.subject import Subject
from bob.trace.base import Base
from bob.workload.operations import Operation, Workload

HELD_BYTES = 8 * 1024 * 1024
"""Recordings with so much log wait in memory to be observed, at most, and as many to be judged; others are read back
from the run directory, which takes 10 to 50 ms."""


@dataclass(frozen=True, slots=True)
class Task:
    """A configuration's workloads, in the order of its run directory.

    ``effort`` is that for each of them; ``only`` those with these numbers are to be done (None: all). ``sights`` are
    the disks that were mounted for it."""

    configuration: Subject
    model: DeviceModel
    effort: Effort
    run: RunDirectory
    workloads: tuple[Workload, ...]
    only: frozenset[int] | None = None
    sights: Sights = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """A recording that passed its check; ``number`` is its workload's in the run."""

    task: Task
    number: int
    folder: Path
    case: Case


@dataclass(frozen=True, slots=True)
class ExploredCase:
    """A recording with what was seen of its crash states."""

    recorded: RecordedCase
    observed: Observations


@dataclass(slots=True, eq=False)
class TaskUnderWay:
    """A task under way: what is left of it, what came of it, and why it cannot be done, if it cannot."""

    task: Task
    left: dict[int, Workload]
    results: dict[int, ExploredCase | RefusedWorkload | None] = field(default_factory=dict)
    bases: dict[tuple[Operation, ...], Base] = field(default_factory=dict)
    refusal: UsageError | None = None


def may_wait(recorded: RecordedCase, others: Sequence[RecordedCase]) -> bool:
    """Whether a recording may wait in memory beside ``others``, which do."""
    return sum(one.case.recording.log_bytes for one in (recorded, *others)) <= HELD_BYTES


def read_back(task: Task, number: int) -> RecordedCase:
    """A recording that the run directory has."""
    folder = task.run.folder(number, task.workloads[number])
    return RecordedCase(task, number, folder, task.run.case(folder, task.configuration, task.model))


def left_of(task: Task) -> dict[int, Workload]:
    """What is to be done of a task, by its number in the run."""
    return {
        number: workload
        for number, workload in enumerate(task.workloads)
        if (task.only is None or number in task.only) and not task.run.is_done(task.run.folder(number, workload))
    }
