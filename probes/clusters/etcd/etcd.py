"""Asks etcd by JSON over HTTP."""

import base64
import json
import os
import time
import urllib.request


def call(number, path, seconds=5, **request):
    """The answer of a node. Raises OSError if it has none."""
    url = f"http://10.9.0.{10 + number}:2379/v3/{path}"
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(request).encode()), timeout=seconds) as answer:
        return json.load(answer)


def ask(root, seconds, path, **request):
    """The first answer of a node; None if there is none for some seconds."""
    until = time.monotonic() + seconds
    while True:
        for number in range(len(os.listdir(root))):
            try:
                return call(number, path, **request)
            except (OSError, ValueError):
                continue
        if time.monotonic() > until:
            return None
        time.sleep(0.2)


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def decoded(text):
    return base64.b64decode(text).decode()
