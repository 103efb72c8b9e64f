"""What glibc's allocator does with memory that is freed: give it back."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

_THRESHOLD_BYTES = 1024 * 1024
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""malloc.h; see mallopt(3)."""


def give_back_what_is_freed() -> None:
    """Have blocks from 1 MiB on go back to the system when they are freed, and threads share their heaps.

    By default glibc learns from the first large block that is freed to keep blocks of that size, and each thread has a
    heap of its own: in a long matrix, with recordings of some MB that come and go in several threads, half of the
    memory held nothing. To be called before there are threads. Does nothing where the C library is another one.
    """
    with suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _THRESHOLD_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _THRESHOLD_BYTES)
        mallopt(_M_ARENA_MAX, 2)


def give_back_now() -> None:
    """Give back what is free between what is in use, too, and what only a cycle of references holds.

    After a workload with a recording of many MB: that is the better part of 100 MB, and takes 10 to 50 ms.
    """
    gc.collect()
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
