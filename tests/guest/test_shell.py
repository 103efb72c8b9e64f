"""SSH into a guest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bob.agent.loss import Cause, GuestLost
from bob.errors import GuestError
from bob.guest.hypervisor import Hypervisor
from bob.guest.machine import Guest
from bob.guest.shell import Shell
from bob.guest.spec import GuestSpec
from bob.guest.stream import ConnectionLost

pytestmark = pytest.mark.vm


@pytest.fixture(scope="module")
def shared(hypervisor: Hypervisor, spec: GuestSpec) -> Iterator[Guest]:
    """One guest for all tests here."""
    with hypervisor.guest(spec) as guest:
        yield guest


def test_run_returns_both_streams_and_the_code(shared: Guest) -> None:
    done = shared.shell.run("echo out; echo err >&2; exit 7", 60)
    assert (done.stdout, done.stderr, done.code) == (b"out\n", b"err\n", 7)


def test_run_survives_a_flood_on_standard_error(shared: Guest) -> None:
    done = shared.shell.run("head -c 3000000 /dev/zero >&2; echo done", 120)
    assert (done.stdout, len(done.stderr), done.code) == (b"done\n", 3_000_000, 0)


def test_a_command_that_a_signal_ended(shared: Guest) -> None:
    assert shared.shell.run("kill -9 $$", 60).code == -1


def test_push(shared: Guest, tmp_path: Path) -> None:
    data = bytes(range(256)) * 1000
    local = tmp_path / "file"
    local.write_bytes(data)
    shared.shell.push(data, "/tmp/one")
    shared.shell.push(local, "/tmp/two")
    assert shared.shell.run("cmp /tmp/one /tmp/two && wc -c < /tmp/one", 60).stdout == b"256000\n"


def test_push_that_is_refused(shared: Guest) -> None:
    with pytest.raises(GuestError, match="No such file") as refused:
        shared.shell.push(b"x", "/no/such/folder/file")
    assert not isinstance(refused.value, GuestLost)
    assert shared.shell.run(":", 60).code == 0


def test_stream(shared: Guest) -> None:
    data = bytes(range(256)) * 2000
    with shared.shell.open_channel("cat") as stream:
        for part in (b"hello", data):
            stream.write(part)
            assert stream.read_exactly(len(part), 60) == part


def test_a_stream_that_ends_says_why(shared: Guest) -> None:
    with (
        shared.shell.open_channel("echo gone fishing >&2; exit 1") as stream,
        pytest.raises(GuestLost, match="gone fishing") as lost,
    ):
        stream.read_exactly(1, 60)
    assert lost.value.cause is Cause.DISCONNECTED


def test_many_shells(shared: Guest) -> None:
    with shared.connect() as one, shared.connect() as two:
        assert one.run("echo 1", 60).stdout == b"1\n"
        assert two.run("echo 2", 60).stdout == b"2\n"


def test_any_machine_will_do(shared: Guest) -> None:
    """A plain Shell knows nothing of guests."""
    with Shell(shared.address) as shell:
        assert shell.run("echo hello", 60).stdout == b"hello\n"
        with pytest.raises(ConnectionLost):
            shell.run("sleep 600", 1)


def test_the_wrong_machine_is_refused(shared: Guest) -> None:
    with pytest.raises(GuestError, match="another host key"):
        Shell(replace(shared.address, host_key="ssh-ed25519 AAAA"))


def test_the_wrong_key_is_refused(shared: Guest, tmp_path: Path) -> None:
    import paramiko

    key = tmp_path / "key"
    paramiko.RSAKey.generate(2048).write_private_key_file(str(key))
    with pytest.raises(GuestError, match="refuses the key"):
        Shell(replace(shared.address, key=key))


def test_nobody_there() -> None:
    from bob.guest.shell import Address

    with pytest.raises(ConnectionLost, match="within 1 s"):
        Shell(Address("127.0.0.1", 1, "root", Path("/dev/null")), deadline=1)
