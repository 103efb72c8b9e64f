"""A guest with bob's agent in it: one that bob boots, or a machine that is given (:mod:`bob.guest.given_machine`). A
sandbox on the host may stand in for a guest that only checks trees (:mod:`bob.sandbox`)."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bob.agent.client import Agent, DuplexStream, agent_file
from bob.guest.capacity import guests_that_fit
from bob.guest.given_machine import GivenImage, GivenMachine, is_machine, machine_image, place
from bob.guest.hypervisor import Hypervisor
from bob.guest.machine import Guest
from bob.guest.spec import Clock, GuestSpec
from bob.image import Image, ensure, named, unpacked
from bob.sandbox.agents import sandbox
from bob.sandbox.bubblewrap import owner


class KeptGuests:
    """Guests of a hypervisor, kept with their agents for the next user until the block ends. Threads may share it. It
    drops a guest whose agent failed or whose user raised an error, and each guest in virtual time: recordings need a
    fresh one."""

    def __init__(self, hypervisor: Hypervisor) -> None:
        self.hypervisor = hypervisor
        self._idle: defaultdict[tuple[str, Path | None], deque[tuple[Agent, ExitStack]]] = defaultdict(deque)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as every:
            for kept in self._idle.values():
                while kept:
                    every.push(kept.pop()[1])

    @contextmanager
    def agent(self, image: Image, clock: Clock, world: Path | None) -> Iterator[Agent]:
        with ExitStack() as stack:
            if clock is Clock.VIRTUAL:
                yield stack.enter_context(agent_in(self.hypervisor, image, clock, world))
                return
            idle = self._idle[image.name, world]
            try:
                agent, its = idle.pop()
                stack.push(its)
            except IndexError:
                agent = stack.enter_context(agent_in(self.hypervisor, image, clock, world))
            yield agent
            if agent.is_sound:
                idle.append((agent, stack.pop_all()))


@dataclass(frozen=True, slots=True)
class Sandboxes:
    """Sandboxes on the host, over the unpacked root of a guest. ``progress`` gets the step of unpacking."""

    progress: Callable[[str], None]

    @contextmanager
    def agent(self, image: Image, world: Path | None) -> Iterator[Agent]:
        """Open an agent in a sandbox of its own. Raise SandboxLost if there can be none, ImageError for a bad image."""
        with sandbox(unpacked(world or image.root, owner(), self.progress)) as agent:
            yield agent


GuestSource = Hypervisor | GivenMachine
AnyGuests = GuestSource | KeptGuests | Sandboxes


def unshared(guests: AnyGuests) -> AnyGuests:
    """Return a source of fresh guests that are not used again: scripts may have changed anything in them."""
    return guests.hypervisor if isinstance(guests, KeptGuests) else guests


_REMOTE_FILE = "/tmp/bob-agent.pyz"
_START = f"exec python3 -S {_REMOTE_FILE}"


def image_called(name: str, progress: Callable[[str], None], connect: str | None = None) -> Image:
    """Return the image ``name``, built if missing, or that of the machine at this address (a domain of ``connect``)."""
    return machine_image(name, progress, connect) if is_machine(name) else ensure(name, progress)


def check_image(name: str) -> None:
    """Raise UsageError for an unknown image, or an impossible address."""
    if is_machine(name):
        place(name)
    else:
        named(name)


def guests_of(
    image: Image, connect: str | None, progress: Callable[[str], None]
) -> AbstractContextManager[GuestSource]:
    """Open a source of guests of ``image``: the libvirt at ``connect`` (None: bob's own), or the machine."""
    if isinstance(image, GivenImage):
        return GivenMachine.open(place(image.name), connect)
    return Hypervisor.open(connect, progress)


def jobs_for(name: str, asked: int | None) -> int:
    """Return the number of guests side by side: ``asked``, or as many as fit; 1 for a machine."""
    return 1 if is_machine(name) else asked or guests_that_fit()


@contextmanager
def agent_in(guests: AnyGuests, image: Image, clock: Clock, world: Path | None = None) -> Iterator[Agent]:
    """Open an agent in a guest with the disk ``world`` for programs; in virtual time the guest runs only to answer."""
    if isinstance(guests, KeptGuests):
        with guests.agent(image, clock, world) as agent:
            yield agent
        return
    if isinstance(guests, Sandboxes):
        with guests.agent(image, world) as agent:
            yield agent
        return
    if isinstance(guests, GivenMachine):
        with guests.agent() as agent:
            yield agent
        return
    with guests.guest(GuestSpec(image, clock, world=world)) as guest, closing(agent_stream(guest)) as stream:
        yield Agent(stream, guest.awake) if clock is Clock.VIRTUAL else Agent(stream)


def agent_stream(guest: Guest) -> DuplexStream:
    """Start an agent in ``guest``, and return the stream to it. Raise GuestLost."""
    guest.shell.push(agent_file(), _REMOTE_FILE)
    return guest.start(_START)
