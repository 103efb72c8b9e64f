"""What searches tried, kept so that no workload counts twice (docs/formats.md, searched.json).

A workload goes by a key that is made of all that its recording depends on. So searches may overlap: what is counted is
a set of keys. Of each search there is its own part, which takes the place of what was kept of it before.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import chain
from typing import Any

from bob import counts
from bob.claim.property.declaration import declaration
from bob.claim.property.rules import Property
from bob.claim.property.vocabulary import row_of_today
from bob.crash.device import DeviceModel
from bob.result import Environment
from bob.search.spaces import Search
from bob.subject import Configuration
from bob.typed import array, typed
from bob.workload.language import write_one
from bob.workload.operations import Workload

_DIGITS = 12
"""Of a hash, in hexadecimal: of a million workloads two are taken for one once in 500 times, and then one is not
counted."""
_KEY = re.compile(rf"[0-9a-f]{{{_DIGITS}}}")
_OWN = "+"
"""In the name of an image with a kernel of the user's own (bob/image/own.py)."""


@dataclass(frozen=True, slots=True)
class On:
    """On what workloads were tried: verdicts can be put together where all of this is the same.

    ``kernel`` is the release; of a kernel of the user's own the image is named, too, since two builds may have one
    release. ``mkfs`` and ``check`` are the whole commands, ``disks`` the lengths of the disks (bytes), ``stack`` what
    is made of several of them (JSON, or empty).
    """

    kernel: str
    mkfs_version: str
    fs: str
    mkfs: str
    check: str
    mount_options: str
    disks: tuple[int, ...]
    stack: str
    write_cache: str
    atomic_write_bytes: int
    completion: str

    @classmethod
    def of(cls, made: Configuration, environment: Environment, model: DeviceModel) -> On:
        """What ``environment`` and ``model`` are for the configuration ``made``."""
        kernel, image = environment.kernel, environment.image
        return cls(
            kernel=f"{kernel} of {image}" if _OWN in image.partition(" ")[0] else kernel,
            mkfs_version=environment.mkfs_version,
            fs=made.fs.name,
            mkfs=shlex.join(made.mkfs),
            check=shlex.join(made.fs.check),
            mount_options=made.mount_options,
            disks=made.disks,
            stack="" if made.stack is None else json.dumps(made.stack.to_json()),
            **model.to_json(),
        )


@dataclass(frozen=True, slots=True)
class Whole:
    """The crash states of whole writes of a workload: how many were explored, of how many that are legal, and how many
    do not mount."""

    explored: int
    legal: int
    unmountable: int = 0

    @property
    def is_all(self) -> bool:
        """Whether all that mount were explored."""
        return self.explored + self.unmountable == self.legal

    @property
    def rank(self) -> tuple[bool, int, int, int]:
        """The greater, the more was explored."""
        return self.is_all, self.explored, self.legal, self.unmountable


@dataclass(frozen=True, slots=True)
class Said:
    """What a search said of the property ``name``: the keys of the workloads that hold, and of those that fail.

    ``asks`` tells properties of one name apart (:func:`asked_by`). The ``witness`` is a path from the folder of the
    file, or a path that is whole (:meth:`Kept.within`); ``evidence`` is its line.
    """

    name: str
    asks: str
    holds: frozenset[str]
    fails: frozenset[str] = frozenset()
    witness: str | None = None
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of the search ``id`` on one kernel and configuration.

    ``told`` is when it was written (ISO 8601, UTC), ``bob`` the version, ``words`` which workloads were asked for.
    ``whole`` has each workload that is known to hold or fail, by its key; all others count for nothing.
    """

    id: str
    told: str
    bob: str
    words: str
    on: On
    whole: Mapping[str, Whole]
    said: tuple[Said, ...]

    def within(self, folder: str) -> Kept:
        """The same, with the paths of its witnesses from ``folder`` on."""
        moved = (replace(one, witness=f"{folder}/{one.witness}") if one.witness else one for one in self.said)
        return replace(self, said=tuple(moved))


@dataclass(frozen=True, slots=True)
class Counted:
    """What several searches said of a property together: so many ``workloads``, of which so many are ``failing``.

    ``complete`` is how many of them were explored in all whole states that mount; ``whole`` is the sum over all.
    ``searches`` are those that have at least one of them. ``shown`` is what one of these said that has a witness.
    """

    workloads: int
    failing: int
    complete: int
    whole: Whole
    searches: tuple[Kept, ...]
    shown: Said | None


def key(workload: Workload) -> str:
    """What ``workload`` goes by: a hash of all of it that its recording depends on, which is all but its names."""
    finish = workload.finish
    parts = (workload.setup, workload.operations, finish.operations)
    text = json.dumps(
        [*(list(map(write_one, part)) for part in parts), finish.natural, float(finish.phase), workload.at.value]
    )
    return sha256(text.encode()).hexdigest()[:_DIGITS]


def asked_by(prop: Property) -> str:
    """A hash of what ``prop`` asks, whatever it is called and how it is worded."""
    return sha256(json.dumps(declaration(prop)["judge"], sort_keys=True).encode()).hexdigest()[:_DIGITS]


def words_of(asked: Search, budget: int) -> str:
    """Which workloads a search is asked for, in words."""
    part = asked.part
    operations = f"{asked.length} operation{'' if asked.length == 1 else 's'}"
    words = [f"bounds {asked.name}", operations if asked.is_drawn or asked.length == 1 else f"up to {operations}"]
    words += [f"those that ask for {', '.join(asked.props)}"] if asked.props else []
    words += [f"{part.sample} drawn by seed {part.seed}"] if part.sample is not None else []
    words += [f"drawn by seed {part.seed} for {asked.seconds} s"] if asked.seconds is not None else []
    words += [f"part {part.shard} of {part.shards}"] if part.shards > 1 else []
    return ", ".join([*words, f"budget {budget}"])


def merged(*several: Iterable[Kept]) -> tuple[Kept, ...]:
    """All of ``several``. Where they tell of one search twice, what was written later counts, and nothing is added."""
    found: dict[tuple[str, On], Kept] = {}
    for one in chain.from_iterable(several):
        before = found.setdefault((one.id, one.on), one)
        if before is not one and _is_later(one, before):
            found[one.id, one.on] = one
    return tuple(sorted(found.values(), key=lambda one: (one.id, _text(asdict(one.on)))))


def _is_later(one: Kept, other: Kept) -> bool:
    """Whether ``one`` takes the place of ``other``; of any two that differ, just one does."""
    times = (one.told, len(one.whole)), (other.told, len(other.whole))
    return times[0] > times[1] if times[0] != times[1] else _text(to_json(one)) > _text(to_json(other))


def _text(document: Any) -> str:
    return json.dumps(document, sort_keys=True)


def counted(
    several: Iterable[Kept], name: str, asks: str, own: Collection[str], *, is_broken: bool = False
) -> Counted | None:
    """What ``several`` searches, all on one kernel and configuration, said of a property beside the workloads with the
    keys ``own``; None where that is nothing.

    Each workload counts once. One that some search saw fail is failing. Where these own ones have not broken the
    property (``is_broken``), a search that tried one of them again and saw it fail is not passed over.
    """
    whole: dict[str, Whole] = {}
    failing: set[str] = set()
    asked = [(one, said) for one in several for said in one.said if (said.name, said.asks) == (name, asks)]
    for one, said in asked:
        failing |= said.fails
        for which in said.holds | said.fails:
            found = one.whole[which]
            whole[which] = max(whole.get(which, found), found, key=lambda each: each.rank)
    more = whole.keys() - set(own) | (set() if is_broken else failing)
    if not more:
        return None
    tried = [whole[one] for one in more]
    shown = (said for _one, said in asked if said.fails & more and said.witness)
    return Counted(
        workloads=len(more),
        failing=len(failing & more),
        complete=sum(one.is_all for one in tried),
        whole=Whole(
            sum(one.explored for one in tried), sum(one.legal for one in tried), sum(one.unmountable for one in tried)
        ),
        searches=tuple({kept.id: kept for kept, said in asked if more & (said.holds | said.fails)}.values()),
        shown=next(shown, None),
    )


def to_json(kept: Kept) -> dict[str, Any]:
    """``kept`` as a plain document: a property names workloads by their places, and a workload its counts by theirs."""
    keys = sorted(kept.whole)
    places = {one: place for place, one in enumerate(keys)}
    shared = sorted(set(kept.whole.values()), key=lambda one: one.rank)
    numbers = {one: number for number, one in enumerate(shared)}
    return {
        **{name: getattr(kept, name) for name in ("id", "told", "bob", "words")},
        "on": asdict(kept.on),
        "whole": [[counts.written(count) for count in (one.explored, one.legal, one.unmountable)] for one in shared],
        "workloads": [[one, numbers[kept.whole[one]]] for one in keys],
        "properties": [
            {
                "name": one.name,
                "asks": one.asks,
                "holds": sorted(places[each] for each in one.holds),
                "fails": sorted(places[each] for each in one.fails),
                "witness": one.witness,
                "evidence": one.evidence,
            }
            for one in kept.said
        ],
    }


def from_json(document: Mapping[str, Any]) -> Kept:
    """What is kept of a search, in a plain document. Raises KeyError, TypeError, ValueError or AttributeError for what
    is none: a workload that is named wrongly would be counted."""
    read = (map(counts.read, one) for one in document["whole"])
    shared = [Whole(explored, legal, unmountable) for explored, legal, unmountable in read]
    for one in shared:
        if min(one.explored, one.unmountable) < 0 or one.explored + one.unmountable > one.legal:
            raise ValueError(f"there are no {one.explored} of {one.legal} states")
    whole = {_matching(_KEY, one): _at(shared, place) for one, place in document["workloads"]}
    keys = list(whole)
    if len(keys) < len(document["workloads"]):
        raise ValueError("it has a workload twice")
    return Kept(
        **{name: _text_of(document[name]) for name in ("id", "told", "bob", "words")},
        on=typed(On(**{**document["on"], "disks": array(document["on"]["disks"])})),
        whole=whole,
        said=tuple(_said(one, lambda place: _at(keys, place)) for one in document["properties"]),
    )


def _said(document: Mapping[str, Any], named: Callable[[Any], str]) -> Said:
    holds, fails = (frozenset(map(named, document[name])) for name in ("holds", "fails"))
    if holds & fails:
        raise ValueError(f"of {document['name']} a workload both holds and fails")
    return Said(
        name=row_of_today(_text_of(document["name"])),
        asks=_matching(_KEY, document["asks"]),
        holds=holds,
        fails=fails,
        witness=None if document["witness"] is None else _text_of(document["witness"]),
        evidence=None if document["evidence"] is None else _text_of(document["evidence"]),
    )


def _at(several: list[Any], place: Any) -> Any:
    """That at ``place``: Python would take one below 0, too, and true for 1."""
    if type(place) is not int or not 0 <= place < len(several):
        raise ValueError(f"there is nothing at the place {place!r}")
    return several[place]


def _text_of(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def _matching(form: re.Pattern[str], value: Any) -> str:
    if not form.fullmatch(_text_of(value)):
        raise ValueError(f"{value!r} is no hash of {_DIGITS} digits")
    return str(value)
