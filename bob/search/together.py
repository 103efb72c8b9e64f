"""What several promises of one call say of an operation that is several changes.

A write across the end of a file is an overwrite and an append. It must be there after an fsync where the call promises
both the data and the size: neither promise by itself says so (:func:`bob.claim.property.calls.covered`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from bob.claim.property.rules import Property

NAME = "several"
"""``fsync-file.several``: the word that stands for what is promised in a property's name."""


def together(promises: Sequence[Property]) -> Iterator[Property]:
    """For each call that promises several things of the same files, that operations of several changes are durable."""

    def key(prop: Property) -> tuple[str, tuple[str, ...]]:
        return str(prop.call), prop.relations

    for _key, group in groupby(sorted(promises, key=key), key):
        several = list(group)
        kinds = tuple(dict.fromkeys(kind for one in several for kind in one.kinds))
        call = several[0].call
        if call is None or len(several) == 1:
            continue
        yield Property(
            name=f"{call.value}.{NAME}",
            family=several[0].family,
            meaning=f"{call.words} has made durable, when it returns, operations that are several changes: "
            + ", ".join(kinds),
            rule=several[0].rule,
            kinds=kinds,
            relations=several[0].relations,
            call=call,
            several=True,
        )
