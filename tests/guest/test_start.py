"""What bob doctor tries: whether QEMU starts at all."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

ASK = """
from bob.guest.driver import connect, disconnect, why_no_guest
from bob.guest.root import Root
connection, _versions = connect(Root.shared().uri)
print(why_no_guest(connection))
print(len(connection.listAllDomains()), "left")
"""


def asked(most: int) -> list[str]:
    """What a process says that may have, with all that it starts, ``most`` bytes of address space each."""
    limit = (lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most))) if most else None
    words = [sys.executable, "-c", ASK]
    return subprocess.run(words, capture_output=True, text=True, check=True, preexec_fn=limit).stdout.splitlines()


@pytest.mark.vm
def test_a_guest_starts_for_a_moment() -> None:
    assert asked(0) == ["None", "0 left"]


@pytest.mark.vm
def test_where_qemu_gets_no_memory_it_does_not_start() -> None:
    why, left = asked(450 * 2**20)
    assert "memory" in why.lower() and left == "0 left"
