"""Handle the host's requests about crash states. A reply has, for example, the outcome of each state (what a mount of
it showed), the result of a program's checker, or the image of a state. The *scratch device* holds the crash state that
is mounted. The *session* is all that the agent keeps about the crash states of one workload. A *payload* has the data
of all writes of the workload; a crash state is a list of copies from the payload to the scratch device."""

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
    """Prepare to observe the crash states of a workload. The scratch device gets the ``base`` image (the content before
    the recording) and the ``floor`` (the writes that all states share). ``blob`` is the payload. ``subject`` describes
    the file system and its layers, such as RAID (documents.py). The agent assembles the layers anew for each state.
    ``closely`` is as in :class:`bob.agent.inside.look.Look`.

    If ``reads`` is true, later replies say what recovery reads. ``stretches`` and ``exempt`` are parts of the device,
    as flat lists of first sector and number of sectors. If ``exempt`` is not None, later replies also say what the
    mount of each state wrote, but not what it wrote into ``exempt`` (such as the log). For each of the ``stretches``
    that changed, a reply has a number: equal contents of a stretch have equal numbers. For other writes, a reply has
    digests.

    In the reply, ``clock`` is the guest's time (seconds since 1970). If the file system's check program (such as
    e2fsck) runs on the host, it must see this time.
    """
    global session, scratch
    end_session()
    over, crashed = medium.medium_with(base, in_memory=True), subject_from(subject)
    made_of = medium.bases[base].disks, crashed.layers, crashed.lost
    if scratch is not None and (scratch.medium, scratch.reads, scratch.made_of) != (over, reads, made_of):
        end_scratch()
    scratch = scratch or Scratch(over, reads, *made_of)
    session = StateSession(scratch, crashed, blob, floor, stretches, exempt, closely=closely)
    disk = kernel_device(scratch.disk.device) if crashed.layers else None
    return {"events": scratch.layouts, "disk": disk, "clock": session.began // 1_000_000_000}, b""


def observe(states: list[list[int]], audit: bool, lookups: list[int], blob: bytes, checks: bool = True) -> Reply:
    """Build, mount and read each of ``states``, and return the outcomes. A state is a flat list of (sector, sector in
    the payload, number of sectors). ``blob`` has data to append to the payload.

    In the reply, ``outcomes[i]`` is the number of the outcome of state i, and ``new_outcomes`` has, as JSON, the
    outcomes that no earlier reply of this session had. The reply's blob has new chunks of files, and then the traces of
    reads; ``chunks`` and ``traces`` have their lengths. ``complaints[i]`` is the number of the complaint about state i
    (0: the kernel did not complain), and ``new_complaints`` has pairs of kind and words.

    Some fields depend on the arguments of :func:`observe_prepare`. The traces say what recovery read, and
    ``sectors_read`` has, for each state, the number of sectors read. ``left`` has, for each state, the stretches whose
    content has changed, as pairs of the stretch's number and the number of its content. ``elsewhere`` has the writes
    outside of the stretches and of ``exempt``, with digests.

    If ``audit`` is true, the agent finally checks that it has undone all changes of the scratch device. If it is false,
    the caller must not trust the reply until a later request with ``audit`` succeeds. ``lookups`` (first and last
    block) limits the trace of lookups in the page cache of the device. Nothing is traced if first > last. All blocks
    are traced if the list is empty. If ``checks`` is false, the agent does not run the file system's check program,
    because that has already run on the host.
    """
    under_way = _extended(blob)
    under_way.scratch.look_out(lookups)
    under_way.looker.new_chunks, under_way.new_outcomes = [], []
    under_way.traces, under_way.sectors_read, under_way.left, under_way.elsewhere = [], [], [], []
    under_way.complained, under_way.complaints.new = [], []
    started = time.monotonic()
    under_way.checks = checks
    try:
        numbers = [under_way.outcome(runs) for runs in states]
    finally:
        under_way.checks = True
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
    """Recover each of ``states`` (as in :func:`observe`), run the file system's checker on it, and try to remove all
    its files. In the reply, ``wrong`` lists for each state what went wrong, as pairs of kind and words."""
    started = time.monotonic()
    with _untraced(blob) as under_way:
        wrong = [under_way.apart(runs, under_way.recover_and_examine) for runs in states]
    return {"wrong": wrong, "seconds": time.monotonic() - started}, b""


def check_program(states: list[list[int]], told: list[str], spoilers: list[str], seconds: float, blob: bytes) -> Reply:
    """Run the program's checker on each of ``states``, which are as in :func:`observe`. A crash leaves ``states[i]``,
    and before that crash the program had printed ``told[i]`` (one character for each byte). ``spoilers[i]`` is the name
    of a script that damages ``states[i]`` before the check, or "". In the reply, ``answers`` has pairs of exit code and
    output."""
    with _untraced(blob) as under_way:
        answers = [
            under_way.apart(runs, partial(under_way.recover_and_check, text.encode("latin-1"), by, seconds))
            for runs, text, by in zip(states, told, spoilers)
        ]
    return {"answers": answers}, b""


def state_image(runs: list[int], blob: bytes) -> Reply:
    """Return the image of one crash state before its mount, as differences from a device that was never written to.
    ``runs`` is the state, as in :func:`observe`."""
    under_way = _extended(blob)
    under_way.write(runs)
    work = under_way.medium.work
    packed = pack(work, differing(work, under_way.medium.stale.address))
    under_way.medium.put_back(targets(runs))
    under_way.scratch.put_back += targets(runs)
    under_way.audit()
    return {}, packed


def tamper(sector: int, blob: bytes) -> Reply:
    """Change a sector of the scratch image without a record of the change. With this request, tests show that bob would
    notice if it forgot to undo a change."""
    image = _extended(blob).medium.work
    image.put(sector, bytes(byte ^ 0xFF for byte in image.get(sector, 1)))
    return {}, b""


@contextmanager
def _untraced(blob: bytes) -> Iterator[StateSession]:
    """Yield the session to a ``with`` block, during which reads and lookups are not traced. Before the block, append
    ``blob`` to the session's payload. After the block, check that the scratch image is as before
    (:meth:`StateSession.audit`)."""
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
