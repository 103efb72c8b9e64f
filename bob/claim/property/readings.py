"""The oracle's readings of the outcomes of one recorded workload. An *outcome* is what a mount of a crash state showed.
The oracle decides which operations are in it, as a whole or in part (:mod:`bob.claim.property.presence`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bob.claim.property.presence import Oracle, Reading
from bob.crash.case import Case
from bob.observe.observation import Observation
from bob.trace.recording import Statuses
from bob.workload.history import History
from bob.workload.operations import Workload
from bob.workload.simulation import simulate


class OutcomeReadings:
    """The readings of the outcomes of one recorded workload. The oracle reads each outcome only once, since this takes
    a hundred times as long as to judge a property. So bob can judge while it still explores, and again at the end.

    ``inodes`` and ``statuses`` have two mappings each, whose keys are names. The first mapping is from before the
    operations, and the second from after them."""

    def __init__(
        self, workload: Workload, inodes: Sequence[Mapping[str, int]], statuses: Sequence[Statuses] = ()
    ) -> None:
        self.history: History = simulate(workload)[0]
        self.oracle = Oracle(self.history, inodes_of_things(self.history, *inodes), statuses)
        self._read: list[Reading | None] = []

    @classmethod
    def of(cls, case: Case) -> OutcomeReadings:
        return cls(case.workload, case.inodes, case.statuses)

    def read(self, observations: Sequence[Observation]) -> Mapping[int, Reading]:
        """Return the reading of each observation that mounts, by its index. An observation must have the same index in
        each call, since bob reads each index only once."""
        for number in range(len(self._read), len(observations)):
            observation = observations[number]
            self._read.append(self.oracle.read(observation) if observation.mounted else None)
        known = enumerate(self._read[: len(observations)])
        return {number: reading for number, reading in known if reading is not None}


def inodes_of_things(history: History, *known: Mapping[str, int]) -> dict[int, int]:
    """Return the inode number of each file and directory. ``known`` has two mappings from names to inode numbers: the
    first is from before the first step of ``history``, and the second from after its last step."""
    inodes = {}
    for step, numbers in zip((history.steps[0], history.steps[-1]), known, strict=True):
        for path, identity in step.names.items():
            if path in numbers:
                inodes[identity] = numbers[path]
    return inodes
