"""The network between bob and one guest. It has no other members, and no route to other networks. With privileges, it
is a network namespace with a tap; otherwise it is QEMU's user network. The guest has the same address in both kinds of
network, so the same image works with both kinds."""

import ctypes
import os
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import ECONNRESET
from typing import TypeVar
from weakref import WeakSet

from pyroute2 import IPRoute  # type: ignore[import-untyped]
from pyroute2.netlink.exceptions import NetlinkError  # type: ignore[import-untyped]

from bob.errors import GuestError
from bob.guest.spec import NetworkKind

T = TypeVar("T")

_GUEST, _SSH = "10.0.2.15", 22
_HOST, _PREFIX_BITS = "10.0.2.2", 24
_HOST_ETHERNET = "52:55:0a:00:02:02"  # the same in all networks, because a restored guest remembers it
_CLONE_NEWNET = 0x40000000  # include/uapi/linux/sched.h
_FORWARD = re.compile(r"HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s+\S+\s+22\b")

TAP = "bob0"

_libc = ctypes.CDLL(None, use_errno=True)


class Network:
    """The network of one guest. This base class is QEMU's user network: QEMU forwards a TCP port of the host's loopback
    interface to the guest's SSH server."""

    def start(self, do: Callable[[], T]) -> T:
        return do()

    def address(self, monitor: Callable[[str], str]) -> tuple[str, int]:
        """Return host and port of the guest's SSH server. ``monitor`` runs a command in the monitor of the guest's
        QEMU. Raises GuestError."""
        ports = _FORWARD.findall(monitor("info usernet"))
        if not ports:
            raise GuestError("QEMU does not forward a port to the guest", hint="is this QEMU built without slirp?")
        return "127.0.0.1", int(ports[0])

    def dial(self, address: tuple[str, int], timeout: float) -> socket.socket:
        """Connect to ``address`` on this network within ``timeout`` seconds. Raises OSError if that fails."""
        return socket.create_connection(address, timeout)

    def hang_up(self) -> None:
        """End all connections after the guest is gone. This base class does nothing, because QEMU closed them
        when it ended."""


class PrivateNetwork(Network):
    """A network namespace with a tap. ``namespace`` is an open file descriptor of the namespace. The network exists
    until this file is closed and no process or socket uses the namespace."""

    def __init__(self, namespace: int) -> None:
        self._namespace = namespace
        self._connections: WeakSet[socket.socket] = WeakSet()
        self._gone = False

    def start(self, do: Callable[[], T]) -> T:
        def entered() -> T:
            _check(_libc.setns(self._namespace, _CLONE_NEWNET))
            return do()

        return _in_a_thread(entered)

    def address(self, monitor: Callable[[str], str]) -> tuple[str, int]:
        return _GUEST, _SSH

    def dial(self, address: tuple[str, int], timeout: float) -> socket.socket:
        if not self._gone:
            connection = self.start(lambda: socket.create_connection(address, timeout))
            self._connections.add(connection)
            if not self._gone:  # if hang_up() comes later, it finds the connection
                return connection
            connection.close()
        raise ConnectionResetError(ECONNRESET, os.strerror(ECONNRESET))

    def hang_up(self) -> None:
        """Shut down all connections. Otherwise TCP would go on for minutes to send to a guest that is gone."""
        self._gone = True
        for connection in tuple(self._connections):
            with suppress(OSError):  # the connection was closed already
                connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def network(kind: NetworkKind) -> Iterator[Network]:
    """Yield a network for one guest. Raises OSError if bob cannot make a private network."""
    if kind is NetworkKind.USER:
        yield Network()
        return
    namespace = _in_a_thread(_make)
    try:
        yield PrivateNetwork(namespace)
    finally:
        os.close(namespace)


@dataclass(frozen=True, slots=True)
class NetworkChoice:
    kind: NetworkKind
    reason: str


def choose_network() -> NetworkChoice:
    """Return the kind of network for guests and the reason for it. The kind is private if bob can make a private
    network, and otherwise QEMU's user network."""
    try:
        with network(NetworkKind.PRIVATE):
            return NetworkChoice(NetworkKind.PRIVATE, "a network namespace with a tap for each guest")
    except OSError as error:
        return NetworkChoice(NetworkKind.USER, f"cannot make a network namespace with a tap: {error.strerror}")


def _make() -> int:
    _check(_libc.unshare(_CLONE_NEWNET))
    namespace = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        with IPRoute() as ip:
            ip.link("add", ifname=TAP, kind="tuntap", mode="tap", uid=os.geteuid(), gid=os.getegid())
            [tap] = ip.link_lookup(ifname=TAP)
            ip.link("set", index=tap, address=_HOST_ETHERNET, state="up")
            ip.addr("add", index=tap, address=_HOST, prefixlen=_PREFIX_BITS)
    except NetlinkError as error:
        os.close(namespace)
        raise OSError(error.code, os.strerror(error.code)) from error
    except BaseException:
        os.close(namespace)
        raise
    return namespace


def _check(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _in_a_thread(do: Callable[[], T]) -> T:
    """Call ``do`` in a new thread, and return its result. The thread ends afterwards. Only such a thread may enter a
    network namespace, because it could not leave the namespace again."""
    with ThreadPoolExecutor(1, "network") as one:
        return one.submit(do).result()
