"""Build crash states on the scratch device (the device that bob mounts), recover them as a boot would, and look at the
result. A state is written into the image ``work`` (the content of the device), mounted, looked at and unmounted.
Afterwards every sector that was written gets back its content of the *base image*, the disk before the recording. An
*outcome* is what a mount of a crash state shows. The kernel's trace says which sectors recovery wrote."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable
from typing import Any, Optional, TypeVar

from bob.agent.inside.built_trees import spoil_and_check
from bob.agent.inside.complaints import KERNEL_MESSAGE, REMOVAL, Complaints
from bob.agent.inside.devices import SECTOR, forget_file_systems
from bob.agent.inside.documents import SubjectDocument
from bob.agent.inside.frames import Denial
from bob.agent.inside.images import Runs, merged, outside
from bob.agent.inside.layer_checks import LAYER, read_twice, write_and_read
from bob.agent.inside.let_go import mounts, unmount_after_scripts
from bob.agent.inside.look import EntryTree, Look, TreeEntry, describe
from bob.agent.inside.mounts import ROOT, unmount
from bob.agent.inside.refusals import LayerFailed, started
from bob.agent.inside.scratch import Scratch
from bob.agent.inside.volumes import Volumes

DEVICE_NAME = re.compile(r"\b(?:loop|dm-|md)\d+")  # in kernel messages; not part of an outcome

T = TypeVar("T")
StateOutcome = tuple[Optional[str], bool, Optional[EntryTree]]  # error of a refused mount, repaired, tree


class StateSession:
    """The crash states of one workload. A session has the base image, the floor (the writes that all states share), the
    payload (the data of all writes), and the distinct outcomes so far.

    The host names ``stretches``, parts of the device whose content it wants to know after each mount. It ignores other
    writes into the sectors ``exempt``, such as the file system's log. Both are flat lists of first sector and number of
    sectors.

    Four lists have an item for each state of the present request. ``traces`` has the pages of the trace of reads.
    ``sectors_read`` has the number of sectors that were read. (If ``scratch`` does not trace reads, both stay empty.)
    ``left`` has the contents of the stretches after the mount (:meth:`left_behind`). ``elsewhere`` has the other writes
    of the mount (:meth:`written_elsewhere`). (If ``exempt`` is None, both stay empty.)"""

    def __init__(
        self,
        scratch: Scratch,
        subject: SubjectDocument,
        payload: bytes,
        floor: list[int],
        stretches: list[int],
        exempt: list[int] | None,
        *,
        closely: bool,
    ) -> None:
        self.scratch, self.medium, self.subject = scratch, scratch.medium, subject
        self.payload = memoryview(payload)
        self.complaints = Complaints(subject.expected_messages, DEVICE_NAME)
        self.complained: list[int] = []  # for each state of the present request, the number of its complaint
        self.is_writable = "ro" not in subject.options.split(",")
        self.repaired: set[str] = set()  # the mount errors that made this session try a repair
        self.said: dict[str, str] = {}
        """The kernel's messages about the first state with each error of a mount. They are not part of the outcome,
        because they depend on timing (btrfs_printk in fs/btrfs/messages.c prints at most 100 lines in 5 s)."""
        self.outcomes: dict[StateOutcome, int] = {}
        self.new_outcomes: list[str] = []
        self.encoded: dict[tuple[str, TreeEntry], str] = {}
        self.looker = Look(ROOT, lasting_inodes=subject.lasting_inodes, closely=closely)
        self.traces: list[bytes] = []
        self.sectors_read: list[int] = []
        self.stretches = list(zip(stretches[::2], stretches[1::2]))
        self.left: list[list[tuple[int, int]]] = []
        self.elsewhere: list[list[tuple[int, int, str]]] = []
        self.tells_left = exempt is not None
        self.checks = True  # False for states that a check on the host has recovered
        self.began = time.time_ns()
        self.known_places = sorted([*self.stretches, *zip((exempt or [])[::2], (exempt or [])[1::2])])
        self.places_elsewhere: dict[tuple[int, int], Runs] = {}
        self.before_floor = [(sector, self.medium.pristine.get(sector, count)) for sector, count in targets(floor)]
        self.write(floor)
        self.medium.pristine.copy(self.medium.work, targets(floor))
        self.left_contents: list[list[bytes]] = [[] for _ in self.stretches]
        scratch.look_out([])
        forget_file_systems()
        # bob must not write when it looks: without noatime, each unmount would write time stamps back.
        self.volumes = Volumes(subject, scratch.assembly)
        self.mount = self.volumes.mounting(("noatime", "nodiratime"))
        scratch.accessed()

    def close(self) -> None:
        """Undo the writes of the floor, so that the medium has the base image again."""
        for sector, data in self.before_floor:
            self.medium.pristine.put(sector, data)
            self.medium.work.put(sector, data)

    def write(self, runs: list[int]) -> None:
        put, payload = self.medium.work.put, self.payload
        for target, source, count in zip(runs[::3], runs[1::3], runs[2::3]):
            data = payload[source * SECTOR : (source + count) * SECTOR]
            if len(data) != count * SECTOR:
                raise ValueError(f"the payload ends before sector {source + count}")
            put(target, data)

    def outcome(self, runs: list[int]) -> int:
        if self.scratch.count()[1] != self.scratch.counted[1]:
            raise RuntimeError("something wrote to the scratch device after it was unmounted")
        try:
            found = started(lambda: self.attempt(runs), lambda: self.put_back(runs, self.scratch.accessed()[2]))
        except LayerFailed as failure:
            found = str(failure), False, None
            self.complained.append(self.complaints.number([], read_only=False, mounted=False))
        trace, sectors_read, written = self.scratch.accessed()
        if self.tells_left:
            self.left.append(self.left_behind())
            self.elsewhere.append(self.written_elsewhere(written))
        self.put_back(runs, written)
        if self.scratch.reads:
            self.traces.append(trace)
            self.sectors_read.append(sectors_read)
        number = self.outcomes.get(found)
        if number is None:
            number = self.outcomes[found] = len(self.outcomes)
            self.new_outcomes.append(encode(found, self.said, self.encoded))
        return number

    def attempt(self, runs: list[int]) -> StateOutcome:
        """Write the state that ``runs`` describe, start its layers, and return its outcome. Raises LayerFailed or
        StartBroke if a layer does not start."""
        self.write(runs)
        with self.scratch.assembled():
            return self.recover_and_look()

    def left_behind(self) -> list[tuple[int, int]]:
        """Return the stretches (known parts of the device) that have changed. Each is a pair of the stretch's number
        and a number for its content. Equal contents of a stretch have the same number."""
        work, pristine, left = self.medium.work, self.medium.pristine, []
        for number, run in enumerate(self.stretches):
            if not work.is_same(pristine, *run):
                content, before = work.get(*run), self.left_contents[number]
                if content not in before:
                    before.append(content)
                left.append((number, before.index(content)))
        return left

    def written_elsewhere(self, written: Runs) -> list[tuple[int, int, str]]:
        """Return the parts of the runs ``written`` that lie outside of the stretches and the exempt sectors. Each
        item is the first sector, the number of sectors and a digest of the final content."""
        work, known, found = self.medium.work, self.places_elsewhere, []
        for run in set(written):
            if run not in known:
                known[run] = outside(run, self.known_places)
            for sector, count in known[run]:
                digest = hashlib.blake2b(work.get(sector, count), digest_size=16).hexdigest()
                found.append((sector, count, digest))
        return found

    def check(self) -> None:
        if self.checks:
            self.volumes.check()

    def recover_and_look(self) -> StateOutcome:
        """Recover the state as a boot would, and return its outcome. Add the kernel's messages to
        ``self.complaints``."""
        # A check on the host has set the time of ``self.began`` where it set a time.
        began = time.time_ns() if self.checks else self.began
        self.check()
        kernel = self.scratch.kernel
        kernel.skip()
        error, repaired = None, False
        if number := self.mount():
            error = os.strerror(number)
            lines = kernel.warnings()
            self.complained.append(self.complaints.number(lines, read_only=False, mounted=False))
            if lines:
                self.said.setdefault(error, DEVICE_NAME.sub("loop", "; ".join(lines[-2:])))
            # Repair only once for each error: a repair takes as long as many mounts, and a second one says little new.
            if not self.subject.repair or error in self.repaired:
                return error, False, None
            self.repaired.add(error)
            self.volumes.repair()
            repaired = True
            if self.mount():
                return error, True, None
        tree = self.looker.tree(began)
        read_only = self.is_writable and not self.volumes.are_writable()
        unmount()
        if not repaired:
            self.complained.append(self.complaints.number(kernel.warnings(), read_only=read_only, mounted=True))
        return error, repaired, tree

    def apart(self, runs: list[int], look: Callable[[], T]) -> T:
        """Build the state that ``runs`` describe, call ``look``, and return its result. The session does not add the
        result to its outcomes."""
        self.write(runs)
        with self.scratch.assembled():
            found = look()
        self.put_back(runs, self.scratch.accessed()[2])
        return found

    def put_back(self, runs: list[int], written: Runs) -> None:
        changed = merged([*targets(runs), *written])
        self.medium.put_back(changed)
        self.scratch.put_back += changed

    def recover_and_examine(self) -> list[tuple[str, str]]:
        """Recover the state, run the file system's checker and the checks of layers, and try to remove all files.
        Return what went wrong, as pairs of kind and words."""
        wrong: list[tuple[str, str]] = []
        has_layers, assembly = bool(self.subject.layers), self.scratch.assembly
        self.check()
        if has_layers and (fault := read_twice(assembly.path)):
            wrong.append((LAYER, fault))
        if not self.mount():
            unmount()
            wrong += self.volumes.faults()
            self.scratch.kernel.skip()
            if number := self.mount():
                wrong.append((REMOVAL, f"it does not mount a second time: {os.strerror(number)}"))
            else:
                said = self.complaints.unexpected(self.scratch.kernel.warnings())
                if has_layers and self.is_writable and (fault := write_and_read(ROOT)):
                    wrong.append((LAYER, fault))
                fault = self.volumes.remove_all()
                if not fault and self.is_writable:
                    os.sync()
                    fault = None if self.volumes.are_writable() else f"/: {os.strerror(errno.EROFS)}"
                unmount()
                # A thread of jfs writes removals, and makes the file system read-only if it finds damage. The removal
                # may then fail at once, after a sync, or only at the unmount. So messages until then count.
                later = self.complaints.unexpected(self.scratch.kernel.warnings())
                if fault or later:
                    wrong.append((REMOVAL, f"cannot be removed: {fault or f'the kernel says: {later[0]}'}"))
                if said := [*said, *later]:
                    wrong.append((KERNEL_MESSAGE, "; ".join(said[:2])))
        if has_layers and (fault := assembly.examine()):
            wrong.append((LAYER, fault))
        return wrong

    def recover_and_check(self, told: bytes, spoiler: str, seconds: float) -> tuple[int | None, str]:
        """Recover the state, and run the program's checker on it. Return the checker's exit code (None: it took more
        than ``seconds``) and output. ``told`` is what the program had printed before the crash. ``spoiler`` says how to
        damage the state before the check (:func:`spoil_and_check`). Raises Denial if the state does not mount."""
        self.check()
        if number := self.mount():
            raise Denial(f"the crash state to check does not mount: {os.strerror(number)}")
        before = mounts()
        try:
            return spoil_and_check(told, spoiler, seconds)
        finally:
            unmount_after_scripts(before)

    def audit(self) -> None:
        """Raise RuntimeError if the scratch image does not equal the base image again, or if the traces have lost an
        event."""
        if not self.scratch.came_back():
            raise RuntimeError("the scratch image differs from its base after the undo")


def targets(runs: list[int]) -> Iterable[tuple[int, int]]:
    return zip(runs[::3], runs[2::3])


def encode(outcome: StateOutcome, said: dict[str, str], encoded: dict[tuple[str, TreeEntry], str]) -> str:
    """Return ``outcome`` as JSON, with sorted keys. ``said`` maps each mount error to the kernel's messages about that
    error. ``encoded`` caches the JSON of each tree entry, by path and entry, because most entries are in many
    outcomes."""
    error, repaired, tree = outcome
    if error in said:
        error = f"{error}: {said[error]}"
    if tree is None:
        return _json({"error": error, "repaired": repaired, "tree": None})
    texts = []
    for named in tree:  # in the order of their paths
        text = encoded.get(named)
        if text is None:
            text = encoded[named] = _json(describe((named,)))[1:-1]
        texts.append(text)
    return _json({"error": error, "repaired": repaired})[:-1] + ',"tree":{' + ",".join(texts) + "}}"


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"))
