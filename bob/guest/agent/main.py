"""The agent's entry: requests on standard input, replies on standard output."""

from __future__ import annotations

import os
import sys

from bob.guest.agent.frames import Reply, serve
from bob.guest.agent.observer import observe, observe_prepare
from bob.guest.agent.recorder import WORK, drop_base, has_base, make_base, put_base, record


def hello(blob: bytes) -> Reply:
    """Who is there: the kernel's release and the agent's Python."""
    os.makedirs(WORK, exist_ok=True)
    return {"kernel": os.uname().release, "python": sys.version.split()[0]}, b""


HANDLERS = {
    function.__name__: function
    for function in (hello, make_base, put_base, has_base, drop_base, record, observe_prepare, observe)
}


def main() -> None:
    """Serve until the host closes the stream."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not get between the frames
    serve(sys.stdin.buffer, replies, HANDLERS)
