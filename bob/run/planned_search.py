"""The planned workloads of a search, and the file that fills their device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

from bob.catalogue.request import ProbeRequest
from bob.errors import UsageError
from bob.guest.spec import Clock
from bob.progress import Progress
from bob.record.base import room
from bob.run.agents import agent_in, guests_of, image_called
from bob.search.bounds import FILLER, parsed
from bob.search.space import Space, possible
from bob.search.spaces import Search
from bob.text import plural
from bob.workload.operations import Workload


def filled(asked: Search, request: ProbeRequest, progress: Progress) -> Search:
    """Return ``asked`` with the bytes that fill the device, measured by a guest, if the bounds want it full. Raise
    UsageError if the file system cannot be filled, or has less room than the bounds leave."""
    leave, configuration = asked.leave, request.configuration
    if not leave:
        return asked
    if "keep" in configuration.fs.lacks:
        said = dict(configuration.fs.refusals)["keep"]
        hint = f"of fallocate with FALLOC_FL_KEEP_SIZE the kernel says: {said}"
        raise UsageError(f"{configuration.fs.name} cannot be filled, as the bounds {asked.name} want it", hint=hint)
    image = image_called(request.image, progress.step, request.host.connect)
    setup = parsed(asked.name, asked.text).setup
    with (
        guests_of(image, request.host.connect, progress.step) as hypervisor,
        agent_in(hypervisor, image, Clock.REAL) as agent,
    ):
        free = room(agent, configuration, setup, FILLER)
    if free <= leave:
        raise UsageError(
            f"a new {configuration.name} has room for {free:,} bytes, and the bounds {asked.name} leave {leave:,}",
            hint="ask for a larger one with --device",
        )
    progress.step(f"of {free:,} bytes that are free, a file takes all but {leave:,}")
    return replace(asked, filler=free - leave)


@dataclass(slots=True)
class PlannedSearch:
    """The coming ``workloads`` of a search, ``together`` in number (None: bob draws them). ``skipped`` counts those
    that the file system cannot do, by operation."""

    space: Space
    workloads: Iterator[Workload]
    together: int | None
    skipped: Counter[str]

    @classmethod
    def of(cls, asked: Search, request: ProbeRequest, progress: Progress) -> PlannedSearch:
        """Plan the search. Raise UsageError if it lacks a workload."""
        progress.step(f"making the workloads {asked.origin}")
        space, skipped = asked.space(), Counter[str]()
        made = possible(asked.workloads(space), space, request.configuration.fs.lacks, skipped)
        if asked.seconds is not None:
            if (first := next(made, None)) is None:
                raise _nothing(asked)
            return cls(space, chain([first], made), None, skipped)
        every = list(made)
        for words in space.notes:
            progress.step(words)
        if not every:
            raise _nothing(asked)
        return cls(space, iter(every), len(every), skipped)


def _nothing(asked: Search) -> UsageError:
    if asked.props:
        return UsageError(
            f"no workload of {plural(asked.length, 'operation')} {asked.origin} asks for {', '.join(asked.props)}",
            hint="an order takes two operations (--ops 2), append-rename-any three; --bounds says which there are",
        )
    return UsageError(
        f"no workload {asked.origin} that is to be tried asks for what its calls promise",
        hint="--count tells how many there are; a --shard of many may have none",
    )
