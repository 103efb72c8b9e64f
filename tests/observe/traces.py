"""Traces for tests: written as the kernel would print them, and in the binary form in which a guest sends them."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from bob.agent.inside.ring_buffer import PAGE_BYTES
from bob.observe.events import AccessEvent, Bio, JournalRead, Lookup, ReadAhead, VolumeRead

_EVENT = re.compile(
    rb"block_bio_queue: \S+ (?P<kind>\S+) (?P<sector>\d+) \+ (?P<sectors>\d+)"
    rb"|lookup: \S+ b=(?P<block>\d+)"
    rb"|ahead: \S+ n=(?P<n>\d+) wait=0 size=(?P<size>\d+) (?P<blocks>.*)"
    rb"|(?P<begin>jread): "
    rb"|(?P<end>jread_end): "
)
_COMMON = (
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
)
_AHEAD = ("n 16 4", "wait 20 1", "size 21 4", *(f"b{number} {25 + 8 * number} 8" for number in range(8)))
_FIELDS = {
    "block_bio_queue": ("dev 8 4", "sector 16 8", "nr_sector 24 4", "rwbs[8] 28 8", "comm[16] 36 16"),
    "ahead": _AHEAD,
    "lookup": ("__probe_ip 8 8", "b 16 8"),
    "jread": ("__probe_ip 8 8",),
    "jread_end": ("__probe_func 8 8", "__probe_ret_ip 16 8"),
}
_NUMBERS = {name: 1055 + place for place, name in enumerate(_FIELDS)}


def _format(name: str) -> str:
    fields = (field.split() for field in _FIELDS[name])
    lines = (f"\tfield:some type {word};\toffset:{offset};\tsize:{size};\tsigned:0;\n" for word, offset, size in fields)
    return f'name: {name}\nID: {_NUMBERS[name]}\nformat:\n{_COMMON}\n{"".join(lines)}\nprint fmt: "field:"'


FORMATS = {name: _format(name) for name in _FIELDS}
"""The files ``format`` of the events that are traced: numbers, names, offsets and sizes as on Linux 6.1."""
LAYOUTS = {
    name: {
        "id": _NUMBERS[name],
        "fields": {"common_type": [0, 2], "common_pid": [4, 4]}
        | {
            word.partition("[")[0]: [int(offset), int(size)]
            for word, offset, size in (field.split() for field in fields)
        },
    }
    for name, fields in _FIELDS.items()
}
"""What a guest tells of them."""


def events(text: bytes) -> list[AccessEvent]:
    """The events of a trace as the kernel prints it."""
    found: list[AccessEvent] = []
    for event in _EVENT.finditer(text):
        if event["kind"]:
            found.append(Bio(event["kind"].startswith(b"R"), int(event["sector"]), int(event["sectors"])))
        elif event["block"]:
            found.append(Lookup(int(event["block"])))
        elif event["n"]:
            words = event["blocks"].split()[: int(event["n"])]
            blocks = tuple(int(word.partition(b"=")[2]) for word in words)
            found.append(ReadAhead(blocks, int(event["size"]) // 512))
        else:
            found.append(JournalRead(event["begin"] is not None))
    return found


DISK, VOLUME = 7 << 20, 253 << 20  # device numbers


def data(event: AccessEvent) -> bytes:
    """An event's data as it lies in the buffer."""
    if isinstance(event, Bio | VolumeRead):
        kind = b"RA" if isinstance(event, VolumeRead) or event.reads else b"WFS"
        device = VOLUME if isinstance(event, VolumeRead) else DISK
        number, span = _NUMBERS["block_bio_queue"], (event.sector, event.sectors)
        return struct.pack("<HHiIxxxxQI8s16s", number, 0, event.task, device, *span, kind, b"Rx")
    if isinstance(event, Lookup):
        return struct.pack("<HHiQQ", _NUMBERS["lookup"], 0, 7, 2**64 - 9, event.block)
    if isinstance(event, ReadAhead):
        blocks = (*event.blocks, *[0] * 8)[:8]
        return struct.pack("<HHiQIBI8Q", _NUMBERS["ahead"], 0, 7, 0, len(event.blocks), 0, event.sectors * 512, *blocks)
    return struct.pack("<HHiQQ", _NUMBERS["jread" if event.begins else "jread_end"], 0, 7, 0, 0)


def entry(data: bytes, *, long: bool = False) -> bytes:
    """An entry of the buffer: its length in its type, or if it is ``long`` before the data."""
    data += bytes(-len(data) % 4)
    return (
        struct.pack("<II", 5 << 5, 4 + len(data)) + data if long else struct.pack("<I", 5 << 5 | len(data) // 4) + data
    )


def page(entries: Sequence[bytes]) -> bytes:
    """A page of the buffer with these entries; after them the room that is left."""
    used = b"".join(entries)
    # Beside the length there may be flags: events were lost before this page.
    return (struct.pack("<QQ", 1 << 40, 1 << 31 | len(used)) + used).ljust(PAGE_BYTES, b"\0")


def pages(found: Sequence[AccessEvent]) -> bytes:
    """A trace of these events as it travels."""
    if not found:
        return b""
    entries = b"".join(entry(data(event)) for event in found)
    return struct.pack("<QQ", 0, len(entries)) + entries
