"""Tell a refusal of the contents of the disks from all other errors. Only such a refusal counts as an answer about a
crash state. Any other error may be an error of bob, or one that passes, such as a device that is busy."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TypeVar

from bob.agent.inside.frames import ContentRefused, Denial

T = TypeVar("T")

MOST_STARTS = 3
OF_CONTENTS = {
    errno.EINVAL: "superblocks that do not fit together (super_1_load in drivers/md/md.c, and most targets)",
    errno.EIO: "an array that is dirty and degraded (raid5_run in drivers/md/raid5.c); a read that fails",
    errno.EILSEQ: "a wrong checksum (sb_check in drivers/md/dm-thin-metadata.c)",
    errno.ENOTBLK: "a block of another place (node_check in drivers/md/persistent-data/dm-btree-spine.c)",
    errno.ENODATA: "a key that a tree lacks (dm_btree_lookup), such as a thin device",
    errno.ENXIO: "a snapshot without its mark (read_header in drivers/md/dm-snap-persistent.c)",
    errno.ENOSPC: "metadata without free blocks (drivers/md/persistent-data/dm-space-map-metadata.c)",
    errno.ENOENT: "a file that is gone, on a file system that is a layer",
    errno.EUCLEAN: "a damaged file system (EFSCORRUPTED)",
    errno.EBADMSG: "a file system with a wrong checksum (EFSBADCRC)",
    errno.EROFS: "a file system on an array that only starts for reading",
}
"""The errnos with which the kernel refuses contents. Each has a cause, with the place in the kernel's code."""


class LayerFailed(Denial):
    """An error: the contents of the disks keep a layer (such as RAID) from starting. If a crash state causes the error,
    the error counts as the result of that state's mount."""


class StartBroke(Exception):
    """An error: a layer of a crash state does not start, but not because of the contents of the disks."""


def refusal(words: str, error: OSError) -> Denial:
    """Return an error with ``words`` and the kernel's message. It is a ContentRefused if drivers return the errno of
    ``error`` when they refuse contents."""
    kind = ContentRefused if error.errno in OF_CONTENTS else Denial
    return kind(f"{words}: {error.strerror}")


def started(attempt: Callable[[], T], undo: Callable[[], None]) -> T:
    """Return the result of ``attempt``, which starts the layers of one crash state, and looks at their device. After an
    attempt that failed, ``undo`` gives the disks the contents of the crash state again. Raises LayerFailed if two
    attempts are refused in the same words. Raises RuntimeError if the attempts differ, or if none is an answer."""
    refused: LayerFailed | None = None
    broke: StartBroke | None = None
    for number in range(MOST_STARTS):
        if number:
            undo()
        try:
            found = attempt()
        except LayerFailed as failure:
            if refused is not None and str(refused) == str(failure):
                raise
            if refused is not None:
                raise RuntimeError(f"two starts of one crash state differ: {refused}; {failure}") from failure
            refused = failure
        except StartBroke as failure:
            broke = failure
        else:
            if refused is not None:
                raise RuntimeError(f"a crash state started, but not at the first attempt: {refused}")
            return found
    raise RuntimeError(str(broke)) from broke
