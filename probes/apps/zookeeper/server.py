"""A server of ZooKeeper and its client, on this machine's loopback interface."""

import logging
import re
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from kazoo.client import KazooClient

PORT, LOG = 2181, Path("/tmp/zookeeper.log")
# An emulated processor has more work with compiled code than with interpreted code that runs this shortly.
JAVA = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-Xint"]
# A log of 64 KiB in place of 64 MiB is made larger as often as needed; the server for administrators is not.
JAVA += ["-Dzookeeper.preAllocSize=64", "-Dzookeeper.admin.enableServer=false"]
JAVA += ["-cp", "/etc/zookeeper/conf_example:/usr/share/java/zookeeper.jar"]
JAVA += ["org.apache.zookeeper.server.ZooKeeperServerMain"]


class CannotStart(Exception):
    """The server ended; with its last words."""


@contextmanager
def running(data):
    """A client of a server that keeps its data in this folder; both are stopped in the end. Raises CannotStart."""
    logging.disable()
    with LOG.open("w") as log:
        server = subprocess.Popen([*JAVA, str(PORT), data], stdout=log, stderr=log)
    client = KazooClient(f"127.0.0.1:{PORT}", timeout=300)
    try:
        _wait_for(server, Serving())
        client.start_async()
        _wait_for(server, lambda: client.connected)
        yield client
        client.stop()
    finally:
        server.terminate()
        server.wait()


def _wait_for(server, is_so):
    """Wait as long as the server runs: a slow machine is no reason to call it broken."""
    while not is_so():
        if server.poll() is not None:
            raise CannotStart(_last_words())
        time.sleep(0.1)


class Serving:
    """Whether the server answers: a client that comes too early may wait until its session would end. The server never
    answers who asks as it begins to listen, so it is soon asked again; on a slow machine, less and less soon."""

    def __init__(self):
        self.patience = 2.0

    def __call__(self):
        try:
            with socket.create_connection(("127.0.0.1", PORT), timeout=60) as connection:
                connection.settimeout(self.patience)
                connection.sendall(b"srvr")
                return b"Mode: " in connection.makefile("rb").read()
        except TimeoutError:
            self.patience = min(60.0, 2 * self.patience)
        except OSError:
            pass
        return False


def _last_words():
    lines = [line.strip() for line in LOG.read_text().splitlines() if re.search(r"Exception|ERROR|Unable", line)]
    return lines[0] if lines else "the server ends"
