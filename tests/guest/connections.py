"""The loss of a connection to a machine of which nothing else is known."""

from __future__ import annotations

from bob.errors import GuestError


class ConnectionLost(GuestError):
    """The connection broke, or nothing came for too long."""


def connection_lost(_disconnected: bool, message: str) -> GuestError:
    return ConnectionLost(message, hint="is the machine still running?")
