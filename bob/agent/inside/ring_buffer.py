"""The kernel's trace buffer in binary form (``trace_pipe_raw``), little-endian; guest and host read it. bob does not
read the text form: to print 120 events, the kernel takes nearly as long as for a mount(2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

PAGE_BYTES = 4096
_HEADER_WORDS, _LENGTH_WORD, _LENGTH_BITS = 4, 2, (1 << 20) - 1
_TYPE_BITS = 5
_LENGTH_FIRST, _PADDING = 0, 29
"""Types of events. Length first: the first u32 of the data is its length (bytes, itself included). Padding: skip as
many bytes as the next u32 says, or, if the higher bits are zero, the rest of the page. A type from 1 to 28 is the
length in words. Types above padding are time stamps."""

_ID = re.compile(r"^ID: (\d+)$", re.M)
_FIELD = re.compile(r"^\tfield:.*?(\w+)(?:\[\d*\])?;\s*offset:(\d+);\s*size:(\d+);", re.M)

Pipe = Callable[[], bytes]  # reads a page of the buffer; raises BlockingIOError after the last page


def drained(read: Pipe) -> bytes:
    pages: list[bytes] = []
    try:
        while True:
            pages.append(used(read()))
    except BlockingIOError:
        return b"".join(pages)


def used(page: bytes) -> bytes:
    return page[: 4 * (_HEADER_WORDS + _words(memoryview(page).cast("I"), 0))]


def places(pages: bytes) -> Iterator[int]:
    """Yield the place of each event's data in ``pages``, as an offset in bytes, in order.

    A page begins with a time stamp (u64) and the length of its events (the low bits of another u64). An event is a u32
    and then its data. The lowest five bits of the u32 are the type (enum ring_buffer_type in
    include/linux/ring_buffer.h). The data begins with a u16, the ``id`` of the event's tracepoint.
    """
    words = memoryview(pages).cast("I")
    end = 0
    while end < len(words):
        word = end + _HEADER_WORDS
        end = word + _words(words, end)
        if (step := _step(words, word, end)) is not None:
            yield from range(4 * (word + 1), 4 * end, 4 * step)
            continue
        while word < end:
            kind = words[word] & (1 << _TYPE_BITS) - 1
            if _LENGTH_FIRST < kind < _PADDING:
                yield 4 * (word + 1)
                word += 1 + kind
            elif kind == _LENGTH_FIRST:
                yield 4 * (word + 2)
                word += 1 + words[word + 1] // 4
            elif kind == _PADDING:
                word = word + 1 + words[word + 1] // 4 if words[word] >> _TYPE_BITS else end
            else:
                word += 2


def _step(words: memoryview, first: int, end: int) -> int | None:
    """Return the length that all events between ``first`` and ``end`` have. Lengths and positions count words of 32
    bits. Return None if the events may have different lengths."""
    if first == end:
        return None
    kind = words[first] & (1 << _TYPE_BITS) - 1
    step = 1 + kind
    if not _LENGTH_FIRST < kind < _PADDING or (end - first) % step:
        return None
    heads = words[first:end:step].tolist()
    return step if {head & (1 << _TYPE_BITS) - 1 for head in heads} == {kind} else None


def _words(words: memoryview, page: int) -> int:
    length: int = words[page + _LENGTH_WORD]
    return (length & _LENGTH_BITS) // 4


def kind_at(pages: bytes, place: int) -> int:
    return pages[place] | pages[place + 1] << 8


def layout(text: str) -> dict[str, int | dict[str, list[int]]]:
    """Return the layout of a tracepoint's event. ``text`` is the content of the tracepoint's file "format". The layout
    has the event's ``id``, and the offset and the size (bytes) of each of its ``fields``. Raises ValueError if ``text``
    lacks the id."""
    number = _ID.search(text)
    if number is None:
        raise ValueError("a format of an event without its number")
    fields = {name: [int(offset), int(size)] for name, offset, size in _FIELD.findall(text)}
    return {"id": int(number[1]), "fields": fields}
