"""Agents in sandboxes on the host. bob can use several sandboxes at the same time, and talks to each agent over pipes.
A sandbox is lost if it ends or its agent no longer answers."""

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from bob.agent.client import Agent, AgentBroken, agent_file
from bob.agent.loss import LossCause, SandboxLost
from bob.agent.shared import START
from bob.errors import UsageError
from bob.sandbox import bubblewrap

WRITE_SECONDS = 600.0  # a sandbox may take so long to read a request
LONGEST = 64 * 2**20  # bytes of an answer, at most: a script could forge an answer
PART = 2**16
_SAID = 300  # characters of an error that a message quotes
_running: set[subprocess.Popen[bytes]] = set()  # the first processes of open sandboxes


class SandboxedAgent(Agent):
    """An agent in a sandbox. It counts as lost after the first request that it refuses or that fails. A program that
    the request ran may have left files or processes in the sandbox, so bob does not use the sandbox again."""

    def ask(self, do: str, *, timeout: float, blob: bytes = b"", **arguments: Any) -> tuple[dict[str, Any], bytes]:
        try:
            return super().ask(do, timeout=timeout, blob=blob, **arguments)
        except (UsageError, AgentBroken) as refusal:
            self.is_sound = False
            raise SandboxLost(refusal.message) from None


class SandboxStream:
    """The two pipes between bob and the agent's process in a sandbox. ``errors`` is the file with the process's
    standard error."""

    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process, self._errors = process, errors
        self._to, self._from = process.stdin.fileno(), process.stdout.fileno()
        for fd in (self._to, self._from):
            os.set_blocking(fd, False)

    def read_exactly(self, length: int, timeout: float) -> bytes:
        if length > LONGEST:
            raise SandboxLost("its agent answers with what is no answer")
        end, data = time.monotonic() + timeout, bytearray()
        while len(data) < length:
            if not _is_ready(self._from, select.POLLIN, end):
                raise SandboxLost(f"nothing came from it for {timeout:.0f} s", LossCause.HUNG)
            part = os.read(self._from, min(PART, length - len(data)))
            if not part:
                raise self._ended()
            data += part
        return bytes(data)

    def write(self, data: bytes) -> None:
        end, rest = time.monotonic() + WRITE_SECONDS, memoryview(data)
        while rest:
            if not _is_ready(self._to, select.POLLOUT, end):
                raise SandboxLost(f"it took nothing for {WRITE_SECONDS:.0f} s", LossCause.HUNG)
            try:
                rest = rest[os.write(self._to, rest[:PART]) :]
            except BrokenPipeError:
                raise self._ended() from None

    def close(self) -> None:
        """End all processes in the sandbox. Killing bubblewrap ends the first process in the sandbox, and the kernel
        then ends all others."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()

    def _ended(self) -> SandboxLost:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)  # wait for its end, so that its last message is in the file
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        return SandboxLost(f"it ended: {said[-1][:_SAID]}" if said else "it ended without a word", LossCause.VANISHED)


def _is_ready(fd: int, event: int, end: float) -> bool:
    waiting = select.poll()
    waiting.register(fd, event)
    return bool(waiting.poll(max(0.0, end - time.monotonic()) * 1000))


@cache
def packed_agent() -> bytes:
    return agent_file()


@contextmanager
def sandbox(root: Path) -> Iterator[Agent]:
    """Yield the agent in a new sandbox. The folder ``root`` is the root directory in the sandbox, and must contain
    Python. Several sandboxes may use the same folder. Raises SandboxLost if the sandbox cannot be made."""
    packed = packed_agent()
    words = bubblewrap.confined(root, ["/usr/bin/python3", "-S", "-c", START, str(len(packed))])
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd="/",
                bufsize=0,
                start_new_session=True,
            )
        except FileNotFoundError as missing:
            raise SandboxLost(f"{missing.filename} is not installed", LossCause.VANISHED) from None
        except OSError as error:
            raise SandboxLost(f"no process could be started: {error.strerror}", LossCause.VANISHED) from None
        stream = SandboxStream(process, errors)
        _running.add(process)
        try:
            stream.write(packed)
            yield SandboxedAgent(stream)
        finally:
            stream.close()
            _running.discard(process)


def end_sandboxes() -> None:
    """End all sandboxes of this process. Code that uses such a sandbox then sees that the sandbox is lost."""
    for process in list(_running):
        process.kill()


def why_none(root: Path) -> str | None:
    """Return why bob cannot make a sandbox with the root directory ``root`` on this machine. Return None if a trial
    sandbox started."""
    if not bubblewrap.is_installed():
        return f"{bubblewrap.PACKAGE} is not installed"
    try:
        with sandbox(root):
            return None
    except SandboxLost as lost:
        return lost.message
