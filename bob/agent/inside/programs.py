"""Runs the scripts of a program under test: its setup, its workload, its checker.

A script is an executable in any language. It runs in the file system under test, with that directory as its first
argument and as its working directory (the checker's working directory is /). When a script has ended, all that it has
started is killed: a server is gone before the next crash state is looked at.
"""

from __future__ import annotations

import ctypes
import io
import os
import shutil
import signal
import subprocess
import tarfile
import time
from contextlib import ExitStack, nullcontext, suppress
from typing import NamedTuple

from bob.agent.inside.bounds import MOST_WRITTEN, ScriptBounds, do_not_spare, first_of_all
from bob.agent.inside.devices import WORK, plain_environment
from bob.agent.inside.frames import Denial, Reply
from bob.agent.inside.mounts import ROOT, libc
from bob.agent.inside.neighbour import Neighbour
from bob.agent.inside.pacing import PacedPipe
from bob.agent.inside.processes import WAKING, Drain, descendants, ends_within, has_children, name_of, state_of
from bob.agent.inside.stores import StoreWatch
from bob.agent.inside.traced_calls import CLOSES, PLACING, READS, TRACED
from bob.agent.inside.warm_python import ForkedChecker, WarmPython
from bob.agent.inside.world import WORLD, enter_world, within

HOME = f"{WORK}/program"
"""Where the files of the program are."""
TOLD = f"{WORK}/told"
"""The file by which a checker learns what was told before the crash."""
CALLS = f"{WORK}/calls"
"""What strace wrote."""
PIPE, BESIDE = f"{WORK}/calls.pipe", f"{WORK}/calls.beside"
"""Through which it is read at once: where stores are watched; and where the program waits after calls, with the stores
that were seen."""
SCRATCH: tuple[str, ...] = "/tmp", "/var/tmp", "/dev/shm"
PR_SET_CHILD_SUBREAPER = 36
MOST_OUTPUT = 64 * 1024
"""So much of the last that a script prints is kept (bytes); of a workload's standard output, all (bounds.py)."""
LONGEST = 16 * 1024 * 1024
"""How much of what one call writes strace may write down (bytes)."""
GONE_SECONDS = 30.0
MOST_PATIENCE = 100
"""So many times the limit a script may wait for a disk."""
LOOKS = 20
"""At so many moments, a waking apart, bob looks whether it does."""


class ScriptExit(NamedTuple):
    """How a script ended: its exit code (negative: the signal; None: it took too long), what it wrote to its standard
    output, and the last of what it wrote to its standard error, or to both where they are one."""

    code: int | None
    output: bytes
    said: bytes

    @property
    def words(self) -> str:
        """What it said, for people: paths of the file system under test as they are in that."""
        return self.said.decode(errors="replace").replace(f"{ROOT}/", "/").replace(ROOT, "/")


uses_world = False
"""Whether the scripts of the program run in a world of their own."""
warm: WarmPython | None = None
"""What forks for the program's checker, once it was run."""


def put_program(blob: bytes, world: bool = False) -> Reply:
    """Take the files of a program, a tar archive, in place of those of another one. Its scripts are run in the
    ``world`` that is on a disk of the guest's, where they need one."""
    global uses_world, warm
    if warm is not None:
        warm.end()
    warm = None
    if world:
        enter_world()
    uses_world = world
    shutil.rmtree(HOME, ignore_errors=True)
    os.makedirs(HOME)
    with tarfile.open(fileobj=io.BytesIO(blob)) as archive:
        archive.extractall(HOME)
    return {}, b""


def has_script(name: str) -> bool:
    """Whether the program has a script of this name."""
    return os.path.exists(f"{HOME}/{name}")


def run_setup(seconds: float) -> None:
    """Run the program's setup, if it has one; refuse in its own words where it fails."""
    if not has_script("setup"):
        return
    ended = run_script([f"{HOME}/setup", ROOT], seconds, ROOT)
    if ended.code != 0:
        raise Denial(f"setup {how_it_ended(ended, seconds)}")


def run_workload(
    seconds: float,
    stores: bool = False,
    delay: float = 0.0,
    neighbour: Neighbour | None = None,
    stacks: bool = False,
) -> tuple[bytes, bytes, int]:
    """Run the program's workload under strace: what it wrote to its standard output, what strace wrote, and the inode
    of the pipe that its standard output was. Refuses in its own words where it fails.

    With ``stores`` what it stores through shared mappings is among the calls (:mod:`bob.agent.inside.stores`). With a
    ``delay`` the program waits so many seconds when a call that changes something has returned; then the ``neighbour``
    syncs (:mod:`bob.agent.inside.pacing`).

    With ``stacks`` each call has its frames. To look at them takes strace longer than all else, so a workload that
    fails, or does not end in time, is not refused: what it did until then is told.
    """
    with suppress(FileNotFoundError):
        os.unlink(CALLS)
    into = CALLS
    # A look at the frames of each read and close would take longest of all.
    traced = TRACED if stacks else f"{TRACED},{PLACING},{READS},{CLOSES}"
    with ExitStack() as beside:
        pacing = watching = None
        if delay:
            pacing = beside.enter_context(PacedPipe(BESIDE, into, ROOT, delay, neighbour))
            into = BESIDE
        if stores:
            watching = beside.enter_context(StoreWatch(PIPE, into, ROOT))
            into, traced = PIPE, f"{traced},munmap"
        ended, pipe_inode = _run_traced(seconds, into, traced, stacks)
        if pacing is not None and ended.code == 0:
            pacing.wait()
        if watching is not None:
            watching.wait()
    if ended.code != 0 and not stacks:
        raise Denial(f"workload {how_it_ended(ended, seconds)}")
    with open(CALLS, "rb") as calls:
        text = calls.read()
    os.unlink(CALLS)  # the guest has it in memory
    return ended.output, text, pipe_inode


def _run_traced(seconds: float, calls: str, traced: str, stacks: bool) -> tuple[ScriptExit, int]:
    # -D: the workload is our child, so we learn when it ends, and not when all that it has started does.
    tracer = ["strace", "-D", "-f", "-q", "-y", "--seccomp-bpf", "-ttt", "-xx", "-s", str(LONGEST), "-o", calls]
    tracer += ["-k"] if stacks else []
    started = Script([*tracer, "-e", f"trace={traced}", "-e", f"raw={READS}"], [f"{HOME}/workload", ROOT], ROOT)
    return started.wait(seconds), started.pipe_inode


def run_check(told: bytes, seconds: float) -> ScriptExit:
    """Run the program's checker on what is mounted, after a crash before which ``told`` was told."""
    with open(TOLD, "wb") as file:
        file.write(told)
    global warm
    if warm is None:
        warm = WarmPython(f"{HOME}/check", lambda words: _placed(words, "/"), _environment(), seconds)
    return run_script([f"{HOME}/check", ROOT, TOLD], seconds, "/", warm)


def run_spoiler(name: str, seconds: float) -> None:
    """Have a script of the program spoil what is mounted; refuse where it fails."""
    ended = run_script([f"{HOME}/{name}", ROOT], seconds, ROOT)
    if ended.code != 0:
        raise Denial(f"{name} {how_it_ended(ended, seconds)}")


def clear_scratch() -> None:
    """Remove what earlier scripts left in the folders for files that are not kept: a checker must not see what another
    crash state, or the workload, has left outside of the file system under test."""
    root = WORLD if uses_world else ""
    for folder in SCRATCH:
        with suppress(OSError):
            for name in os.listdir(root + folder):
                path = f"{root}{folder}/{name}"
                if path in (WORK, WORLD + WORK):
                    continue
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    os.unlink(path)


def run_script(words: list[str], seconds: float, folder: str, forks: WarmPython | None = None) -> ScriptExit:
    """Run a script to its end, for ``seconds`` at most, and kill what it leaves behind. A Python that ``forks`` for it
    may do so, in place of a new one."""
    return Script([], words, folder, forks).wait(seconds)


def _placed(words: list[str], folder: str) -> list[str]:
    """The words that run ``words`` in ``folder``, and in the program's world where it has one."""
    return within(words, folder) if uses_world else words


def _environment() -> dict[str, str]:
    return {**plain_environment(), "HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def how_it_ended(ended: ScriptExit, seconds: float) -> str:
    """In words, with the last of what it printed; and that the file system under test is full, if it is."""
    said = ended.words.strip().splitlines()
    words = f": {said[-1][:300]}" if said else ""
    words += "; the file system is full, and device_mib in app.toml makes it larger" if _is_full(ROOT) else ""
    if ended.code is None:
        return f"did not end within {seconds:g} s{words}"
    return f"failed ({ended.code}){words}"


def _is_full(path: str) -> bool:
    """Whether the file system at ``path`` has next to nothing left for files."""
    with suppress(OSError):
        there = os.statvfs(path)
        return there.f_bavail * 50 < there.f_blocks
    return False


class Script:
    """A script, ``words`` with its arguments, that was started in ``folder`` under a ``tracer`` (empty: none), or that
    a Python ``forks`` for."""

    def __init__(self, tracer: list[str], words: list[str], folder: str, forks: WarmPython | None = None) -> None:
        clear_scratch()
        libc.prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0)
        self._alone = {forks.pid} if forks is not None and forks.pid is not None else set[int]()
        self._others = set(descendants(os.getpid())) if has_children(self._alone) else self._alone
        read_end, write_end = os.pipe()
        self.pipe_inode = os.fstat(write_end).st_ino
        self._name, self._bounds = os.path.basename(words[0]), ScriptBounds(self._others, CALLS if tracer else "")
        is_told = bool(tracer)  # a workload's output is told; of the others one wants to read what they said, in order
        self._process: subprocess.Popen[bytes] | ForkedChecker
        try:
            if forks is not None and forks.pid is not None:
                self._process = forks.fork(words[1:], write_end)
            else:
                self._process = subprocess.Popen(
                    [*tracer, *_placed(words, folder)],
                    stdin=subprocess.DEVNULL,
                    stdout=write_end,
                    stderr=subprocess.PIPE if is_told else subprocess.STDOUT,
                    cwd=folder,
                    env=_environment(),
                    start_new_session=True,
                )
        except OSError as error:
            os.close(read_end)
            raise Denial(f"{self._name} cannot be started: {error.strerror}") from None
        finally:
            os.close(write_end)
        do_not_spare(self._process.pid)
        limit = MOST_WRITTEN if is_told else 0  # what others print is not kept
        self._output = self._said = Drain(read_end, 0 if is_told else MOST_OUTPUT, limit)
        if self._process.stderr is not None:
            self._said = Drain(os.dup(self._process.stderr.fileno()), MOST_OUTPUT, limit)
            self._process.stderr.close()

    def wait(self, seconds: float) -> ScriptExit:
        """Wait for its end, and kill what it leaves behind. Where one of its processes waits for a disk when the time
        is over, it has as much again: virtual time jumps over the host's, so the disk of a busy host takes minutes.

        Refuses where it takes too much of the guest: nothing that it does then says anything of it.
        """
        code: int | None = None
        for _more in range(MOST_PATIENCE):
            if ends_within(self._process.pid, seconds, self._takes_too_much):
                code = self._process.wait()
                break
            if self._takes_too_much() or not self._is_at_the_disk():
                break
        too_much = self._takes_too_much()
        with first_of_all() if too_much else nullcontext():
            self._kill_all()
        ended = ScriptExit(code, self._output.all(), self._said.all())
        if too_much:
            raise Denial(f"{self._name} {too_much}")
        if ended.code != 0 and (memory := self._bounds.memory()):
            clear_scratch()  # which is memory, too
            raise Denial(f"{self._name} {how_it_ended(ended, seconds)}; {memory}")
        return ended

    def _takes_too_much(self) -> str:
        """What it takes, in words; empty where that is not too much."""
        return self._bounds.broken((self._output, self._said))

    def _is_at_the_disk(self) -> bool:
        """Whether one of its processes waits for a disk at any of some moments: between two reads it does not. Also
        where the script ends meanwhile."""
        for _look in range(LOOKS):
            waits = any(state_of(pid) == "D" for pid in descendants(os.getpid()) if pid not in self._others)
            if waits or ends_within(self._process.pid, WAKING / 1000):
                return True
        return False

    def _kill_all(self) -> None:
        """Kill the script, all its descendants, and wait until they, and the tracer, are gone."""
        deadline = time.monotonic() + GONE_SECONDS
        while has_children(self._alone) and (
            left := [pid for pid in descendants(os.getpid()) if pid not in self._others]
        ):
            for pid in left:
                with suppress(OSError):
                    # strace ends by itself, with all in its file, if nothing holds it (:mod:`bob.agent.inside.pacing`)
                    os.kill(pid, signal.SIGCONT if name_of(pid) == "strace" else signal.SIGKILL)
            for pid in left:
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(left)} processes of the program cannot be killed")
            time.sleep(0.001)
        self._process.returncode = self._process.returncode if self._process.returncode is not None else -9
