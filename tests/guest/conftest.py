"""Guests for the tests: one image and one hypervisor for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bob.guest.hypervisor import Hypervisor
from bob.guest.machine import Guest
from bob.guest.spec import Clock, GuestSpec
from bob.image import Image, ensure


@pytest.fixture
def paper_image(tmp_path: Path) -> Image:
    """An image of which only the names matter."""
    return Image(
        name="paper",
        key="0123456789abcdef",
        folder=tmp_path / "it's <paper> & ink",
        kernel_release="6.1.0",
        cmdline="console=ttyS0 quiet",
        host_key="ssh-ed25519 AAAA",
        built="2026-01-01T00:00:00+00:00",
        tools={},
        sizes={},
    )


@pytest.fixture(scope="session")
def image() -> Image:
    """The image that real guests boot."""
    return ensure("debian-bookworm", print)


@pytest.fixture(scope="session")
def hypervisor() -> Iterator[Hypervisor]:
    """bob's own libvirt."""
    with Hypervisor.open(progress=print) as hypervisor:
        yield hypervisor


@pytest.fixture(scope="session")
def spec(image: Image) -> GuestSpec:
    """A guest in real time."""
    return GuestSpec(image, Clock.REAL)


@pytest.fixture
def guest(hypervisor: Hypervisor, spec: GuestSpec) -> Iterator[Guest]:
    """A guest of one's own, to be broken."""
    with hypervisor.guest(spec) as guest:
        yield guest
