"""The request for a search: the *bounds* (limits for workloads, such as their files and operations), and how many
workloads the search tries. The run directory, which has all files of the search, keeps this request."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bob.catalogue.probe_files import shipped_probes
from bob.claim.property.rules import Property
from bob.errors import UsageError
from bob.schema import decode
from bob.search import ace, bounds
from bob.search.python_file import Choosing
from bob.search.space import ALL, Part, Space
from bob.search.within import Within
from bob.workload.operations import Workload

ACE, ACE_OF_NAMES = "ace", "ace-metadata"
_VERBS = {ACE: ace.VERBS, ACE_OF_NAMES: ace.OF_NAMES}
SMALL, SHAPES = (
    "small",
    "shapes",
)  # the default bounds of a search for broken promises, and of one for broken properties
PROPERTY_OPS, PROPERTY_SECONDS = 3, 600  # the defaults for properties: operations in a workload, and seconds of drawing
_PROMISES = (
    *("fsync-file.data", "fsync-file.size", "fsync-file.entry", "fsync-file.parent", "fsync-file.attributes"),
    *("fsync-directory.new-entries", "fsync-directory.moved-entries", "fsync-directory.entry", "msync.data"),
    *("sync.data", "sync.size", "sync.entry", "sync.names", "sync.parent", "sync.attributes"),
)
"""The promises of the calls that end ACE's workloads."""


@dataclass(frozen=True, slots=True)
class Search:
    """A search for violations in workloads of up to ``length`` operations. Usually ``name`` and ``text`` are the name
    and the TOML text of the bounds; the text is empty for the bounds of ACE (CrashMonkey's generator of workloads). If
    ``is_python`` is true, ``name`` and ``text`` are those of a Python file, and ``length`` is 1.

    ``props`` are the names of the properties that the workloads test. Each is a row in bob's table of results. If
    ``props`` is empty, each workload tests the promises of its last call. If the bounds want a full device, a file of
    ``filler`` bytes fills it. A ``filler`` of 0 means that bob has not measured this number yet. If ``seconds`` is not
    None, bob draws workloads for that time. It stops earlier if it has found a violation of each of ``props``."""

    name: str
    text: str
    props: tuple[str, ...] = ()
    length: int = 1
    part: Part = ALL
    seconds: int | None = None
    is_python: bool = False
    filler: int = 0

    @property
    def leave(self) -> int:
        """The number of bytes that the bounds leave free on the device; 0 if the bounds do not want a full device."""
        return 0 if self.is_python or not self.text else bounds.parsed(self.name, self.text).leave

    @property
    def origin(self) -> str:
        return f"of {self.name}" if self.is_python else f"within the bounds {self.name}"

    @property
    def words(self) -> str:
        part, operations = self.part, f"{self.length} operation{'' if self.length == 1 else 's'}"
        words = [f"workloads {self.origin}"]
        if not self.is_python:
            words += [f"of {operations}" if self.is_drawn or self.length == 1 else f"of up to {operations}"]
        words += [f"that ask for {', '.join(self.props)}"] if self.props else []
        words += [f"{part.sample} drawn by seed {part.seed}"] if part.sample is not None else []
        words += [f"drawn by seed {part.seed} for {self.seconds} s"] if self.seconds is not None else []
        words += [f"part {part.shard} of {part.shards}"] if part.shards > 1 else []
        return ", ".join(words)

    @property
    def wanted(self) -> tuple[Property, ...]:
        """The properties that the search tries to break. The value is () if the search tests promises of calls
        instead."""
        return tuple(probe.property for probe in shipped_probes(self.props)) if self.props else ()

    @property
    def is_drawn(self) -> bool:
        """Whether bob draws the workloads at random. Drawn workloads all have the length ``length``."""
        return self.seconds is not None or self.part.sample is not None

    def space(self) -> Space:
        """Return the space of the search's workloads. Raises UsageError for wrong bounds. This function does not run
        a Python file."""
        if self.is_python:
            return Choosing(self.name, self.text)
        if not self.text:
            promises = bounds.promised(_PROMISES)
            return ace.Ace(self.name, _VERBS[self.name], (*promises, *bounds.together(promises)))
        made = bounds.parsed(self.name, self.text, self.filler)
        return Within(made, self.wanted)

    def workloads(self, space: Space) -> Iterator[Workload]:
        """Return the workloads of ``space`` that the search tries, shorter ones first. Drawn workloads come in the
        order of the draws."""
        return self.part.of(space, self.length, is_drawn=self.seconds is not None)


def search_in(plain: Mapping[str, Any]) -> Search:
    """Return the search that ``plain`` JSON describes. The JSON of an older bob may have a single property, ``prop``,
    in place of ``props``. Raises ShapeError for a mistake."""
    props = [plain["prop"]] if plain.get("prop") else plain.get("props", ())
    return decode(Search, {**plain, "props": props})


def search(
    name: str | None,
    props: tuple[str, ...] = (),
    length: int | None = None,
    part: Part = ALL,
    seconds: int | None = None,
) -> Search:
    """Return a search within the bounds ``name``. These are shipped bounds, ACE's bounds, or the bounds in a file. None
    stands for the default bounds. Raises UsageError for unknown bounds, for a mistake in them, and for properties
    together with ACE's bounds."""
    if name in _VERBS:
        if props:
            raise UsageError(
                f"the bounds {name} test promises of calls, not the property {props[0]}",
                hint=f"use --property with {SHAPES}, {SMALL} or your own bounds",
            )
        return Search(name, "", (), length or 1, part, seconds)
    if props and part.sample is None and seconds is None:
        seconds = PROPERTY_SECONDS
    length = length or (PROPERTY_OPS if props else 1)
    asked = Search(*bounds.found(name or (SHAPES if props else SMALL), tuple(_VERBS)), props, length, part, seconds)
    asked.space()
    return asked


def bounds_names() -> list[str]:
    return [*bounds.shipped_bounds(), *_VERBS]


def search_of_file(path: Path, part: Part = ALL, seconds: int | None = None) -> Search:
    """Return a search in the workloads of the Python file ``path``. Raises UsageError if the file is unreadable or has
    a mistake."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint="is this the Python file with the workload?") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path.name}: {error}", hint="expected a Python file, in UTF-8") from None
    Choosing(path.name, text).check()
    return Search(path.name, text, part=part, seconds=seconds, is_python=True)
