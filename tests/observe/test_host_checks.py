"""Recovery by a program on the host: what the guest gets, what is mounted once, and a host that is not to be trusted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import samples_of_runs as samples
from bob.agent.loss import SandboxLost
from bob.observe.host_checks import GuestPayload, HostCheckers, HostRecovery
from bob.trace.model import SECTOR_BYTES

CLOCK = 1_767_225_600
SECTOR = st.binary(min_size=1, max_size=1).map(lambda letter: letter * SECTOR_BYTES)


@given(
    st.lists(SECTOR, max_size=4),
    st.lists(st.tuples(st.lists(SECTOR, max_size=4), st.lists(st.lists(SECTOR, min_size=1, max_size=3), max_size=3))),
    st.data(),
)
def test_the_guest_has_each_run_where_it_is_told(
    first: list[bytes], steps: list[tuple[list[bytes], list[list[bytes]]]], data: st.DataObject
) -> None:
    payload = b"".join(first)
    made = GuestPayload(len(payload))
    guest = payload
    for new, written in steps:
        payload += b"".join(new)
        made.extend(payload)
        sectors = len(payload) // SECTOR_BYTES
        delta = []
        for number in range(3 if sectors else 0):
            source = data.draw(st.integers(0, sectors - 1))
            delta.append((100 * number, source, data.draw(st.integers(1, sectors - source))))
        wanted = {
            sector + offset: payload[(source + offset) * SECTOR_BYTES :][:SECTOR_BYTES]
            for sector, source, count in delta
            for offset in range(count)
        }
        runs = made.runs(delta)
        for number, each in enumerate(map(b"".join, written)):
            runs.append(made.put(1000 + 100 * number, each))
            wanted |= {
                1000 + 100 * number + offset: each[offset * SECTOR_BYTES :][:SECTOR_BYTES]
                for offset in range(len(each) // SECTOR_BYTES)
            }
        guest += made.unsent()
        found = {
            sector + offset: guest[(source + offset) * SECTOR_BYTES :][:SECTOR_BYTES]
            for sector, source, count in runs
            for offset in range(count)
        }
        assert found == wanted
    assert made.unsent() == b"", "each part is sent once"


class FakeSandbox:
    """Changes sectors 5 and 6 of each state; the request ``lost`` fails."""

    def __init__(self, lost: str = "") -> None:
        self.lost = lost
        self.blobs: list[bytes] = []

    def ask(self, do: str, *, timeout: float, blob: bytes = b"", **asked: Any) -> tuple[dict[str, Any], bytes]:
        assert timeout > 0
        if do == self.lost:
            raise SandboxLost("it ended")
        if do == "has_base":
            return {"has": True}, b""
        self.blobs.append(blob)
        if do == "recover_prepare":
            assert asked["check"] == ["fsck", "DEVICE"]
            assert asked["clock"] == CLOCK
            return {}, b""
        count = len(asked["states"])
        header = {"digests": ["d"] * count, "accesses": [[1, 2, 1, 0, 5, 2]] * count, "changed": [[[5, 2]]] * count}
        return header, b"n" * 2 * SECTOR_BYTES * count


def recovery(sandbox: FakeSandbox) -> tuple[HostRecovery, HostCheckers, list[str]]:
    told: list[str] = []
    checkers = HostCheckers(sandbox, told.append)  # type: ignore[arg-type]
    subject = replace(samples.CONFIGURATION, fs=replace(samples.CONFIGURATION.fs, check=("fsck", "DEVICE")))
    return HostRecovery(checkers, subject, samples.BASE, [(0, 0, 1)], b"f" * SECTOR_BYTES, clock=CLOCK), checkers, told


def test_what_the_program_read_and_changed_comes_back() -> None:
    sandbox = FakeSandbox()
    made, _checkers, told = recovery(sandbox)
    one, other = made.recover([[(1, 0, 1)], []], b"f" * SECTOR_BYTES + b"g" * SECTOR_BYTES) or []
    assert one == other
    assert (one.digest, one.changed) == ("d", ((5, b"n" * 2 * SECTOR_BYTES),))
    assert [tuple(access) for access in one.accesses] == [(True, 2, 1, 0), (False, 5, 2, 1)]
    assert made.recover([], b"f" * SECTOR_BYTES + b"g" * SECTOR_BYTES) == []
    assert sandbox.blobs == [b"f" * SECTOR_BYTES, b"g" * SECTOR_BYTES, b""], "each part of the payload once"
    assert not told


@pytest.mark.parametrize("lost", ["recover_prepare", "recover"])
def test_without_a_sandbox_guests_check(lost: str) -> None:
    made, checkers, told = recovery(FakeSandbox(lost))
    assert made.recover([[]], b"f" * SECTOR_BYTES) is None
    assert made.recover([[]], b"f" * SECTOR_BYTES) is None
    assert told == ["it ended"]
    assert checkers.agent is None
