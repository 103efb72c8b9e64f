"""What all tests share."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from bob import settings
from bob.errors import BobError, UsageError
from bob.run import timings

TESTS = Path(__file__).parent

# How long an example takes says nothing where guests run beside it.
hypothesis_settings.register_profile("bob", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("bob")


def pytest_configure() -> None:
    """No signal is ignored here, nor in what tests start: a shell without job control, and nohup, start jobs so. Nor do
    they read the bob.toml of their user, or annotate where GitHub does. Nor do they note in their user's cache how long
    work takes: stand-ins for guests do it in no time."""
    theirs, cache = timings.note, settings.cache_home()
    timings.note = lambda more: None if settings.cache_home() == cache else theirs(more)
    os.environ["XDG_CONFIG_HOME"] = str(Path(tempfile.gettempdir()) / "no-settings-of-bob")
    os.environ.pop("GITHUB_ACTIONS", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


WITH_GUESTS = frozenset({"agent", "e2e", "guest"})
"""The folders with tests that boot guests: `./run test` looks for them nowhere else."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test with guests that `./run test` would not find."""
    for item in items:
        if item.get_closest_marker("vm") and item.path.relative_to(TESTS).parts[0] not in WITH_GUESTS:
            raise pytest.UsageError(
                f"{item.nodeid} boots a guest: `./run test` looks for that in {sorted(WITH_GUESTS)}"
            )


class WarmGuests:
    """Guests that the runs of several tests have one after the other, each with an agent of its own, which takes away
    what the one before it has left (``start_afresh``). A new guest would have the emulator translate the kernel anew,
    which takes longer than the run of a small test.

    Not lent are guests with a world, or of another libvirt. One in which something was raised, or that is dead, ends.
    """

    def __init__(self, start: Any) -> None:
        self._start = start
        self._idle: list[tuple[Any, Any, ExitStack]] = []

    @contextmanager
    def guest(self, hypervisor: Any, spec: Any, restore: bool) -> Iterator[Any]:
        """In place of ``Hypervisor.guest``."""
        if spec.world is not None or not restore or hypervisor._uri is not None:
            with self._start(hypervisor, spec, restore=restore) as guest:
                yield guest
            return
        with ExitStack() as stack:
            guest, mine = self._woken(spec)
            if guest is None:
                guest = mine.enter_context(self._start(hypervisor, spec))
            stack.push(mine)
            refusal = None
            try:
                yield guest
            except UsageError as refused:  # there is nothing wrong with the guest
                refusal = refused
            guest._signal(signal.SIGCONT)  # in virtual time it was awake only while it was asked
            with suppress(BobError):  # it is lost
                guest.shell.run("rm -rf /root/*", timeout=60)  # what a program has left
                guest._signal(signal.SIGSTOP)
                self._idle.append((spec, guest, stack.pop_all()))
            if refusal is not None:
                raise refusal

    def _woken(self, spec: Any) -> tuple[Any, ExitStack]:
        """The guest of this kind that was in use last, None if there is none; and what ends it."""
        for number in range(len(self._idle) - 1, -1, -1):
            if self._idle[number][0] == spec:
                _spec, guest, ending = self._idle.pop(number)
                if guest.running:
                    guest._signal(signal.SIGCONT)
                    return guest, ending
                ending.close()
        return None, ExitStack()

    def end(self) -> None:
        """End those that wait."""
        while self._idle:
            self._idle.pop()[2].close()


@pytest.fixture(scope="session")
def kept_warm() -> Iterator[WarmGuests]:
    """Those of this session."""
    from bob.guest.hypervisor import Hypervisor

    warm = WarmGuests(Hypervisor.guest)
    yield warm
    warm.end()


@pytest.fixture
def warm_guests(kept_warm: WarmGuests, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of this test get guests in which others were, and where they do not say how many, one at a time: for
    what is not about how guests begin and end, nor about several side by side."""
    from bob.guest import capacity
    from bob.guest.hypervisor import Hypervisor

    monkeypatch.setattr(Hypervisor, "guest", lambda mine, spec, *, restore=True: kept_warm.guest(mine, spec, restore))
    monkeypatch.setattr(capacity, "_available_mib", lambda: capacity.MIB_OF_A_GUEST)
