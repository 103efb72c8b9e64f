"""Asks the nodes."""

import json
import os
import socket
import time


def ask(root, seconds, *words):
    """The first answer of a node; None if there is none for some seconds."""
    until = time.monotonic() + seconds
    while True:
        for number in range(len(os.listdir(root))):
            try:
                with socket.create_connection((f"10.9.0.{10 + number}", 7001), 3) as connection:
                    connection.settimeout(8)
                    connection.sendall(json.dumps(words).encode() + b"\n")
                    return json.loads(connection.makefile().readline())
            except (OSError, ValueError):
                continue
        if time.monotonic() > until:
            return None
        time.sleep(0.2)
