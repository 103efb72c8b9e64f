"""What all tests share."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Ctrl-C is not ignored here, nor in what tests start: a shell without job control starts its jobs so."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
