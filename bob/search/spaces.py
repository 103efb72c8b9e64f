"""The spaces that a user can name: bounds of a file, shipped or not, and those of ACE."""

from __future__ import annotations

from bob.catalogue.durability import properties
from bob.claim.property.rules import Property
from bob.errors import UsageError
from bob.search import ace
from bob.search.bounds import load
from bob.search.space import Space
from bob.search.together import together
from bob.search.within import Asking, Promising

ACE, ACE_OF_NAMES = "ace", "ace-metadata"
_VERBS = {ACE: ace.VERBS, ACE_OF_NAMES: ace.OF_NAMES}
SMALL, SHAPES = "small", "shapes"
"""The bounds where the user names none: of promises, and of a property."""
_PROMISES = {
    "fsync-file": ("data", "size", "attributes", "entry"),
    "fsync-directory": ("new-entries", "moved-entries", "entry"),
    "msync": ("data",),
    "sync": ("data", "size", "entry", "names", "parent", "attributes"),
}
"""What is asked of the calls that end ACE's workloads."""


def space(name: str | None, prop: Property | None = None) -> Space:
    """The workloads within the bounds ``name`` (None: those that bob takes by itself). They ask for ``prop``, or for
    what their last call promises.

    Raises UsageError where there are no such bounds, for a mistake in them, and where these do not ask for properties.
    """
    if name in _VERBS:
        if prop is not None:
            raise UsageError(
                f"the bounds {name} ask what a call promises, not for {prop.name}",
                hint=f"--property goes with {SHAPES}, {SMALL} and bounds of your own",
            )
        promises = tuple(one for one in properties() if one.name in _names())
        return ace.Ace(name, _VERBS[name], (*promises, *together(promises)))
    if prop is None:
        return Promising(load(name or SMALL, tuple(_VERBS)))
    return Asking(load(name or SHAPES, tuple(_VERBS)), prop)


def _names() -> frozenset[str]:
    return frozenset(f"{call}.{what}" for call, promised in _PROMISES.items() for what in promised)
