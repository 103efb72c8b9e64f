"""The domain's XML, read back."""

from __future__ import annotations

import socket
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest
from msgspec import structs

from bob.agent.inside.port import PORT_NAME
from bob.errors import UsageError
from bob.guest import given_machine, shell
from bob.guest import network as networks
from bob.guest.domain import Domain
from bob.guest.domain_xml import Identity, domain_xml
from bob.guest.given_machine import MachineAddress
from bob.guest.hypervisor import Hypervisor
from bob.guest.machine import Guest
from bob.guest.network import choose_network, network
from bob.guest.root import Root
from bob.guest.spec import Accelerator, Clock, GuestSpec, NetworkKind
from bob.image import Image

WHO = Identity(uuid.UUID("12345678-1234-5678-1234-567812345678"))
QEMU = "{http://libvirt.org/schemas/domain/qemu/1.0}"


def tree(
    spec: GuestSpec, accelerator: Accelerator = Accelerator.TCG, network: NetworkKind = NetworkKind.PRIVATE
) -> ET.Element:
    return ET.fromstring(domain_xml(spec, accelerator, network, WHO, Path("/tmp/a & b's")))


def test_a_port_is_there_if_it_is_asked_for(paper_image: Image) -> None:
    spec, path = GuestSpec(paper_image), Path("/tmp/a & b's.port")
    domain = ET.fromstring(domain_xml(spec, Accelerator.TCG, NetworkKind.PRIVATE, WHO, Path("/tmp/console"), path))
    [channel] = domain.findall("devices/channel")
    assert {child.tag: child.attrib for child in channel} == {
        "source": {"mode": "bind", "path": str(path)},
        "target": {"type": "virtio", "name": PORT_NAME},
    }
    assert tree(spec).find("devices/channel") is None


def arguments(domain: ET.Element) -> list[str]:
    return [argument.attrib["value"] for argument in domain.iter(f"{QEMU}arg")]


def test_names_with_special_characters_arrive(paper_image: Image) -> None:
    domain = tree(GuestSpec(paper_image))
    assert domain.findtext("os/kernel") == str(paper_image.kernel)
    source = domain.find("devices/serial/source")
    assert source is not None
    assert source.attrib["path"] == "/tmp/a & b's"


def test_identity_has_a_fixed_length(paper_image: Image) -> None:
    domain = tree(GuestSpec(paper_image))
    assert domain.findtext("name") == "bob-12345678"
    assert domain.findtext("uuid") == str(WHO.uuid)


@pytest.mark.parametrize(
    ("clock", "memory_mib", "whole_mib", "set_aside"),
    [(Clock.REAL, 2048, 2368, "304M!2048M"), (Clock.REAL, 3000, 3000, None), (Clock.VIRTUAL, 2048, 2048, None)],
)
def test_who_observes_has_memory_set_aside_for_crash_states(
    paper_image: Image, clock: Clock, memory_mib: int, whole_mib: int, set_aside: str | None
) -> None:
    domain = tree(GuestSpec(paper_image, clock, memory_mib=memory_mib))
    assert domain.findtext("memory") == str(whole_mib)
    words = dict(word.partition("=")[::2] for word in (domain.findtext("os/cmdline") or "").split())
    assert words.get("memmap") == set_aside
    assert ("iomem" in words) == (set_aside is not None)


def test_the_only_disk_is_the_root_read_only(paper_image: Image) -> None:
    disks = tree(GuestSpec(paper_image)).findall("devices/disk")
    assert [(disk.find("readonly") is not None, disk.find("target").attrib["dev"]) for disk in disks] == [  # type: ignore[union-attr]
        (True, "vda")
    ]


def test_modules_of_a_kernel_of_ones_own_are_the_second_disk(paper_image: Image) -> None:
    mine = structs.replace(paper_image, sizes={**paper_image.sizes, "modules.erofs": 1})
    disks = tree(GuestSpec(mine)).findall("devices/disk")
    assert [disk.find("target").attrib["dev"] for disk in disks] == ["vda", "vdb"]  # type: ignore[union-attr]
    assert disks[1].find("source").attrib["file"] == str(mine.modules_disk)  # type: ignore[union-attr]
    assert all(disk.find("readonly") is not None for disk in disks)


@pytest.mark.parametrize("clock", Clock)
@pytest.mark.parametrize("network", NetworkKind)
def test_nothing_leads_out_of_the_guest(paper_image: Image, clock: Clock, network: NetworkKind) -> None:
    domain = tree(GuestSpec(paper_image, clock), network=network)
    (netdev,) = [argument.split(",") for argument in arguments(domain) if "id=bob" in argument.split(",")]
    if network is NetworkKind.USER:
        assert netdev[0] == "user"
        assert {"restrict=on", "hostfwd=tcp:127.0.0.1:0-:22"} < set(netdev)
    else:  # what is in its namespace, test_network.py sees
        assert netdev[0] == "tap"
        assert {"script=no", "downscript=no"} < set(netdev)
    assert not domain.findall("devices/interface")
    assert not domain.findall("devices/graphics")


def test_virtual_time_is_in_virtual_guests_only(paper_image: Image) -> None:
    assert "-icount" in arguments(tree(GuestSpec(paper_image, Clock.VIRTUAL)))
    assert "-icount" not in arguments(tree(GuestSpec(paper_image, Clock.REAL)))


def test_accelerators(paper_image: Image) -> None:
    spec = GuestSpec(paper_image)
    assert tree(spec, Accelerator.TCG).attrib["type"] == "qemu"
    kvm = tree(spec, Accelerator.KVM)
    cpu = kvm.find("cpu")
    assert kvm.attrib["type"] == "kvm"
    assert cpu is not None
    assert cpu.attrib["mode"] == "host-passthrough"


def test_virtual_time_under_kvm_is_refused(paper_image: Image) -> None:
    with pytest.raises(UsageError):
        GuestSpec(paper_image, Clock.VIRTUAL, accelerator=Accelerator.KVM)


# The network of a guest: who is on it, and that nothing leads out of it

private = pytest.mark.skipif(choose_network().kind is not NetworkKind.PRIVATE, reason="needs privileges")


def links() -> set[str]:
    """The network cards that this thread sees."""
    lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
    return {line.split(":")[0].strip() for line in lines if ":" in line}


def routes() -> list[str]:
    """Where what is sent can go, in words of /proc/net/route: the interface and the destination."""
    lines = Path("/proc/thread-self/net/route").read_text().splitlines()
    return [" ".join(line.split()[:2]) for line in lines[1:]]


def refused() -> int:
    raise OSError(1, "Operation not permitted")


@private
def test_a_private_network_has_a_tap_and_leads_nowhere() -> None:
    before = links()
    with network(NetworkKind.PRIVATE) as made:
        assert made.start(links) == {"lo", "bob0"}
        assert made.start(routes) == ["bob0 0002000A"]  # 10.0.2.0, and no default
        assert links() == before


def test_a_connection_that_is_made_while_the_guest_goes_is_closed() -> None:
    made = networks.PrivateNetwork(-1)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hung_up_meanwhile(do: Callable[[], socket.socket]) -> socket.socket:
            connection = do()
            made.hang_up()
            return connection

        made.start = hung_up_meanwhile  # type: ignore[assignment, method-assign]
        for _ in range(2):
            with pytest.raises(ConnectionResetError):
                made.dial(server.getsockname(), 1.0)


@private
def test_a_private_network_leaves_nothing_behind() -> None:
    before = list(Path("/proc/self/fd").iterdir())
    with network(NetworkKind.PRIVATE):
        pass
    assert len(list(Path("/proc/self/fd").iterdir())) == len(before)


def test_without_privileges_it_is_the_user_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "_make", refused)
    choice = choose_network()
    assert choice.kind is NetworkKind.USER
    assert "not permitted" in choice.reason


@pytest.mark.vm
def test_nothing_leads_out(guest: Guest) -> None:
    assert not reaches_this_machine(guest)


@pytest.mark.vm
def test_the_user_network_leads_nowhere_either(spec: GuestSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """And as a domain of some libvirt, it is found by the port that leads to it."""
    with (
        Hypervisor.open(progress=print, network=NetworkKind.USER) as hypervisor,
        hypervisor.guest(spec, restore=False) as guest,
    ):
        assert guest.address.host == "127.0.0.1"
        assert not reaches_this_machine(guest)
        at, name = guest.address, guest.identity.name
        found = Domain(name, Root.shared().uri)
        assert found.addresses() == [(at.host, at.port)]

        def log_in(where: MachineAddress, end: float) -> paramiko.Transport:
            assert where.port is not None
            return shell._log_in(replace(at, host=where.host, port=where.port, user=where.user or ""), end)

        monkeypatch.setattr(given_machine, "_log_in", log_in)
        image = given_machine.machine_image(f"libvirt:root@{name}", print, Root.shared().uri)
        assert (image.name, image.kernel_release) == (f"libvirt:root@{name}", spec.image.kernel_release)


def reaches_this_machine(guest: Guest) -> bool:
    """Whether a server on loopback of this machine can be reached from ``guest``, by any way that it has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('10.0.2.2', {port}), 5)"
        assert guest.shell.run("ip route", 60).stdout.decode().split()[:1] == ["10.0.2.0/24"]
        return guest.shell.run(f'python3 -c "{code}"', 60).code == 0
