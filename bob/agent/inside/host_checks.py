"""Recover crash states on the host, by the file system's check program (such as e2fsck). After a crash, a machine would
run this program at boot, before the mount. On the host it runs natively, in a sandbox. bob learns what the program read
and wrote, so a guest need only mount the result. A *payload* has the data of all writes of a workload. A crash state is
given as a list of copies from the payload to the disk."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from itertools import chain

from bob.agent.inside import medium
from bob.agent.inside.devices import SECTOR, plain_environment, with_device
from bob.agent.inside.frames import Denial, Reply
from bob.agent.inside.images import Runs, merged
from bob.agent.inside.traced_process import TracedProcess

EVERY = 50  # states for one comparison of the whole disk with its base
LONG = 64  # sectors; of longer runs a digest has all, changed or not

_checks: HostChecks | None = None


class HostChecks:
    """The recovery of the crash states of one workload. ``base`` names the image of the disk before the workload, and
    ``check`` is the program's command. ``payload`` is the data of all writes of the workload. ``floor`` has the writes
    that all crash states share, as a flat list of (sector, sector in the payload, sectors). ``clock`` is the time that
    the program sees (seconds since 1970)."""

    def __init__(self, base: str, check: list[str], floor: list[int], clock: int, payload: bytes) -> None:
        self.payload = memoryview(payload)
        self._medium = medium.medium_with(base)
        self._command = with_device(check, self._medium.work_path)
        # All states get the same time, so that equal repairs are equal on the disk. It is not the host's time: e2fsck
        # repairs a superblock whose times are in the future. (It takes its time from E2FSCK_TIME, and its library
        # takes it from the other variable.)
        self._environment = {**plain_environment(), **dict.fromkeys(("E2FSCK_TIME", "E2FSPROGS_FAKE_TIME"), str(clock))}
        self._process = TracedProcess(self._medium.work_path, self._medium.length)
        self._floor = list(zip(floor[::3], floor[2::3]))
        self._before = [(sector, self._medium.pristine.get(sector, count)) for sector, count in self._floor]
        self._write(floor)
        self._medium.pristine.copy(self._medium.work, self._floor)
        self._count = 0

    def close(self) -> None:
        self._process.close()
        for sector, data in self._before:
            self._medium.pristine.put(sector, data)
            self._medium.work.put(sector, data)

    def recover(self, runs: list[int]) -> tuple[str, list[int], Runs, bytes]:
        """Recover one state. ``runs`` describes the state as a flat list of (sector, sector in the payload, sectors) in
        ascending order. Return four values: a digest of the disk after the recovery; the program's accesses; the runs
        of sectors that it changed; and their data. The accesses are a flat list of three numbers each: 1 for a read or
        0 for a write, first sector, number of sectors. Raises Denial if bob cannot follow the program's accesses."""
        work, pristine = self._medium.work, self._medium.pristine
        self._write(runs)
        touched = self._process.run(self._command, self._environment)
        written = merged([(sector, count) for reads, sector, count in touched if not reads])
        places = merged([*zip(runs[::3], runs[2::3]), *written])
        changed = self._changed(runs, written)
        data = b"".join(work.get(*run) for run in changed)
        digest = hashlib.blake2b(digest_size=16)
        for sector, count in places:
            parts = [(sector, count)] if count > LONG else [(one, 1) for one in range(sector, sector + count)]
            for run in parts:
                if not work.is_same(pristine, *run):
                    digest.update(b"%d %d " % run)
                    digest.update(work.get(*run))
        self._medium.put_back(places)
        self._count += 1
        if self._count % EVERY == 1 and self._medium.changed():
            raise Denial("the disk differs from its base after the undo")
        return digest.hexdigest(), [int(number) for one in touched for number in one], changed, data

    def _write(self, runs: list[int]) -> None:
        for target, source, count in zip(runs[::3], runs[1::3], runs[2::3]):
            self._medium.work.put(target, self.payload[source * SECTOR : (source + count) * SECTOR])

    def _changed(self, runs: list[int], written: Runs) -> Runs:
        """Return those of the sectors ``written`` whose data now differs from the data in the crash state ``runs``. The
        result is runs of sectors."""
        work, pristine = self._medium.work, self._medium.pristine
        starts = runs[::3]
        changed: Runs = []
        for sector in chain.from_iterable(range(first, first + count) for first, count in written):
            place = bisect_right(starts, sector) - 1
            if place >= 0 and sector < starts[place] + runs[3 * place + 2]:
                at = (runs[3 * place + 1] + sector - starts[place]) * SECTOR
                is_new = work.data[sector * SECTOR : (sector + 1) * SECTOR] != self.payload[at : at + SECTOR]
            else:
                is_new = not work.is_same(pristine, sector, 1)
            if is_new:
                if changed and sum(changed[-1]) == sector:
                    changed[-1] = changed[-1][0], changed[-1][1] + 1
                else:
                    changed.append((sector, 1))
        return changed


def recover_prepare(base: str, check: list[str], floor: list[int], clock: int, blob: bytes) -> Reply:
    """Prepare to recover the crash states of a workload. The arguments are those of :class:`HostChecks`; ``blob`` is
    the payload."""
    global _checks
    ended, _checks = _checks, None
    if ended is not None:
        ended.close()
    _checks = HostChecks(base, check, floor, clock, blob)
    return {}, b""


def recover(states: list[list[int]], blob: bytes) -> Reply:
    """Recover ``states``. Each is a flat list of (sector, sector in the payload, sectors) in ascending order. ``blob``
    is appended to the payload. For each state, the reply has a digest of the disk after the recovery, the program's
    reads and writes, and the runs of sectors that it changed, with their data."""
    if _checks is None:
        raise Denial("recover_prepare must come first")
    if blob:
        _checks.payload = memoryview(bytes(_checks.payload) + blob)
    found = [_checks.recover(runs) for runs in states]
    header = {
        "digests": [one[0] for one in found],
        "accesses": [one[1] for one in found],
        "changed": [one[2] for one in found],
    }
    return header, b"".join(one[3] for one in found)
