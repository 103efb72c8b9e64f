"""A guest with bob's agent in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from bob.guest.agent_client import Agent, agent_stream
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock, GuestSpec
from bob.image import Image


@contextmanager
def agent_in(hypervisor: Hypervisor, image: Image, clock: Clock) -> Iterator[Agent]:
    """An agent in a guest of its own; where time is virtual there, the guest is awake only while it is asked."""
    with hypervisor.guest(GuestSpec(image, clock)) as guest, closing(agent_stream(guest)) as stream:
        yield Agent(stream, guest.awake) if clock is Clock.VIRTUAL else Agent(stream)
