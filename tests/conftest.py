"""What all tests share."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings

# How long an example takes says nothing where guests run beside it.
settings.register_profile("bob", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bob")


def pytest_configure() -> None:
    """No signal is ignored here, nor in what tests start: a shell without job control, and nohup, start jobs so. Nor do
    they read the bob.toml of whoever runs them, or annotate where GitHub does."""
    os.environ["XDG_CONFIG_HOME"] = str(Path(tempfile.gettempdir()) / "no-settings-of-bob")
    os.environ.pop("GITHUB_ACTIONS", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
