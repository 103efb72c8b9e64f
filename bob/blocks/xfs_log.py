"""The log of xfs: the records that a write contains, and the items in these records."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from bob.blocks import xfs_format as form
from bob.blocks.parts import WritePart, journal

_SECTOR = 512

_BUFFERS = {
    4: "btree",
    5: "agf",
    6: "agfl",
    7: "agi",
    8: "inode chunk",
    9: "symlink",
    10: "directory",
    11: "directory data",
    12: "directory free index",
    13: "directory leaf",
    14: "directory leaf",
    15: "directory node",
    16: "attribute leaf",
    17: "remote attribute",
    18: "superblock",
}  # types of buffers (enum xfs_blft)

_ITEMS = {
    0x1236: "extents to free",
    0x1237: "extents freed",
    0x123D: "dquot",
    0x123E: "quota off",
    0x123F: "inode chunk created",
    0x1240: "reverse mapping intent",
    0x1241: "reverse mapping done",
    0x1242: "reference count intent",
    0x1243: "reference count done",
    0x1244: "extent map intent",
    0x1245: "extent map done",
    0x1246: "attribute intent",
    0x1247: "attribute done",
}  # types of items beside inodes and buffers (XFS_LI_*)


@dataclass(frozen=True, slots=True)
class LoggedItems:
    """The items of one log record. ``inodes`` are the numbers of the logged inodes, and ``things`` are the names of the
    other items. ``extents`` has pairs of an inode's number and its extents in their on-disk form. ``unmount`` is True
    if the record says that the file system was unmounted."""

    inodes: tuple[int, ...] = ()
    things: tuple[str, ...] = ()
    extents: tuple[tuple[int, bytes], ...] = field(default=(), repr=False)
    unmount: bool = False


@dataclass(slots=True)
class XfsLogReader:
    """A reader of the log. Callers pass it each write to the log, in the order of writing, since an item may begin in
    one record and continue in the next."""

    _regions: int = 0  # regions of the current item that are still to come

    _extents_of: tuple[int, int] | None = None
    """The inode whose extents come next, and the number of regions before these extents."""

    _known: dict[int, list[tuple[WritePart, LoggedItems]]] = field(default_factory=dict)

    def read(self, index: int, data: bytes) -> list[tuple[WritePart, LoggedItems]]:
        """Return the records in write ``index``, whose bytes are ``data``. If a caller reads a write again, return the
        same records as before."""
        if index not in self._known:
            self._known[index] = list(self._records(data))
        return self._known[index]

    def _records(self, data: bytes) -> Iterator[tuple[WritePart, LoggedItems]]:
        at = 0
        while at < len(data):
            header, stop = _header(data, at), at + _SECTOR
            if header is None:
                while stop < len(data) and data[stop : stop + 4] != form.LOG_MAGIC:
                    stop += _SECTOR
                yield journal("log record, continued" if any(data[at:stop]) else "log, zeros"), LoggedItems()
            elif not header.len:
                while data[stop : stop + 4] == form.LOG_MAGIC and not any(data[stop + 12 : stop + 16]):
                    stop += _SECTOR
                count = (stop - at) // _SECTOR
                yield journal(f"log, {count} stale block{'s' * (count != 1)} cleared"), LoggedItems()
            else:
                stop = at + (_headers(header) + -(-header.len // _SECTOR)) * _SECTOR
                logged = self._logged(header, data[at:stop])
                what = "log unmount record" if logged.unmount else "log record"
                part = journal(f"{what} at {header.lsn >> 32}/{header.lsn & 0xFFFFFFFF}", *_counted(logged.things))
                yield replace(part, inodes=logged.inodes), logged
            at = stop

    def _logged(self, header: Any, record: bytes) -> LoggedItems:
        inodes: list[int] = []
        things: list[str] = []
        extents: list[tuple[int, bytes]] = []
        unmount = False
        for flags, payload in _operations(header, record):
            unmount = unmount or bool(flags & form.OPERATION_UNMOUNT)
            if flags & form.OPERATION_WAS_CONTINUED or payload[:4] == form.LOG_TRANSACTION_MAGIC or len(payload) < 4:
                continue
            if self._regions:
                self._regions -= 1
                if self._extents_of is not None:
                    inode, before = self._extents_of
                    self._extents_of = (inode, before - 1) if before else None
                    if not before and not flags & form.OPERATION_CONTINUES:
                        extents.append((inode, payload))
                continue
            self._extents_of = None
            item = form.ITEM.parse(payload)
            if item.type == form.ITEM_INODE and len(payload) >= form.INODE_ITEM.sizeof():
                inode_item = form.INODE_ITEM.parse(payload)
                inodes.append(inode_item.ino)
                if inode_item.fields & form.FIELD_EXTENTS:
                    self._extents_of = (inode_item.ino, 1)
            elif item.type == form.ITEM_BUFFER and len(payload) >= form.BUFFER_ITEM.sizeof():
                buffer = form.BUFFER_ITEM.parse(payload)
                cancelled = "cancelled " if buffer.flags & form.BUFFER_CANCEL else ""
                things.append(cancelled + _BUFFERS.get(buffer.flags >> form.BUFFER_TYPE_SHIFT, "buffer"))
            elif item.type in _ITEMS:
                things.append(_ITEMS[item.type])
            else:
                continue
            self._regions = max(item.size - 1, 0)
        return LoggedItems(tuple(sorted(set(inodes))), tuple(things), tuple(extents), unmount)


def _operations(header: Any, record: bytes) -> Iterator[tuple[int, bytes]]:
    body = _restored(header, record)
    at = 0
    for _number in range(header.num_logops):
        if at + form.LOG_OPERATION_BYTES > len(body):
            return
        operation = form.LOG_OPERATION.parse(body[at : at + form.LOG_OPERATION_BYTES])
        at += form.LOG_OPERATION_BYTES
        yield operation.flags, body[at : at + operation.len]
        at += operation.len


def _restored(header: Any, record: bytes) -> bytes:
    headers = _headers(header)
    cycles = list(header.cycle_data)
    for number in range(1, headers):
        more = record[number * _SECTOR : (number + 1) * _SECTOR]
        cycles += form.LOG_MORE_CYCLES.parse(more).cycle_data if len(more) == _SECTOR else []
    body = bytearray(record[headers * _SECTOR : headers * _SECTOR + header.len])
    for number, cycle in zip(range(0, len(body), _SECTOR), cycles, strict=False):
        body[number : number + 4] = cycle
    return bytes(body)


def _headers(header: Any) -> int:
    if header.version < 2 or header.size <= form.LOG_BYTES_PER_HEADER:
        return 1
    return min(-(-int(header.size) // form.LOG_BYTES_PER_HEADER), 8)


def _header(data: bytes, at: int) -> Any:
    if data[at : at + 4] != form.LOG_MAGIC or len(data) - at < _SECTOR:
        return None
    return form.LOG_RECORD.parse(data[at : at + _SECTOR])


def _counted(things: tuple[str, ...]) -> tuple[str, ...]:
    counts = {thing: things.count(thing) for thing in things}
    return tuple(thing if count == 1 else f"{count} {thing}s" for thing, count in counts.items())
