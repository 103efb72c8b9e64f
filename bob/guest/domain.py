"""A libvirt domain that bob did not boot: find the address of its SSH server, and restart the domain after a loss."""

import time
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from typing import Any
from xml.etree import ElementTree

from bob.errors import GuestError
from bob.guest.driver import ADDRESS_SOURCES, RUNNING, LibvirtError, disconnect, monitor, open_any
from bob.guest.network import Network

ALONE_SECONDS = 60.0  # bob waits so long for a lost domain to come back by itself, and then resets it
_SSH = 22
_NONE_YET_SECONDS = 1.0
_QEMU_ARG = "{http://libvirt.org/schemas/domain/qemu/1.0}commandline/{http://libvirt.org/schemas/domain/qemu/1.0}arg"


class Domain:
    """The domain called ``name`` (or with this UUID) of the libvirt at ``uri`` (None: virsh's default). When the domain
    is lost, bob restarts it."""

    def __init__(self, name: str, uri: str | None) -> None:
        self.name, self._uri = name, uri
        self._connection: Any = None
        self._lost_at: float | None = None
        self._reset_at = 0.0

    def addresses(self) -> list[tuple[str, int | None]]:
        """Return the addresses of the domain's SSH server, as host and port (None: SSH's default port). After
        :meth:`lost`, start or reset the domain first if needed. Raises GuestError if libvirt does not know the domain,
        or if the domain is off although bob did not lose it. Raises OSError if libvirt does not know an address yet."""
        try:
            domain = self._found()
            if self._lost_at is not None:
                self._bring_back(domain)
            elif not domain.isActive():
                hint = f"virsh {self._connect}start {self.name}"
                raise GuestError(f"the domain {self.name} is not running", hint=hint)
            found = list(dict.fromkeys((*_forwarded(domain), *_known(domain))))
        except LibvirtError as error:
            raise GuestError(f"libvirt cannot use the domain {self.name}: {error}") from error
        if not found:
            time.sleep(_NONE_YET_SECONDS)
            raise OSError("libvirt does not know an address of the domain, by lease, agent or arp")
        return found

    def lost(self, *, hangs: bool) -> None:
        """Remember the time when bob lost the connection to the domain. Later calls of :meth:`addresses` start the
        domain if it is off. If it runs, they reset it when a minute has passed, or immediately if it ``hangs``."""
        self._lost_at = time.monotonic()
        self._reset_at = self._lost_at + (0.0 if hangs else ALONE_SECONDS)

    def found_again(self) -> None:
        self._lost_at = None

    def close(self) -> None:
        if self._connection is not None:
            disconnect(self._connection, self._connection.getURI())
            self._connection = None

    @property
    def by_hand(self) -> str:
        return f"virsh {self._connect}domifaddr {self.name}"

    @property
    def _connect(self) -> str:
        return "" if self._uri is None else f"-c {self._uri} "

    def _found(self) -> Any:
        if self._connection is None:
            self._connection = open_any(self._uri)
        connection = self._connection
        for look_up in (connection.lookupByName, connection.lookupByUUIDString):
            with suppress(LibvirtError):
                return look_up(self.name)
        names = ", ".join(sorted(domain.name() for domain in connection.listAllDomains())) or "none"
        raise GuestError(
            f"the libvirt at {connection.getURI()} does not have the domain {self.name}",
            hint=f"it has {names}; --connect URI selects another libvirt",
        )

    def _bring_back(self, domain: Any) -> None:
        if not domain.isActive():
            domain.create()
        elif time.monotonic() >= self._reset_at:
            domain.reset(0)
            if domain.state()[0] != RUNNING:  # a panic that a pvpanic device reported has paused the domain
                domain.resume()
        else:
            return
        self._reset_at = float("inf")


def _known(domain: Any) -> Iterator[tuple[str, int | None]]:
    """Yield the addresses that libvirt knows for the domain's own network cards, IPv4 first. Addresses of networks
    inside the domain, such as those of containers, are left out."""
    root = ElementTree.fromstring(domain.XMLDesc(0))
    cards = {card.attrib["address"].lower() for card in root.iterfind("devices/interface/mac")}
    found = []
    for source in ADDRESS_SOURCES:
        with suppress(LibvirtError):  # the domain may lack a guest agent
            for interface in domain.interfaceAddresses(source).values():
                if (interface.get("hwaddr") or "").lower() in cards:
                    found += [ip_address(each["addr"]) for each in interface.get("addrs") or ()]
    usable = [one for one in found if not (one.is_loopback or one.is_link_local or one.is_unspecified)]
    for address in sorted(usable, key=lambda one: one.version):
        yield str(address), None


def _forwarded(domain: Any) -> Iterator[tuple[str, int | None]]:
    root = ElementTree.fromstring(domain.XMLDesc(0))
    for forward in root.iterfind("devices/interface/portForward[@proto='tcp']"):
        for each in forward.iterfind("range"):
            first = int(each.attrib["start"])
            last, to = int(each.get("end", first)), int(each.get("to", first))
            if each.get("exclude") != "yes" and to <= _SSH <= to + last - first:
                yield forward.get("address", "127.0.0.1"), first + _SSH - to
    if any("hostfwd=" in arg.get("value", "") for arg in root.iterfind(_QEMU_ARG)):
        with suppress(GuestError):  # QEMU forwards other ports than SSH's
            yield Network().address(lambda command: monitor(domain, command))
