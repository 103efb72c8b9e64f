"""Answer the host's requests about crash states: outcomes, checkers' verdicts, images."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from bob.agent.inside import medium
from bob.agent.inside.documents import subject_from
from bob.agent.inside.frames import Denial, Reply
from bob.agent.inside.images import differing, pack
from bob.agent.inside.scratch import Scratch
from bob.agent.inside.state_session import StateSession, targets
from bob.agent.inside.tracing import kernel_device

session: StateSession | None = None
scratch: Scratch | None = None


def end_session() -> None:
    global session
    ended, session = session, None
    if ended is not None:
        ended.close()


def end_scratch() -> None:
    global scratch
    end_session()
    ended, scratch = scratch, None
    if ended is not None:
        ended.close()


def observe_prepare(
    base: str,
    subject: list[Any],
    floor: list[int],
    reads: bool,
    stretches: list[int],
    exempt: list[int] | None,
    closely: bool,
    blob: bytes,
) -> Reply:
    """Make the scratch device for a workload: its base, and the ``floor``, writes that all states share; ``blob`` is
    the payload. With ``reads`` replies have the reads. If ``exempt`` is given, they have what each state left in the
    ``stretches``, and what it wrote outside of these and of ``exempt`` (flat lists of first sector and sectors).
    ``closely`` is as in :class:`bob.agent.inside.look.Look`. Each state assembles the layers of the ``subject``."""
    global session, scratch
    end_session()
    over, crashed = medium.medium_with(base, in_memory=True), subject_from(subject)
    made_of = medium.bases[base].disks, crashed.layers
    if scratch is not None and (scratch.medium, scratch.reads, scratch.made_of) != (over, reads, made_of):
        end_scratch()
    scratch = scratch or Scratch(over, reads, *made_of)
    session = StateSession(scratch, crashed, blob, floor, stretches, exempt, closely=closely)
    return {"events": scratch.layouts, "disk": kernel_device(scratch.disk.device) if crashed.layers else None}, b""


def observe(states: list[list[int]], audit: bool, lookups: list[int], blob: bytes) -> Reply:
    """Return outcomes of ``states``, each a flat list of (sector, payload sector, sectors); ``blob`` extends the
    payload. The reply has each state's outcome number, the JSON of each new outcome, and the lengths of new chunks and
    of traces, which are the blob. ``complaints`` has a number for each state (0: none), ``new_complaints`` kind and
    words. As :func:`observe_prepare` asked, it has traces and the device's counts of sectors read; ``left``, the
    numbers of the stretches that each state changed, with numbers of their contents; ``elsewhere``, the other writes,
    with digests. Without ``audit`` the reply is valid only after the next good audit. Lookups of the blocks ``lookups``
    (first and last) are traced: none if first > last, all if the list is empty."""
    under_way = _extended(blob)
    under_way.scratch.look_out(lookups)
    under_way.looker.new_chunks, under_way.new_outcomes = [], []
    under_way.traces, under_way.sectors_read, under_way.left, under_way.elsewhere = [], [], [], []
    under_way.complained, under_way.complaints.new = [], []
    started = time.monotonic()
    numbers = [under_way.outcome(runs) for runs in states]
    if audit:
        under_way.audit()
    header = {
        "outcomes": numbers,
        "new_outcomes": under_way.new_outcomes,
        "chunks": [len(chunk) for chunk in under_way.looker.new_chunks],
        "traces": [len(trace) for trace in under_way.traces],
        "sectors_read": under_way.sectors_read,
        "left": under_way.left,
        "elsewhere": under_way.elsewhere,
        "complaints": under_way.complained,
        "new_complaints": under_way.complaints.new,
        "seconds": time.monotonic() - started,
    }
    return header, b"".join([*under_way.looker.new_chunks, *under_way.traces])


def examine(states: list[list[int]], blob: bytes) -> Reply:
    """Run the file system's checker on each of ``states``, as in :func:`observe`, and remove all that is there.
    ``wrong`` has pairs of kind and words for each. Its own reads do not count."""
    started = time.monotonic()
    with _untraced(blob) as under_way:
        wrong = [under_way.apart(runs, under_way.recover_and_examine) for runs in states]
    return {"wrong": wrong, "seconds": time.monotonic() - started}, b""


def check_program(states: list[list[int]], told: list[str], spoilers: list[str], seconds: float, blob: bytes) -> Reply:
    """Run the program's checker on each of ``states``, as in :func:`observe`. ``told`` is the output before the crash
    (a byte a character), ``spoilers`` a script or "". ``answers`` has pairs of exit code and output."""
    with _untraced(blob) as under_way:
        answers = [
            under_way.apart(runs, partial(under_way.recover_and_check, text.encode("latin-1"), by, seconds))
            for runs, text, by in zip(states, told, spoilers)
        ]
    return {"answers": answers}, b""


def state_image(runs: list[int], blob: bytes) -> Reply:
    """Return the image of one state before its mount, as differences from a device that was never written."""
    under_way = _extended(blob)
    under_way.write(runs)
    work = under_way.medium.work
    packed = pack(work, differing(work, under_way.medium.stale.address))
    under_way.medium.put_back(targets(runs))
    under_way.scratch.put_back += targets(runs)
    under_way.audit()
    return {}, packed


def tamper(sector: int, blob: bytes) -> Reply:
    """For tests: change a sector of the scratch image, as a forgotten undo would."""
    image = _extended(blob).medium.work
    image.put(sector, bytes(byte ^ 0xFF for byte in image.get(sector, 1)))
    return {}, b""


@contextmanager
def _untraced(blob: bytes) -> Iterator[StateSession]:
    """Yield the session, extended by ``blob``, without traces of reads and lookups; audit it at the end."""
    under_way = _extended(blob)
    under_way.scratch.look_out([1, 0])
    under_way.scratch.trace_reads(False)
    yield under_way
    under_way.audit()
    under_way.scratch.trace_reads(True)


def _extended(blob: bytes) -> StateSession:
    if session is None:
        raise Denial("observe_prepare must come first")
    if blob:
        session.payload = memoryview(bytes(session.payload) + blob)
    return session
