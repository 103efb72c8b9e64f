"""What a search can be asked for: which workloads, by the name of their bounds, and how many of them are tried.

Pure: a search that was stopped is made again from what its directory keeps of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bob.catalogue.durability import properties
from bob.catalogue.probe_files import shipped_probes
from bob.claim.property.rules import Property
from bob.errors import UsageError
from bob.search import ace, bounds
from bob.search.python_file import Choosing
from bob.search.space import ALL, Part, Space
from bob.search.within import Asking, Promising
from bob.workload.operations import Workload

ACE, ACE_OF_NAMES = "ace", "ace-metadata"
_VERBS = {ACE: ace.VERBS, ACE_OF_NAMES: ace.OF_NAMES}
SMALL, SHAPES = "small", "shapes"
"""The bounds where the user names none: of promises, and of a property."""
_PROMISES = {
    "fsync-file": ("data", "size", "attributes", "entry", "parent"),
    "fsync-directory": ("new-entries", "moved-entries", "entry"),
    "msync": ("data",),
    "sync": ("data", "size", "entry", "names", "parent", "attributes"),
}
"""What is asked of the calls that end ACE's workloads."""


@dataclass(frozen=True, slots=True)
class Search:
    """Workloads of up to ``length`` operations within the bounds ``name``, of which the TOML ``text`` is kept (empty:
    they are ACE's). They ask for the property ``prop`` of Table 1, or for what their last call promises (None).

    Where it ``is_python``, ``name`` and ``text`` are those of a Python file, and so are the workloads; their ``length``
    is 1.

    ``part`` of them is tried. With ``seconds``, workloads are drawn until that time has passed.
    """

    name: str
    text: str
    prop: str | None = None
    length: int = 1
    part: Part = ALL
    seconds: int | None = None
    is_python: bool = False

    @property
    def origin(self) -> str:
        """Where its workloads come from, for people."""
        return f"of {self.name}" if self.is_python else f"within the bounds {self.name}"

    @property
    def wanted(self) -> Property | None:
        """The property that is to be broken; None where it is what calls promise."""
        return shipped_probes((self.prop,))[0].property if self.prop else None

    @property
    def is_drawn(self) -> bool:
        """Whether its workloads are drawn, all of the greatest length."""
        return self.seconds is not None or self.part.sample is not None

    def space(self) -> Space:
        """Where its workloads come from. Raises UsageError for a mistake in the bounds; a Python file is run when its
        workloads are made."""
        if self.is_python:
            return Choosing(self.name, self.text)
        if not self.text:
            promises = tuple(one for one in properties() if one.name in _names())
            return ace.Ace(self.name, _VERBS[self.name], (*promises, *bounds.together(promises)))
        made, prop = bounds.parsed(self.name, self.text), self.wanted
        return Promising(made) if prop is None else Asking(made, prop)

    def workloads(self, space: Space) -> Iterator[Workload]:
        """Those that are tried, the shorter ones first, or as they are drawn."""
        return self.part.of(space, self.length, is_drawn=self.seconds is not None)

    def to_json(self) -> dict[str, Any]:
        """The search as a plain document."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Search:
        """The search in a plain document; KeyError or TypeError where there is none."""
        return cls(**{**document, "part": Part(**document["part"])})


def search(
    name: str | None, prop: str | None = None, length: int = 1, part: Part = ALL, seconds: int | None = None
) -> Search:
    """A search within the bounds ``name``: shipped, ACE's, or those in a file (None: those that bob takes by itself).

    Raises UsageError where there are no such bounds, for a mistake in them, and where these do not ask for properties.
    """
    if name in _VERBS:
        if prop is not None:
            raise UsageError(
                f"the bounds {name} ask what a call promises, not for {prop}",
                hint=f"--property goes with {SHAPES}, {SMALL} and bounds of your own",
            )
        return Search(name, "", None, length, part, seconds)
    asked = Search(*bounds.found(name or (SHAPES if prop else SMALL), tuple(_VERBS)), prop, length, part, seconds)
    asked.space()
    return asked


def search_of_file(path: Path, part: Part = ALL, seconds: int | None = None) -> Search:
    """A search among the workloads that the Python file ``path`` makes. It is run for one sequence of choices.

    Raises UsageError where it cannot be read, and for a mistake in it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint="is this the Python file with the workload?") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path.name}: {error}", hint="a workload is a Python file") from None
    Choosing(path.name, text).check()
    return Search(path.name, text, part=part, seconds=seconds, is_python=True)


def _names() -> frozenset[str]:
    return frozenset(f"{call}.{what}" for call, promised in _PROMISES.items() for what in promised)
