"""The events that the kernel traced while bob observed a crash state, read from their binary form
(:mod:`bob.agent.inside.ring_buffer`)."""

from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any, NamedTuple

from bob.agent.shared import kind_at, places
from bob.trace.model import SECTOR_BYTES

BIO = "block_bio_queue"
_MOST_BLOCKS = 8  # blocks in one event of ``__bh_read_batch``, at most
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


class Bio(NamedTuple):
    """A bio to the device below all layers. ``task`` is the number of the task that sent it, if the file system is on
    layers (device-mapper or md devices); otherwise it is 0."""

    reads: bool
    sector: int
    sectors: int
    task: int = 0


class VolumeRead(NamedTuple):
    """A read of the top device of the layers (device-mapper or md), the one with the file system. The task with the
    number ``task`` sent it. The kernel translates the read into bios to the disks, which follow in the trace."""

    sector: int
    sectors: int
    task: int = 0


class ReadAhead(NamedTuple):
    """Readahead of ``blocks`` (``__bh_read_batch``): the kernel asks for them, and does not wait. Each block has
    ``sectors`` sectors."""

    blocks: tuple[int, ...]
    sectors: int


class Lookup(NamedTuple):
    block: int


class JournalRead(NamedTuple):
    """The beginning (if ``begins`` is True) or the end of jbd2's read of a block of its journal (``jread``)."""

    begins: bool


AccessEvent = Bio | VolumeRead | ReadAhead | Lookup | JournalRead
_Decode = Callable[[bytes, int], AccessEvent | None]


class Decoder:
    """A decoder of the kernel's events. ``layouts`` maps the name of each event to its number and fields. If the file
    system is on layers (device-mapper or md devices), ``disk`` is the kernel's number of the device below all layers,
    which contains all disks. A bio to any other device then counts as a :class:`VolumeRead`."""

    def __init__(self, layouts: Mapping[str, Mapping[str, Any]], disk: int | None = None) -> None:
        self._kinds: dict[int, _Decode] = {
            layout["id"]: _DECODERS[name](layout["fields"]) for name, layout in layouts.items()
        }
        if disk is not None and (bios := layouts.get(BIO)) is not None:
            self._kinds[bios["id"]] = _bio_on_layers(bios["fields"], disk)

    def events(self, pages: bytes) -> list[AccessEvent]:
        """Return the events in order. Raises KeyError for an event that bob did not ask the kernel for."""
        found = (self._kinds[kind_at(pages, place)](pages, place) for place in places(pages))
        return [event for event in found if event is not None]


Fields = Mapping[str, Sequence[int]]  # offset and size of each field of an event, in bytes


def _unpacker(fields: Fields, *names: str) -> Callable[[bytes, int], tuple[Any, ...]]:
    form, end = "<", 0
    for name in names:
        offset, size = fields[name]
        form += f"{offset - end}x{_CODES[size]}"
        end = offset + size
    return Struct(form).unpack_from


def _bio(fields: Fields) -> _Decode:
    unpack, kind = _unpacker(fields, "sector", "nr_sector"), fields["rwbs"][0]

    def decode(pages: bytes, place: int) -> Bio:
        sector, sectors = unpack(pages, place)
        return Bio(pages[place + kind] == ord("R"), sector, sectors)  # R, RA, RM, ...; W, WS, FWFS, ...

    return decode


def _bio_on_layers(fields: Fields, disk: int) -> _Decode:
    unpack, kind = _unpacker(fields, "common_pid", "dev", "sector", "nr_sector"), fields["rwbs"][0]

    def decode(pages: bytes, place: int) -> AccessEvent | None:
        task, number, sector, sectors = unpack(pages, place)
        if number == disk:
            return Bio(pages[place + kind] == ord("R"), sector, sectors, task)
        return VolumeRead(sector, sectors, task)

    return decode


def _ahead(fields: Fields) -> _Decode:
    unpack = _unpacker(fields, "n", "wait", "size", *(f"b{number}" for number in range(_MOST_BLOCKS)))

    def decode(pages: bytes, place: int) -> ReadAhead | None:
        n, wait, size, *blocks = unpack(pages, place)
        return None if wait else ReadAhead(tuple(blocks[:n]), size // SECTOR_BYTES)

    return decode


def _lookup(fields: Fields) -> _Decode:
    unpack = _unpacker(fields, "b")
    return lambda pages, place: Lookup(*unpack(pages, place))


_DECODERS: dict[str, Callable[[Fields], _Decode]] = {
    BIO: _bio,
    "ahead": _ahead,
    "lookup": _lookup,
    "jread": lambda _fields: lambda _pages, _place: JournalRead(True),
    "jread_end": lambda _fields: lambda _pages, _place: JournalRead(False),
}
