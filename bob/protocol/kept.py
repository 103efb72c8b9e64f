"""Which names a sync has made durable, whatever changed them later."""

from __future__ import annotations

from bob.protocol.effects import Effects
from bob.workload import operations as ops


def names_kept(effects: Effects, before: int | None) -> frozenset[int]:
    """The calls whose names a sync that had returned before call number ``before`` has made durable (None: none has):
    one of their directory, or of all. What a sync of a file does for its name is another question."""
    if before is None:
        return frozenset()
    last: dict[int | None, int] = {}
    """The last sync of each directory; under None, of all."""
    for deed in effects.deeds:
        if deed.call < before and isinstance(deed.operation, ops.Fsync | ops.Sync):
            last[deed.file if isinstance(deed.operation, ops.Fsync) else None] = deed.call
    if not last:
        return frozenset()
    of_all = last.get(None, -1)
    return frozenset(
        change.call
        for entry, history in effects.entries.items()
        for change in history
        if 0 <= change.call < max(of_all, last.get(entry.folder, -1))
    )
