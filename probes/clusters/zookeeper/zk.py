"""A client of the ensemble."""

import logging
import os
from contextlib import contextmanager

from kazoo.client import KazooClient

PORT = 2181


@contextmanager
def connected(root, seconds):
    """A client of a node that serves. Raises kazoo's error if there is none for some seconds."""
    logging.disable()
    hosts = ",".join(f"10.9.0.{10 + number}:{PORT}" for number in range(len(os.listdir(root))))
    client = KazooClient(hosts, timeout=60)
    client.start(seconds)
    try:
        yield client
    finally:
        client.stop()
