"""A recording made up for tests: a small trace on a small device, with its base, plan, and what was seen of it."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence

from bob.crash.case import Case
from bob.crash.coverage import States
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.observe.observation import OutcomeTable
from bob.observe.observations import ExploredState, Observations
from bob.program.program import Program
from bob.program.transcript import ProgramCase, Transcript
from bob.subject import Subject, configuration
from bob.trace.base import Base
from bob.trace.model import DeviceWrite, Flush, Mark, Moment, Trace
from bob.trace.recording import RecordedDisk, Recording
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload
from bob.workload.pattern import FIRST_SETUP_NUMBER, contents

SECTORS = 64
CONFIGURATION: Subject = configuration("ext4", "", "data=ordered")
ENVIRONMENT = {
    "kernel": "6.1.0-56-amd64",
    "image": "debian-bookworm (52a5a67390575844)",
    "accelerator": "tcg",
    "clock": "virtual",
    "qemu": "7.2.22",
    "libvirt": "9.0.0",
    "mkfs_version": "e2fsprogs 1.47.0-2+b2",
}
WORKLOAD = Workload(
    "overwrite, then create",
    parse("write /a 0 4096"),
    parse("write /a 0 512; create /n"),
    Finish("natural", natural=True),
)
BEFORE = {"/": 2, "/a": 11}
AFTER = {"/": 2, "/a": 11, "/n": 12}


def at(time: int) -> Moment:
    return Moment(time, time / 4)


def write(index: int, sector: int, data: bytes, start: int, **more: bool) -> DeviceWrite:
    return DeviceWrite(index, sector, data, at(start), at(start + 1), task="kworker/0:1", **more)


TRACE = Trace(
    writes=(
        write(0, 3, b"b" * 1536, 2),
        write(1, 8, contents(1, 0, 512), 12),
        write(2, 20, b"j" * 1024, 14),
        write(3, 22, b"c" * 512, 18, fua=True),
    ),
    flushes=(Flush(at(4), at(6)), Flush(at(16), at(17))),
    marks=(Mark(at(10), "start"), Mark(at(30), "end")),
    start=at(10),
    end=at(30),
    device_sectors=(SECTORS,),
)


def packed(runs: Sequence[tuple[int, bytes]]) -> bytes:
    """A difference in the form that travels."""
    return zlib.compress(b"".join(struct.pack(">QI", sector, len(data) // 512) + data for sector, data in runs))


BASE = Base("b0b0b0b0b0b0b0b0", SECTORS * 512, packed([(0, b"super" * 1024 + bytes(512))]), "rw,data=ordered", "mke2fs")
RECORDING = Recording(
    (RecordedDisk(b"log\0\xff", (254, 0)),),
    "timeline",
    packed([(3, bytes(512))]),
    "rw,data=ordered",
    BEFORE,
    AFTER,
)


def plan(trace: Trace = TRACE) -> Plan:
    return Plan(trace, BASE, DeviceModel())


def case(workload: Workload = WORKLOAD, trace: Trace = TRACE) -> Case:
    return Case(CONFIGURATION, workload, BASE, RECORDING, plan(trace))


def program_case(transcript: Transcript, name: str = "mine") -> ProgramCase:
    """The same disk, as a program was recorded on it."""
    return ProgramCase(CONFIGURATION, Program(name, "", ()), BASE, RECORDING, plan(), transcript)


def outcome(*files: tuple[str, int, Sequence[int], int], error: str | None = None, tree: bool = True) -> str:
    """The JSON of an outcome; each file is (path, inode, chunks, size)."""
    entries: Mapping[str, object] = {
        path: {"kind": "file", "inode": inode, "links": 1, "size": size, "content": list(chunks)}
        for path, inode, chunks, size in files
    }
    return json.dumps({"error": error, "repaired": False, "tree": entries if tree else None})


INITIAL, OVERWRITTEN = (
    contents(FIRST_SETUP_NUMBER, 0, 4096),
    contents(1, 0, 512) + contents(FIRST_SETUP_NUMBER, 512, 3584),
)
NOTHING = outcome(("/a", 11, [0], 4096))
OVERWRITTEN_ALONE = outcome(("/a", 11, [1], 4096))
ALL = outcome(("/a", 11, [1], 4096), ("/n", 12, [], 0))
OUT_OF_ORDER = outcome(("/a", 11, [0], 4096), ("/n", 12, [], 0))
TORN = outcome(("/a", 11, [2], 4096))
UNMOUNTABLE = outcome(error="Structure needs cleaning: EXT4-fs (loop): bad geometry", tree=False)
HALF = contents(1, 0, 256) + contents(FIRST_SETUP_NUMBER, 256, 3840)
CUT = contents(FIRST_SETUP_NUMBER, 0, 2048)
COVERAGE = States(6, 14, 2**70, None, 4)


def observed(*states: tuple[CrashState, int | None], found: Sequence[str], lost: str | None = None) -> Observations:
    """States with their outcomes, numbers in ``found``."""
    return Observations(
        tuple(ExploredState(*state) for state in states),
        OutcomeTable(found, [INITIAL, OVERWRITTEN, HALF, CUT]),
        COVERAGE,
        lost,
    )


FIRST, LAST = CrashState(0), CrashState(len(plan().points) - 1, plan().points[-1].pending)
