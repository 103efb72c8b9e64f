"""Asks NATS by its protocol."""

import json
import os
import socket
import time


class Client:
    def __init__(self, number):
        self.socket = socket.create_connection((f"10.9.0.{10 + number}", 4222), 3)
        self.answers, self.count = self.socket.makefile("rb"), 0
        self.answers.readline()
        self.socket.sendall(b'CONNECT {"verbose":false}\r\nSUB _I.> 1\r\nPING\r\n')
        while self.answers.readline() != b"PONG\r\n":
            pass

    def ask(self, subject, data=b"", seconds=3):
        self.count += 1
        self.socket.settimeout(seconds)
        self.socket.sendall(b"PUB %s _I.%d %d\r\n%s\r\n" % (subject.encode(), self.count, len(data), data))
        while True:
            line = self.answers.readline()
            if not line:
                raise OSError("the connection was closed")
            if line.startswith(b"PING"):
                self.socket.sendall(b"PONG\r\n")
            if line.startswith((b"MSG", b"HMSG")):
                size = int(line.split()[-1])
                return json.loads(self.answers.read(size + 2)[:-2] or b"{}")


def ask(root, seconds, subject, **request):
    """The first answer of a node that is no error; after some seconds, the last error, or None."""
    until, answer = time.monotonic() + seconds, None
    while True:
        for number in range(len(os.listdir(root))):
            try:
                answer = Client(number).ask(subject, json.dumps(request).encode() if request else b"")
            except (OSError, ValueError):
                continue
            if "error" not in answer:
                return answer
        if time.monotonic() > until:
            return answer
        time.sleep(0.5)
