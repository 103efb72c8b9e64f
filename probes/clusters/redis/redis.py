"""Asks Redis by its protocol (RESP)."""

import socket


def ask(number, *words):
    """The answer of a node: text, a number, or None if it has no such key. Raises OSError if it does not answer."""
    with socket.create_connection((f"10.9.0.{10 + number}", 6379), 5) as connection:
        parts = [word.encode() for word in words]
        head = b"*%d\r\n" % len(parts)
        connection.sendall(head + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        answer = connection.makefile("rb")
        kind, line = answer.read(1), answer.readline().strip()
        if kind == b"-":
            raise OSError(line.decode())
        if kind == b":":
            return int(line)
        if kind == b"+":
            return line.decode()
        return None if line == b"-1" else answer.read(int(line)).decode()
