"""Have glibc's allocator give freed memory back."""

import ctypes
import gc
from contextlib import suppress

_THRESHOLD_BYTES = 1024 * 1024
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # malloc.h; see mallopt(3)


def give_back_what_is_freed() -> None:
    """Have freed blocks from 1 MiB on go back to the system, and threads share two heaps. Call this before there are
    threads. By default glibc keeps large blocks, in a heap for each thread: half of the memory of a long matrix was
    free. With another C library, this does nothing."""
    with suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _THRESHOLD_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _THRESHOLD_BYTES)
        mallopt(_M_ARENA_MAX, 2)


def give_back_now() -> None:
    """Give back free memory between used blocks, and in cycles: some 100 MB after a large recording, in 10 to 50 ms."""
    gc.collect()
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
