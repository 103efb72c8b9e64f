"""The network of a guest: who is on it, and that nothing leads out of it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from bob.guest import network as networks
from bob.guest.hypervisor import Hypervisor
from bob.guest.machine import Guest
from bob.guest.network import choose_network, network
from bob.guest.spec import GuestSpec, NetworkKind

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

        made._inside = hung_up_meanwhile  # type: ignore[assignment, method-assign]
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
def test_the_user_network_leads_nowhere_either(spec: GuestSpec) -> None:
    with (
        Hypervisor.open(progress=print, network=NetworkKind.USER) as hypervisor,
        hypervisor.guest(spec, restore=False) as guest,
    ):
        assert guest.address.host == "127.0.0.1"
        assert not reaches_this_machine(guest)


def reaches_this_machine(guest: Guest) -> bool:
    """Whether a server on loopback of this machine can be reached from ``guest``, by any way that it has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('10.0.2.2', {port}), 5)"
        assert guest.shell.run("ip route", 60).stdout.decode().split()[:1] == ["10.0.2.0/24"]
        return guest.shell.run(f'python3 -c "{code}"', 60).code == 0
