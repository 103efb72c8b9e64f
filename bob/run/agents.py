"""A guest with bob's agent in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from bob.agent.client import Agent, Stream, agent_file
from bob.guest.hypervisor import Hypervisor
from bob.guest.machine import Guest
from bob.guest.spec import Clock, GuestSpec
from bob.image import Image

_REMOTE_FILE = "/tmp/bob-agent.pyz"
_START = f"exec python3 -S {_REMOTE_FILE}"


@contextmanager
def agent_in(hypervisor: Hypervisor, image: Image, clock: Clock, world: Path | None = None) -> Iterator[Agent]:
    """An agent in a guest of its own; where time is virtual there, the guest is awake only while it is asked. It has
    the disk with a ``world``, where programs need one."""
    with hypervisor.guest(GuestSpec(image, clock, world=world)) as guest, closing(agent_stream(guest)) as stream:
        yield Agent(stream, guest.awake) if clock is Clock.VIRTUAL else Agent(stream)


def agent_stream(guest: Guest) -> Stream:
    """Start an agent in ``guest``; the stream to it. Raises GuestLost."""
    guest.shell.push(agent_file(), _REMOTE_FILE)
    return guest.start(_START)
