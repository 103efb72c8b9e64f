"""A server of Redis, and a client of it, on this machine's loopback interface."""

import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

PORT = 6379
LOG = Path("/tmp/redis.log")


class CannotStart(Exception):
    """The server ended; with its last words."""


@contextmanager
def running(folder):
    """A function that asks the server, which keeps its data in ``folder`` and is stopped in the end. Raise CannotStart
    if the server ends."""
    configuration, data = Path(__file__).resolve().with_name("redis.conf"), Path(folder).resolve()
    options = ["--port", str(PORT), "--bind", "127.0.0.1", "--dir", data, "--save", "", "--appendonly", "yes"]
    command = ["redis-server", configuration, *options]
    with LOG.open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield _connected(server)
    finally:
        server.terminate()
        server.wait()


def _connected(server):
    while server.poll() is None:
        try:
            connection = socket.create_connection(("127.0.0.1", PORT), 60)
            ask = _asking(connection)
            while str(ask("PING")).startswith("LOADING"):
                time.sleep(0.1)
            return ask
        except ConnectionRefusedError:
            time.sleep(0.1)
    with LOG.open() as log:
        lines = [line.strip() for line in log if line.strip()]
    raise CannotStart(lines[-1] if lines else f"it ends with {server.returncode}")


def _asking(connection):
    answers = connection.makefile("rb")

    def ask(*words):
        """The answer: text, or None if there is no such key."""
        parts = [word.encode() for word in words]
        head = b"*%d\r\n" % len(parts)
        connection.sendall(head + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        kind, line = answers.read(1), answers.readline().strip()
        if kind != b"$":
            return line.decode()
        return None if line == b"-1" else answers.read(int(line) + 2)[:-2].decode()

    return ask
