"""The frames that agent and host exchange, over one byte stream in each direction (big-endian)::

    u32 header length | u32 blob length | header (JSON) | blob

A request's header is ``{"do": NAME, ...}``. The reply's header is ``{"ok": true, ...}`` or ``{"ok": false, "error":
...}``. A reply with an error may also have a ``"hint"``, ``"broken": true`` (the agent failed) or ``"operation": true``
(the file system refused an operation of the workload)."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

PREFIX = struct.Struct(">II")

Reply = tuple[dict[str, Any], bytes]
Handler = Callable[..., Reply]


class Denial(Exception):
    """An error: the guest could not do what bob asked. The message and the ``hint`` are for the user."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class ContentRefused(Denial):
    """The kernel, or a program, refuses what is on a disk (:mod:`bob.agent.inside.refusals`)."""


class OperationRefused(Denial):
    """The file system refused an operation of a workload, or of its initial tree."""


def encode(header: Mapping[str, Any], blob: bytes = b"") -> bytes:
    encoded = json.dumps(header, separators=(",", ":")).encode()
    return PREFIX.pack(len(encoded), len(blob)) + encoded + blob


def read_exactly(stream: BinaryIO, length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


def serve(requests: BinaryIO, replies: BinaryIO, handlers: Mapping[str, Handler]) -> None:
    while True:
        try:
            header_length, blob_length = PREFIX.unpack(read_exactly(requests, PREFIX.size))
            header = json.loads(read_exactly(requests, header_length))
            blob = read_exactly(requests, blob_length)
        except EOFError:
            return
        try:
            answer, payload = handlers[header.pop("do")](blob=blob, **header)
            answer = {"ok": True, **answer}
        except Denial as refusal:
            answer, payload = {"ok": False, "error": str(refusal)}, b""
            if refusal.hint:
                answer["hint"] = refusal.hint
            if isinstance(refusal, OperationRefused):
                answer["operation"] = True
        except Exception as failure:
            answer, payload = {"ok": False, "error": f"{type(failure).__name__}: {failure}", "broken": True}, b""
        replies.write(encode(answer, payload))
        replies.flush()
