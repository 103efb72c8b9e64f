"""Agents in real guests: one that records in virtual time, one that observes in real time, shared by all the tests.

They last as long as the tests of this folder, so that there are never more than two guests at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bob.agent.client import Agent
from bob.guest.hypervisor import Hypervisor
from bob.guest.machine import Guest
from bob.guest.spec import Clock, GuestSpec
from bob.image import ensure
from bob.run.agents import agent_stream


class Inhabited:
    """A guest and the agent in it."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self.start()

    def start(self) -> None:
        """Start an agent in it, the first or another one."""
        self.stream = agent_stream(self.guest)
        self.agent = Agent(self.stream)

    def run(self, command: str) -> str:
        """What a command in the guest prints."""
        return self.guest.shell.run(command, timeout=60).stdout.decode()


class Guests:
    """At most two guests: one for each clock."""

    def __init__(self, hypervisor: Hypervisor) -> None:
        self._hypervisor = hypervisor
        self._image = ensure("debian-bookworm", print)
        self._there: dict[Clock, tuple[Inhabited, ExitStack]] = {}

    def get(self, clock: Clock) -> Inhabited:
        """The guest with this clock, restored if there is none."""
        if clock not in self._there:
            with ExitStack() as stack:
                guest = stack.enter_context(self._hypervisor.guest(GuestSpec(self._image, clock)))
                self._there[clock] = Inhabited(guest), stack.pop_all()
        return self._there[clock][0]

    def end(self, clock: Clock) -> None:
        """End the guest with this clock; the next :meth:`get` restores another."""
        if clock in self._there:
            self._there.pop(clock)[1].close()

    def end_all(self) -> None:
        """End both."""
        for clock in Clock:
            self.end(clock)


SHARED: list[Guests] = []
"""Those of this session, if a test has asked for some."""


@pytest.fixture(scope="session")
def guests() -> Iterator[Guests]:
    with Hypervisor.open(progress=print) as hypervisor:
        guests = Guests(hypervisor)
        SHARED.append(guests)
        try:
            yield guests
        finally:
            SHARED.remove(guests)
            guests.end_all()


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """End the guests behind the last test of this folder, as no later one asks for them: the one in virtual time would
    take a whole processor."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        for guests in SHARED:
            guests.end_all()


@pytest.fixture
def recording(guests: Guests) -> Inhabited:
    """A guest in virtual time."""
    return guests.get(Clock.VIRTUAL)


@pytest.fixture
def observing(guests: Guests) -> Inhabited:
    """A guest in real time."""
    return guests.get(Clock.REAL)
