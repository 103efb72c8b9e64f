"""A cache of the outcomes of mounted disks. An *outcome* is what a mount shows. Two workloads may lead to the same
disk, which then needs only one mount (on ext2, a fifth of all mounted disks). Equal disks have the same outcome and
reads, by the assumptions of :mod:`bob.observe.predict`."""

import json
import zlib
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bob.observe.accesses import Access
from bob.observe.observation import OutcomeTable, split


@dataclass(frozen=True, slots=True)
class CachedMount:
    """The result of the mount of a disk, compressed. bob caches only disks that mount without a repair. ``found`` is
    the outcome as JSON. In this JSON, an index into ``chunks`` (``packed_chunks``, decompressed) stands for each
    content of a file. ``accesses`` are the reads and writes of the disk. ``on_host`` is True if the host ran the file
    system's check, and no guest did."""

    found: str
    packed_chunks: tuple[bytes, ...]
    packed_accesses: bytes
    on_host: bool = False

    @property
    def chunks(self) -> list[bytes]:
        return [zlib.decompress(chunk) for chunk in self.packed_chunks]

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The reads and writes of the disk at check, mount, observation and unmount, in order."""
        numbers = array("q", zlib.decompress(self.packed_accesses))
        fields = zip(numbers[::4], numbers[1::4], numbers[2::4], numbers[3::4], strict=True)
        return tuple(Access(bool(reads), *rest) for reads, *rest in fields)


Disks = dict[bytes, CachedMount]
"""The mounted disks of one base image, by :meth:`Composer.disk`. Threads share this table."""
Sights = dict[str, Disks]  # the mounted disks of a configuration, by the name of their base image


class OutcomeCollector:
    """A collector of outcomes in ``findings``, where each distinct outcome has one number. The outcomes come from a
    guest, which has its own numbers for them, and from cached disks."""

    def __init__(self, findings: OutcomeTable) -> None:
        self.findings = findings
        self._contents: dict[bytes, int] = {}
        self._outcomes: dict[str, int] = {}
        self._told_contents: list[int] = []
        self._told_outcomes: list[int] = []
        self._in_itself: dict[int, tuple[str, tuple[bytes, ...]] | None] = {}
        self._packed: dict[int, bytes] = {}

    def tell(self, found: Sequence[str], lengths: Sequence[int], contents: bytes) -> None:
        """Add the outcomes that are new in a report of the guest. The guest reports each outcome and each content only
        once. ``found`` has the outcomes. ``contents`` has the new contents of files, one after the other, and
        ``lengths`` has their lengths (bytes)."""
        self._told_contents += map(self._content, split(contents, lengths))
        self._told_outcomes += [self._outcome(text, self._told_contents) for text in found]

    def number_of(self, outcome: int) -> int:
        return self._told_outcomes[outcome]

    def recalled(self, sight: CachedMount) -> int:
        return self._outcome(sight.found, [self._content(chunk) for chunk in sight.chunks])

    def sight(self, outcome: int, accesses: Sequence[Access]) -> CachedMount | None:
        """Return what to cache for a disk with this outcome. Return None if the disk did not mount without a repair.
        bob repairs only the first state with each mount error, so such an outcome also depends on other states."""
        if outcome not in self._in_itself:
            self._in_itself[outcome] = self._by_itself(outcome)
        if (in_itself := self._in_itself[outcome]) is None:
            return None
        numbers = array("q", (number for access in accesses for number in access))
        return CachedMount(*in_itself, zlib.compress(numbers.tobytes(), 1))

    def _by_itself(self, outcome: int) -> tuple[str, tuple[bytes, ...]] | None:
        chunks: dict[int, int] = {}
        text, document = _renumbered(
            self.findings.found[outcome], lambda number: chunks.setdefault(number, len(chunks))
        )
        if document["error"] is not None or document["repaired"]:
            return None
        return text, tuple(map(self._packed_chunk, chunks))

    def _packed_chunk(self, number: int) -> bytes:
        if number not in self._packed:
            self._packed[number] = zlib.compress(self.findings.chunks[number], 1)
        return self._packed[number]

    def _content(self, chunk: bytes) -> int:
        number = self._contents.setdefault(chunk, len(self._contents))
        if number == len(self.findings.chunks):
            self.findings.chunks.append(chunk)
        return number

    def _outcome(self, found: str, numbers: Sequence[int]) -> int:
        text, _document = _renumbered(found, numbers.__getitem__)
        number = self._outcomes.setdefault(text, len(self._outcomes))
        if number == len(self.findings.found):
            self.findings.found.append(text)
        return number


def _renumbered(found: str, number: Callable[[int], int]) -> tuple[str, dict[str, Any]]:
    """Return the outcome ``found`` with other numbers for its contents, as text and as a JSON document. The function
    ``number`` maps an old number to a new number. Equal outcomes have equal texts."""
    document: dict[str, Any] = json.loads(found)
    for _path, entry in sorted((document["tree"] or {}).items()):
        if "content" in entry:
            entry["content"] = [number(content) for content in entry["content"]]
        if "xattrs" in entry:
            entry["xattrs"] = {name: number(value) for name, value in sorted(entry["xattrs"].items())}
    return json.dumps(document, sort_keys=True, separators=(",", ":")), document
