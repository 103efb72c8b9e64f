"""Builds crash states on a scratch image, recovers them as a boot would, and looks at what is there.

The scratch image is one file on tmpfs under one loop device. A state is written into it, mounted, looked at,
unmounted, and every sector that the state or its recovery wrote is put back: the cost is that of the changed sectors,
not of the image. What recovery wrote is known from the kernel's own trace; that the image is really back to the base is
checked byte for byte after each batch.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import time
import zlib
from typing import Any

from bob.guest.agent.devices import KernelLog, Loop, mount, unmount
from bob.guest.agent.frames import Refused, Reply
from bob.guest.agent.images import CHUNK, SECTOR, map_file
from bob.guest.agent.recorder import ROOT, WORK, base_path
from bob.guest.agent.tracing import Instance, kernel_device

SCRATCH = f"{WORK}/scratch"
OBSERVED_CHUNK = 4096
HIDDEN_PREFIX = ".bob-"
HIDDEN_NAMES = {"lost+found"}
TRACE_KIB = 4096
WRITE_EVENT = re.compile(r"block_bio_queue: \d+,\d+ [A-Z]*W[A-Z]* (\d+) \+ (\d+)")


class Scratch:
    """The scratch device of one workload: base image, payload, and what this end has told of outcomes so far."""

    def __init__(self, base: str, recovery: dict[str, Any]) -> None:
        self.recovery = recovery
        self.pristine = map_file(base_path(base))
        self.image = map_file(SCRATCH, len(self.pristine))
        self.image[:] = self.pristine[:]
        self.payload = b""
        self.chunks: dict[bytes, int] = {}
        self.outcomes: dict[str, int] = {}
        self.new_chunks: list[bytes] = []
        self.new_outcomes: list[str] = []
        self.loop = Loop(SCRATCH)
        events = {"block/block_bio_queue": f'dev == {kernel_device(self.loop.device)} && rwbs ~ "*W*"'}
        self.trace = Instance("bob-observe", events, TRACE_KIB)
        self.trace.__enter__()
        self.pipe = os.open(f"{self.trace.path}/trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        self.loop.release_holder()
        self.kernel = KernelLog()

    def close(self) -> None:
        os.close(self.pipe)
        self.kernel.close()
        self.trace.stop()
        self.loop.close()
        self.image.close()
        self.pristine.close()

    def floor(self, runs: list[int]) -> None:
        """Write what is durable in every state into the base that this scratch returns to."""
        for target, source, count in zip(runs[::3], runs[1::3], runs[2::3], strict=True):
            data = self.payload[source * SECTOR : (source + count) * SECTOR]
            self.pristine[target * SECTOR : (target + count) * SECTOR] = data
            self.image[target * SECTOR : (target + count) * SECTOR] = data

    def outcome(self, runs: list[int]) -> int:
        """Build, recover and observe one state; the number of its outcome."""
        image, payload = self.image, self.payload
        for target, source, count in zip(runs[::3], runs[1::3], runs[2::3], strict=True):
            image[target * SECTOR : (target + count) * SECTOR] = payload[source * SECTOR : (source + count) * SECTOR]
        observed = self.recover_and_look()
        for target, count in [*zip(runs[::3], runs[2::3], strict=True), *self.written()]:
            start, stop = target * SECTOR, (target + count) * SECTOR
            image[start:stop] = self.pristine[start:stop]
        encoded = json.dumps(observed, sort_keys=True, separators=(",", ":"))
        number = self.outcomes.get(encoded)
        if number is None:
            number = self.outcomes[encoded] = len(self.outcomes)
            self.new_outcomes.append(encoded)
        return number

    def written(self) -> list[tuple[int, int]]:
        """Sectors that were written to the device since the last call, by recovery, repair or unmount."""
        pieces = []
        while True:
            try:
                pieces.append(os.read(self.pipe, 65536))
            except BlockingIOError:
                break
        return [(int(a), int(b)) for a, b in WRITE_EVENT.findall(b"".join(pieces).decode(errors="replace"))]

    def recover_and_look(self) -> dict[str, Any]:
        """What a boot would do, and the tree that it finds; ``error`` where the state cannot be mounted."""
        fs, options = self.recovery["fs"], self.recovery["options"]
        if check := self.recovery["check"]:
            self.repair(check)
        number = mount(self.loop.path, ROOT, fs, options)
        found: dict[str, Any] = {"error": None, "repaired": False, "tree": None}
        if number:
            reason = re.sub(r"\bloop\d+", "loop", self.kernel.reason())
            found["error"] = f"{os.strerror(number)}: {reason}" if reason else os.strerror(number)
            if not self.recovery["repair"]:
                return found
            self.repair(self.recovery["repair"])
            found["repaired"] = True
            if mount(self.loop.path, ROOT, fs, options):
                return found
        try:
            found["tree"] = self.look()
        finally:
            unmount(ROOT)
        return found

    def repair(self, command: list[str]) -> None:
        """Run the file system's repair program; its exit code says what it found, which the mount shows anyway."""
        words = [self.loop.path if word == "DEVICE" else word for word in command]
        subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def look(self) -> dict[str, Any]:
        """Every name below the root: kind, inode number, links, size, contents as chunk numbers, target, attributes."""
        tree: dict[str, Any] = {}
        folders = [""]
        while folders:
            folder = folders.pop()
            try:
                names = os.listdir(ROOT + folder + "/")
            except OSError as error:
                tree[folder or "/"] = {"kind": "directory", "fault": f"cannot be listed: {error.strerror}"}
                continue
            for name in names:
                if not folder and (name in HIDDEN_NAMES or name.startswith(HIDDEN_PREFIX)):
                    continue
                path = f"{folder}/{name}"
                tree[path] = entry = self.look_at(ROOT + path)
                if entry["kind"] == "directory":
                    folders.append(path)
        return tree

    def look_at(self, path: str) -> dict[str, Any]:
        try:
            status = os.lstat(path)
        except OSError as error:
            return {"kind": "unreadable", "fault": error.strerror}
        entry: dict[str, Any] = {"kind": "other", "inode": status.st_ino, "links": status.st_nlink}
        try:
            if stat.S_ISDIR(status.st_mode):
                return {"kind": "directory", "inode": status.st_ino}
            if stat.S_ISLNK(status.st_mode):
                entry.update(kind="symlink", target=os.readlink(path))
            elif stat.S_ISREG(status.st_mode):
                entry.update(kind="file", size=status.st_size)
                entry["content"] = self.contents(path)
                if names := os.listxattr(path):
                    entry["xattrs"] = {name: self.number_of(os.getxattr(path, name)) for name in sorted(names)}
        except OSError as error:
            entry["fault"] = error.strerror
        return entry

    def contents(self, path: str) -> list[int]:
        numbers: list[int] = []
        fd = os.open(path, os.O_RDONLY)
        try:
            while data := os.read(fd, CHUNK):
                pieces = (data[start : start + OBSERVED_CHUNK] for start in range(0, len(data), OBSERVED_CHUNK))
                numbers.extend(map(self.number_of, pieces))
        finally:
            os.close(fd)
        return numbers

    def number_of(self, chunk: bytes) -> int:
        number = self.chunks.get(chunk)
        if number is None:
            number = self.chunks[chunk] = len(self.chunks)
            self.new_chunks.append(chunk)
        return number

    def is_back_to_base(self) -> bool:
        """Whether scratch and base are the same, byte for byte."""
        step = 16 * CHUNK
        return all(
            self.image[start : start + step] == self.pristine[start : start + step]
            for start in range(0, len(self.pristine), step)
        )


scratch: Scratch | None = None


def observe_prepare(base: str, recovery: dict[str, Any], floor: list[int], payload: int, blob: bytes) -> Reply:
    """Make the scratch device for a workload: its base, the sectors its states are made of, what all of them share.

    ``blob`` is ``payload`` bytes of zlib-compressed sectors.
    """
    global scratch
    if scratch is not None:
        scratch.close()
        scratch = None
    # every workload has its own floor: work on a copy, the base serves others
    private = f"{base}-floor"
    image = map_file(base_path(base))
    copy = map_file(base_path(private), len(image))
    copy[:] = image[:]
    copy.close()
    image.close()
    scratch = Scratch(private, recovery)
    scratch.payload = zlib.decompress(blob[:payload])
    scratch.floor(floor)
    return {}, b""


def observe(states: list[list[int]], blob: bytes) -> Reply:
    """Outcomes of ``states``, each a flat list of (sector, payload sector, sectors); ``blob`` extends the payload.

    Replies with the outcome number of each state and with the outcomes and contents that are new: the JSON of each,
    and the lengths of the chunks in the reply's zlib-compressed blob.
    """
    if scratch is None:
        raise Refused("nothing was prepared to be observed")
    if blob:
        scratch.payload += zlib.decompress(blob)
    scratch.new_chunks, scratch.new_outcomes = [], []
    started = time.monotonic()
    numbers = [scratch.outcome(runs) for runs in states]
    if not scratch.is_back_to_base() or scratch.trace.lost():
        raise RuntimeError("the scratch image did not come back to its base")
    header = {
        "outcomes": numbers,
        "new_outcomes": scratch.new_outcomes,
        "chunks": [len(chunk) for chunk in scratch.new_chunks],
        "seconds": time.monotonic() - started,
    }
    return header, zlib.compress(b"".join(scratch.new_chunks), 1)
