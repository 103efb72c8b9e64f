"""A replay of a dm-log-writes log in the manner of xfstests' replay-log, strict and with nothing of bob's in it.

The format is that of Linux drivers/md/dm-log-writes.c. Where replay-log takes more than that (it reads no further than
the count, and does not mind what is behind a mark), this does not.
"""

from __future__ import annotations

import struct

FLUSH, FUA, DISCARD, MARK, METADATA = (1 << bit for bit in range(5))


def replay(log: bytes, image: bytearray, *, limit: int = 0, end_mark: str | None = None) -> list[str]:
    """Replay ``log`` onto ``image`` up to and with entry number ``limit``, counted from 1, or the mark ``end_mark``, or
    to its end; the marks on the way."""
    magic, version, count, sectorsize = struct.unpack_from("<QQQI", log)
    assert magic == 0x6A736677736872
    assert version == 1
    assert sectorsize in (512, 1024, 2048, 4096)
    assert not any(log[28:sectorsize])
    assert len(log) % sectorsize == 0
    marks: list[str] = []
    position = sectorsize
    for number in range(1, count + 1):
        header = log[position : position + sectorsize]
        assert len(header) == sectorsize
        position += sectorsize
        sector, sectors, flags, length = struct.unpack_from("<QQQQ", header)
        assert flags < 1 << 5
        assert flags or sectors, "neither a write nor anything else: replay-log calls it malformed"
        assert not any(header[32 + length :])
        if flags & MARK:
            assert (flags, sectors) == (MARK, 0)
            assert 0 < length <= sectorsize - 33
            marks.append(header[32 : 32 + length].decode("ascii"))
            assert " " not in marks[-1]
        else:
            assert length == 0
        if sectors and not flags & DISCARD:
            data = log[position : position + sectors * sectorsize]
            assert len(data) == sectors * sectorsize
            assert (sector + sectors) * sectorsize <= len(image)
            image[sector * sectorsize : (sector + sectors) * sectorsize] = data
            position += len(data)
        if number == limit or (flags & MARK and marks[-1] == end_mark):
            return marks
    assert position == len(log)
    assert limit <= count
    assert end_mark is None, f"there is no mark {end_mark}"
    return marks
