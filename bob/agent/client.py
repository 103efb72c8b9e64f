"""The host's end of the agent: pack the agent, and send it requests."""

import importlib.util
import io
import json
import marshal
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from bob.agent.inside.frames import PREFIX, encode
from bob.agent.loss import GuestLost
from bob.errors import BobError, OperationRefusedError, UsageError

_PACKAGE = Path(__file__).with_name("inside")

# PEP 552: magic number, flags (a hash is used, but not checked), and the hash of the source.
_UNCHECKED_PYC = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)


class DuplexStream(Protocol):
    """A stream of bytes in both directions, to a process in the guest."""

    def read_exactly(self, length: int, timeout: float) -> bytes:
        """Return ``length`` bytes; raise GuestLost when the stream ends, or after ``timeout`` seconds."""

    def write(self, data: bytes) -> None:
        """Send all of ``data``."""

    def close(self) -> None:
        """End the process."""


class AgentBroken(BobError):
    """An error: the agent itself failed, which is a bug in bob."""


def what_happened(failure: BobError, when: str = "") -> str:
    """Return in words why a guest did not answer. If the guest was lost, the text ``when`` (for example, " while
    recording") is added to say when that happened."""
    match failure:
        case AgentBroken():
            return str(failure)
        case UsageError():
            return f"the guest refused it: {failure}"
        case GuestLost():
            return f"the {failure.where} was lost{when}: {failure}"
    return f"the guest was lost{when}: {failure}"


def agent_file() -> bytes:
    """Return the agent as one file that ``python3`` runs (a zipapp). It includes bytecode. If the guest has the same
    version of Python as the host, the agent therefore starts in half the time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", "from bob.agent.inside.main import main\nmain()\n")
        for package in ("bob", "bob/agent"):
            archive.writestr(f"{package}/__init__.py", "")
        for module in sorted(_PACKAGE.glob("*.py")):
            name = f"bob/agent/inside/{module.name}"
            archive.write(module, name)
            code = compile(module.read_bytes(), name, "exec", dont_inherit=True)
            archive.writestr(f"{name}c", _UNCHECKED_PYC + marshal.dumps(code))
    return buffer.getvalue()


class Agent:
    """An agent in a guest, at the other end of one stream. It answers one request at a time. bob may pause the guest
    between requests. So this class sends each request in a block ``with awake():``, which lets the guest run.
    ``real_time`` says that the guest's clock is a real clock. (In a guest with a virtual clock, waits take nearly no
    time.) ``is_sound`` becomes False if the agent fails or does not answer, but not if it refuses a request."""

    def __init__(
        self,
        stream: DuplexStream,
        awake: Callable[[], AbstractContextManager[None]] = nullcontext,
        *,
        real_time: bool = False,
    ) -> None:
        self._stream = stream
        self._awake = awake
        self.real_time = real_time
        self.is_sound = True
        self.about = self.ask("hello", timeout=60)[0]

    def ask(self, do: str, *, timeout: float, blob: bytes = b"", **arguments: Any) -> tuple[dict[str, Any], bytes]:
        """Send a request to the agent, and return its answer as a header (JSON) and a blob of bytes. ``do`` is the name
        of the request, and ``arguments`` are its arguments. Raises UsageError if the guest cannot do what the request
        asks. Raises OperationRefusedError if the guest's file system refuses an operation of the workload. Raises
        AgentBroken if the agent fails, and GuestLost if no answer comes in ``timeout`` seconds."""
        was_sound, self.is_sound = self.is_sound, False
        with self._awake():
            self._stream.write(encode({"do": do, **arguments}, blob))
            header_length, blob_length = PREFIX.unpack(self._stream.read_exactly(PREFIX.size, timeout))
            encoded = self._stream.read_exactly(header_length, timeout)
            payload = self._stream.read_exactly(blob_length, timeout) if blob_length else b""
        header = json.loads(encoded)
        self.is_sound = was_sound and not header.get("broken")
        if not header.pop("ok"):
            if header.get("broken"):
                raise AgentBroken(f"the agent failed at {do}: {header['error']}")
            refusal = OperationRefusedError if header.get("operation") else UsageError
            raise refusal(header["error"], hint=header.get("hint"))
        return header, payload

    def close(self) -> None:
        self._stream.close()
