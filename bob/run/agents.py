"""The opening of a guest (a virtual machine) with bob's agent in it. The agent is a program that carries out bob's
requests in the guest. bob boots the guest, or the user gives a machine (:mod:`bob.guest.given_machine`). If the agent
only has to check trees of files, it may run in a sandbox on the host instead of a guest (:mod:`bob.sandbox`)."""

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
from bob.guest.spec import MEMORY_MIB, Clock, GuestSpec
from bob.image import Image, ensure, named, unpacked
from bob.sandbox.agents import sandbox
from bob.sandbox.bubblewrap import owner


class KeptGuests:
    """A context manager that keeps guests of a hypervisor for further use. When a caller no longer needs a guest, bob
    keeps it with its running agent for the next caller. All guests end with the ``with`` block. Several threads may use
    one object. A guest is not kept if its agent failed, or if the caller raised an error. A guest in virtual time
    (counted in executed instructions) is not kept either, since each recording of disk writes needs a fresh guest."""

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
    """A source of sandboxes on the host. The root directory in a sandbox is the unpacked root of a guest image.
    ``progress`` gets a line when bob unpacks an image."""

    progress: Callable[[str], None]

    @contextmanager
    def agent(self, image: Image, world: Path | None) -> Iterator[Agent]:
        """Open an agent in a new sandbox of ``image``. ``world`` is a disk to use instead of the image, with the
        packages that a program under test needs (None: no such program). Raise SandboxLost if the host cannot make a
        sandbox, and ImageError for a bad image."""
        with sandbox(unpacked(world or image.root, owner(), self.progress)) as agent:
            yield agent


GuestSource = Hypervisor | GivenMachine
AnyGuests = GuestSource | KeptGuests | Sandboxes


def unshared(guests: AnyGuests) -> AnyGuests:
    """Return a source of guests that does not keep a guest for the next caller. A program under test needs such a
    source, since its scripts may change anything in their guest."""
    return guests.hypervisor if isinstance(guests, KeptGuests) else guests


_REMOTE_FILE = "/tmp/bob-agent.pyz"
_START = f"exec python3 -S {_REMOTE_FILE}"


def image_called(name: str, progress: Callable[[str], None], connect: str | None = None) -> Image:
    """Return the image ``name``. Build the image if it is missing. If ``name`` is the address of a machine that the
    user gives, return an image that describes the machine. If that machine is a libvirt domain, ``connect`` is the
    address of its libvirt."""
    return machine_image(name, progress, connect) if is_machine(name) else ensure(name, progress)


def check_image(name: str) -> None:
    """Raise UsageError if ``name`` is an unknown image, or an impossible address of a machine."""
    if is_machine(name):
        place(name)
    else:
        named(name)


def guests_of(
    image: Image, connect: str | None, progress: Callable[[str], None], memory_mib: int = MEMORY_MIB
) -> AbstractContextManager[GuestSource]:
    """Open a source of guests of ``image``. The guests run in the libvirt at the address ``connect`` (None: bob's own
    libvirt), and have ``memory_mib`` MiB of memory. If ``image`` describes a machine that the user gives, this machine
    is the only guest."""
    if isinstance(image, GivenImage):
        return GivenMachine.open(place(image.name), connect)
    return Hypervisor.open(connect, progress, memory_mib=memory_mib)


def jobs_for(name: str, asked: int | None) -> int:
    """Return how many guests shall run side by side. If ``name`` is a machine that the user gives, it is the only
    guest. Otherwise there are ``asked`` guests (None: as many as fit on this host)."""
    return 1 if is_machine(name) else asked or guests_that_fit()


@contextmanager
def agent_in(guests: AnyGuests, image: Image, clock: Clock, world: Path | None = None) -> Iterator[Agent]:
    """Open an agent in a guest of ``image``. ``world`` is a disk for the guest with the packages that a program under
    test needs (None: no such program). If ``clock`` is virtual, the guest runs only while the agent works on a
    request."""
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
    spec = GuestSpec(image, clock, guests.memory_mib, world=world)
    with guests.guest(spec) as guest, closing(agent_stream(guest)) as stream:
        yield Agent(stream, guest.awake) if clock is Clock.VIRTUAL else Agent(stream)


def agent_stream(guest: Guest) -> DuplexStream:
    """Start an agent in ``guest``, and return the stream to the agent. Raise GuestLost if the guest does not answer."""
    guest.shell.push(agent_file(), _REMOTE_FILE)
    return guest.start(_START)
