"""Domains of a libvirt as machines: where their SSH servers are, and how they come back."""

# ruff: noqa: N802, N815 - the names are libvirt's

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.errors import GuestError, UsageError
from bob.guest import domain as domains
from bob.guest import given_machine as given_machines
from bob.guest.domain import ALONE_SECONDS, Domain
from bob.guest.driver import ADDRESS_SOURCES, LibvirtError
from bob.guest.given_machine import GivenMachine, MachineAddress, is_machine, place
from wording import text_with

LEASE, AGENT, ARP = ADDRESS_SOURCES
MAC = "52:54:00:aa:bb:cc"
BRIDGED = f"<domain><devices><interface type='network'><mac address='{MAC}'/></interface></devices></domain>"
Interfaces = dict[str, dict[str, Any]]


def card(*addresses: str, mac: str = MAC) -> dict[str, Any]:
    """An interface as libvirt tells of one."""
    return {"hwaddr": mac, "addrs": [{"addr": address, "prefix": 24, "type": 0} for address in addresses]}


class Libvirt:
    """A libvirt with one domain, which says so much of it, and notes what is done to it."""

    def __init__(self, xml: str = BRIDGED, says: dict[int, Interfaces] | None = None) -> None:
        self.xml, self.says = xml, says or {}
        self.active, self.running = True, True
        self.done: list[str] = []

    # The connection

    def getURI(self) -> str:
        return "qemu:///system"

    def lookupByName(self, name: str) -> Libvirt:
        if name != "testbox":
            raise LibvirtError("no domain with matching name")
        return self

    lookupByUUIDString = lookupByName

    def listAllDomains(self) -> list[Libvirt]:
        return [self]

    def close(self) -> None:
        self.done.append("closed")

    # The domain

    def name(self) -> str:
        return "testbox"

    def isActive(self) -> bool:
        return self.active

    def state(self) -> list[int]:
        return [1 if self.running else 3, 0]

    def XMLDesc(self, _flags: int) -> str:
        return self.xml

    def interfaceAddresses(self, source: int) -> Interfaces:
        if source not in self.says:
            raise LibvirtError("argument unsupported: QEMU guest agent is not configured")
        return self.says[source]

    def create(self) -> None:
        self.done.append("started")
        self.active = True

    def reset(self, _flags: int) -> None:
        self.done.append("reset")

    def resume(self) -> None:
        self.done.append("resumed")


def domain_in(monkeypatch: pytest.MonkeyPatch, libvirt: Libvirt, name: str = "testbox") -> Domain:
    monkeypatch.setattr(domains, "open_any", lambda _uri: libvirt)
    monkeypatch.setattr(domains, "_NONE_YET_SECONDS", 0.0)
    return Domain(name, None)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("libvirt:testbox", MachineAddress("testbox", None, None, is_domain=True)),
        ("libvirt:root@testbox", MachineAddress("testbox", "root", None, is_domain=True)),
        ("libvirt://root@testbox", MachineAddress("testbox", "root", None, is_domain=True)),
        ("libvirt:Test Box.2", MachineAddress("Test Box.2", None, None, is_domain=True)),
    ],
)
def test_a_domain_is_named(said: str, found: MachineAddress) -> None:
    assert place(said) == found and is_machine(said)
    assert place(found.name) == found


@pytest.mark.parametrize("said", ["libvirt:", "libvirt:///testbox", "libvirt: testbox", "libvirt:a/b", "libvirt:root@"])
def test_what_names_no_domain(said: str) -> None:
    assert is_machine(said)
    with pytest.raises(UsageError, match="invalid machine address") as refused:
        place(said)
    assert "libvirt:[USER@]DOMAIN" in (refused.value.hint or "")


def test_all_that_libvirt_knows_is_tried_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the agent in the domain says of loopback, and of networks that are only within the domain, leads nowhere."""
    libvirt = Libvirt()
    found = domain_in(monkeypatch, libvirt)
    libvirt.says = {ARP: {"vnet0": card("192.168.122.9")}}
    assert found.addresses() == [("192.168.122.9", None)]
    libvirt.says[LEASE] = {"vnet0": card("192.168.122.7")}
    libvirt.says[AGENT] = {
        "lo": card("127.0.0.1", mac="00:00:00:00:00:00"),
        "enp1s0": card("fe80::1", "2001:db8::5", "192.168.122.7", mac=MAC.upper()),
        "docker0": card("172.17.0.1", mac="02:42:aa:aa:aa:aa"),
    }
    assert [host for host, _port in found.addresses()] == ["192.168.122.7", "192.168.122.9", "2001:db8::5"]


def test_without_an_address_it_may_be_booting(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError) as refused:
        domain_in(monkeypatch, Libvirt(says={LEASE: {"vnet0": {"hwaddr": MAC, "addrs": None}}})).addresses()
    assert str(refused.value) == snapshot("libvirt does not know an address of the domain, by lease, agent or arp")


@given(st.integers(1, 60), st.integers(0, 30), st.none() | st.integers(1, 60), st.booleans(), st.booleans())
def test_a_forwarded_port_leads_to_its_ssh_server(
    start: int, more: int, to: int | None, is_udp: bool, is_excluded: bool
) -> None:
    """By what libvirt says of portForward: port start + n of the host leads to port to + n of the guest."""
    exclude = " exclude='yes'" if is_excluded else ""
    there = "" if to is None else f" to='{to}'"
    xml = (
        f"<domain><devices><interface type='user'><portForward proto='{'udp' if is_udp else 'tcp'}' address='::1'>"
        f"<range start='{start}' end='{start + more}'{there}{exclude}/></portForward></interface></devices></domain>"
    )
    leads = {start + n: (start if to is None else to) + n for n in range(more + 1)}
    expected = [("::1", port) for port, inside in leads.items() if inside == 22 and not is_udp and not is_excluded]
    assert list(domains._forwarded(Libvirt(xml))) == expected


def test_one_that_is_off_or_not_there_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    libvirt = Libvirt()
    libvirt.active = False
    with pytest.raises(GuestError) as refused:
        domain_in(monkeypatch, libvirt).addresses()
    assert str(refused.value) == snapshot("the domain testbox is not running")
    assert refused.value.hint == "virsh start testbox"
    with pytest.raises(GuestError) as refused:
        domain_in(monkeypatch, libvirt, "box").addresses()
    assert text_with(str(refused.value), "qemu:///system") == snapshot(
        "the libvirt at qemu:///system does not have the domain box"
    )
    assert text_with(refused.value.hint, "--connect") == snapshot(
        "it has testbox; --connect URI selects another libvirt"
    )
    assert libvirt.done == []


def test_one_that_was_lost_is_brought_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    libvirt = Libvirt(says={ARP: {"vnet0": card("192.168.122.9")}})
    found = domain_in(monkeypatch, libvirt)
    found.addresses()
    found.lost(hangs=False)
    found.addresses()
    now[0] += ALONE_SECONDS - 1
    found.addresses()
    assert libvirt.done == [], "it may come back by itself"
    now[0] += 1
    for _ in range(3):
        found.addresses()
        now[0] += 10
    assert libvirt.done == ["reset"], "once"
    found.lost(hangs=True)
    libvirt.running = False
    found.addresses()
    assert libvirt.done == ["reset", "reset", "resumed"], "at once, and one that its panic has paused goes on"
    found.found_again()
    libvirt.active = False
    found.lost(hangs=False)
    found.addresses()
    assert libvirt.done[3:] == ["started"]
    found.close()
    assert libvirt.done[4:] == ["closed"]


def test_its_addresses_are_tried_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """And when none answers, they are looked up anew: it boots, and gets another one."""
    libvirt = Libvirt(says={LEASE: {"vnet0": card("192.168.122.7")}, ARP: {"vnet0": card("192.168.122.9")}})
    monkeypatch.setattr(domains, "open_any", lambda _uri: libvirt)
    tried = []

    def log_in(where: MachineAddress, _end: float) -> Any:
        tried.append(where.name)
        if where.host != "192.168.122.10":
            raise OSError("connection refused")
        return "transport"

    monkeypatch.setattr(given_machines, "_log_in", log_in)
    with GivenMachine.open(MachineAddress("testbox", "me", None, is_domain=True), "qemu:///system") as machine:
        with pytest.raises(OSError) as refused:
            machine._attempt(time.monotonic() + 5)
        assert str(refused.value) == snapshot("connection refused")
        assert tried == ["ssh://me@192.168.122.7", "ssh://me@192.168.122.9"]
        libvirt.says = {ARP: {"vnet0": card("192.168.122.10")}}
        assert machine._attempt(time.monotonic() + 5) == "transport"
        lost = machine._lost(None, False, "it does not answer")
    assert str(lost) == snapshot("libvirt:me@testbox cannot be reached: it does not answer")
    assert text_with(lost.hint, "qemu:///system") == snapshot("try: virsh -c qemu:///system domifaddr testbox")
    assert libvirt.done == ["closed"]
