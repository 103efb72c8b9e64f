"""Run the scripts of a program under test: its setup, its workload and its checker. The first argument of each script
is the directory of the file system under test. The setup and the workload also have that directory as working
directory; the checker does not. When a script ends, all processes that it started are killed."""

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
from typing import Any, NamedTuple

from bob.agent.inside import processes
from bob.agent.inside.devices import WORK, plain_environment
from bob.agent.inside.frames import Denial, Reply
from bob.agent.inside.isolation import prepare_isolation
from bob.agent.inside.mounts import ROOT, libc, node_place
from bob.agent.inside.nodes import (
    AGAIN_SECONDS,
    REAL_AGAIN_SECONDS,
    STARTING,
    STARTS,
    NodesDocument,
    bring_up,
    seconds_of_check,
    with_node_alone,
    with_nodes,
)
from bob.agent.inside.pacing import Neighbour, PacedPipe
from bob.agent.inside.stores import StoreWatch
from bob.agent.inside.traced_calls import CLOSES, PLACING, READS, TRACED
from bob.agent.inside.warm_python import ForkedChecker, WarmPython
from bob.agent.inside.world import HOME, WORLD, enter_world, within

TOLD = f"{WORK}/told"  # the program's output before the crash, for the checker
CALLS = f"{WORK}/calls"  # strace's output
PIPE, BESIDE = f"{WORK}/calls.pipe", f"{WORK}/calls.beside"  # pipes before that file: for stores, for a pace
SCRATCH: tuple[str, ...] = "/tmp", "/var/tmp", "/dev/shm"
PR_SET_CHILD_SUBREAPER = 36
MOST_OUTPUT = 64 * 1024  # bytes kept of a script's output; all of a workload's standard output is kept (processes.py)
LONGEST = 16 * 1024 * 1024  # bytes of a call's data that strace writes down at most
GONE_SECONDS = 30.0
MOST_PATIENCE = 100  # a script that waits for a disk may take so many times its limit
LOOKS = 20  # times that bob looks whether a process waits for a disk
_RIGHTS = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+sys_chroot"
WITHOUT_RIGHTS = ["setpriv", f"--bounding-set={_RIGHTS}", "--inh-caps=-all"]
"""The words before a script's command in a sandbox. They leave root's rights, except rights to mount, or to take over
the agent."""


MOST_BYTES = 64 * 1024 * 1024  # bytes; a larger file is not sent to the host


class ScriptExit(NamedTuple):
    """The end of a script. ``code`` is its exit code (negative: the signal that ended it; None: it took too long).
    ``output`` is its standard output. ``said`` is the last part of its standard error."""

    code: int | None
    output: bytes
    said: bytes

    @property
    def words(self) -> str:
        return self.said.decode(errors="replace").replace(f"{ROOT}/", "/").replace(ROOT, "/")


nodes: NodesDocument | None = None  # the nodes of the program, if it is a cluster
uses_world = False  # whether the program's scripts run in a world (world.py)
owns_machine = False  # whether the temporary files of this machine are bob's, as in its guests and sandboxes
warm: WarmPython | None = None  # the process that forks for the program's checker, once the checker has run


def put_program(blob: bytes, world: bool = False, cluster: list[Any] | None = None) -> Reply:
    """Replace the program's files by those in the tar archive ``blob``. If ``world`` is true, the scripts will run in a
    root file system of their own (:mod:`bob.agent.inside.world`). If the program is a cluster, ``cluster`` describes
    its nodes (a NodesDocument)."""
    global nodes, uses_world, warm
    if warm is not None:
        warm.end()
    warm = None
    if world:
        enter_world()
    uses_world = world
    nodes = None if cluster is None else NodesDocument(*cluster)
    if nodes is not None:
        bring_up(nodes.number)
        prepare_isolation(nodes.number, world)
    shutil.rmtree(HOME, ignore_errors=True)
    os.makedirs(HOME)
    with tarfile.open(fileobj=io.BytesIO(blob)) as archive:
        archive.extractall(HOME)
    return {}, b""


def choose_start(late: int, blob: bytes, alone: int = -1) -> Reply:
    """From now on, start the node ``late`` of the cluster after the others (-1: all together). If ``alone`` is not -1,
    start only this node, and run the script ``signature`` in place of the check."""
    global nodes
    if nodes is None:
        raise Denial("the program is not a cluster")
    nodes = nodes._replace(late=late, alone=alone)
    return {}, b""


def read_files(blob: bytes, paths: list[str]) -> Reply:
    """Return the bytes of the files ``paths``, one after the other. A file that is missing or too large counts as
    empty."""
    found = [_read(path) for path in paths]
    return {"lengths": list(map(len, found))}, b"".join(found)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError:
        return b""
    return data if len(data) <= MOST_BYTES else b""


def directories() -> list[str]:
    """Return the directories of the file systems under test: one, or one for each node of a cluster."""
    return [ROOT] if nodes is None else [node_place(number) for number in range(nodes.number)]


def run_setup(seconds: float) -> None:
    if os.path.exists(f"{HOME}/setup"):
        run_or_refuse("setup", seconds, beside_nodes=True)


def run_workload(
    seconds: float, stores: bool = False, delay: float = 0.0, neighbour: Neighbour | None = None, stacks: bool = False
) -> tuple[bytes, bytes, int]:
    """Run the program's workload under strace. Return its standard output, strace's output, and the inode of the pipe
    that was its standard output. Raises Denial with the workload's last message if it fails.

    If ``stores`` is true, strace's output also has lines for the program's stores to memory that is mapped from files
    (:mod:`bob.agent.inside.stores`). If ``delay`` is not 0, the program waits for ``delay`` seconds after each change,
    and meanwhile bob syncs the file ``neighbour`` (:mod:`bob.agent.inside.pacing`).

    If ``stacks`` is true, strace's output has the stack frames of each call. The frames take most of strace's time, so
    the workload may fail or take too long. In that case, this function raises no error, and returns the calls until
    then."""
    with suppress(FileNotFoundError):
        os.unlink(CALLS)
    into = CALLS
    # With frames, reads and closes are not traced: their frames would take longest of all.
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
            pacing.finish()
        if watching is not None:
            watching.finish()
    if ended.code != 0 and not stacks:
        raise Denial(f"workload {how_it_ended(ended, seconds)}")
    with open(CALLS, "rb") as calls:
        text = calls.read()
    os.unlink(CALLS)  # the file takes memory of the guest
    return ended.output, text, pipe_inode


def _run_traced(seconds: float, calls: str, traced: str, stacks: bool) -> tuple[ScriptExit, int]:
    # -D makes the workload our child, so we learn when it ends, and do not wait for all that it started.
    tracer = ["strace", "-D", "-f", "-q", "-y", "--seccomp-bpf", "-ttt", "-xx", "-s", str(LONGEST), "-o", calls]
    tracer += ["-k"] if stacks else []
    tracer += ["-e", f"trace={traced}", "-e", f"raw={READS}"]
    started = Script(tracer, [f"{HOME}/workload", ROOT], ROOT, beside_nodes=True)
    return started.wait(seconds + _patience(1)), started.pipe_inode


def _patience(starts: int) -> float:
    """Return the seconds that ``starts`` starts of the cluster may take (0 if the program is not a cluster)."""
    return 0.0 if nodes is None else starts * (nodes.seconds + STARTING)


def run_check(told: bytes, seconds: float) -> ScriptExit:
    with open(TOLD, "wb") as file:
        file.write(told)
    if nodes is not None and nodes.alone >= 0:
        words = [f"{HOME}/signature", ROOT, str(nodes.alone)]
        return Script([], words, "/", beside_nodes=True).wait(seconds + STARTING)
    if nodes is not None:
        words = [f"{HOME}/check", ROOT, TOLD]
        again = REAL_AGAIN_SECONDS if processes.is_on_host else AGAIN_SECONDS
        patience = seconds_of_check(seconds, nodes.seconds)
        return Script([], words, "/", beside_nodes=True, starts=STARTS, again=again).wait(patience)
    global warm
    if warm is None:
        warm = WarmPython(f"{HOME}/check", lambda words: _placed(words, "/"), _environment(), seconds)
    return Script([], [f"{HOME}/check", ROOT, TOLD], "/", warm).wait(seconds)


def run_or_refuse(name: str, seconds: float, *, beside_nodes: bool = False) -> None:
    """Run the script ``name``. If ``beside_nodes`` is true, and the program is a cluster, its nodes run meanwhile.
    Raises Denial if the script fails."""
    script = Script([], [f"{HOME}/{name}", ROOT], ROOT, beside_nodes=beside_nodes)
    ended = script.wait(seconds + (_patience(1) if beside_nodes else 0.0))
    if ended.code != 0:
        raise Denial(f"{name} {how_it_ended(ended, seconds)}")


def own_machine() -> None:
    """Note that this process is in a guest or a sandbox of bob's. Without this note, :func:`clear_scratch` leaves the
    machine's temporary files alone, because they may be a user's."""
    global owns_machine
    owns_machine = True


def clear_scratch() -> None:
    """Empty the folders for temporary files, so that a checker sees nothing from another crash state or from the
    workload. On a machine that is not bob's, only a world has such folders."""
    if not (uses_world or owns_machine):
        return
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


def _placed(words: list[str], folder: str) -> list[str]:
    placed = within(words, folder) if uses_world else words
    return [*WITHOUT_RIGHTS, *placed] if processes.is_on_host else placed


def _environment() -> dict[str, str]:
    return {**plain_environment(), "HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def how_it_ended(ended: ScriptExit, seconds: float) -> str:
    """Return in words how a script ended, with the last line of its output, and whether the file system under test is
    full. ``ended`` is the end of the script, and ``seconds`` its time limit."""
    said = ended.words.strip().splitlines()
    words = f": {said[-1][:300]}" if said else ""
    with suppress(OSError):
        room = os.statvfs(ROOT)
        if room.f_bavail * 50 < room.f_blocks:
            words += "; the file system is full: device_mib in app.toml sets its size"
    if ended.code is None:
        return f"did not end within {seconds:g} s{words}"
    return f"failed ({ended.code}){words}"


class Script:
    """A running script of a program: the command ``words`` in the working directory ``folder``. If the command
    ``tracer`` (such as strace) is not empty, it runs the script. If ``forks`` is a Python process that has already run
    the script's imports, the script runs in a fork of that process. With ``beside_nodes``, the nodes of a cluster start
    before the script, and they may start ``starts`` times. If the script fails, it runs once more after ``again``
    seconds (:mod:`bob.agent.inside.nodes`)."""

    def __init__(
        self,
        tracer: list[str],
        words: list[str],
        folder: str,
        forks: WarmPython | None = None,
        *,
        beside_nodes: bool = False,
        starts: int = 1,
        again: int = 0,
    ) -> None:
        clear_scratch()
        libc.prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0)
        self._alone = {forks.pid} if forks is not None and forks.pid is not None else set[int]()
        self._others = set(processes.descendants()) if processes.has_children(self._alone) else self._alone
        read_end, write_end = os.pipe()
        self.pipe_inode = os.fstat(write_end).st_ino
        self._name = os.path.basename(words[0])
        self._bounds = processes.ScriptBounds(self._others, CALLS if tracer else "")
        command = _placed(words, folder)
        if beside_nodes and nodes is not None and nodes.alone >= 0:
            command = with_node_alone(nodes, command, lambda words: _placed(words, "/"))
        elif beside_nodes and nodes is not None:
            command = with_nodes(nodes, command, lambda words: _placed(words, "/"), starts, again)
        is_told = bool(tracer)  # other scripts print for people, so both outputs go into one pipe, in order
        self._process: subprocess.Popen[bytes] | ForkedChecker
        try:
            if forks is not None and forks.pid is not None:
                self._process = forks.fork(words[1:], write_end)
            else:
                self._process = subprocess.Popen(
                    [*tracer, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=write_end,
                    stderr=subprocess.PIPE if is_told else subprocess.STDOUT,
                    cwd=folder,
                    env=_environment(),
                    start_new_session=True,
                )
        except OSError as error:
            os.close(read_end)
            raise Denial(f"cannot start {self._name}: {error.strerror}") from None
        finally:
            os.close(write_end)
        processes.do_not_spare(self._process.pid)
        limit = processes.MOST_WRITTEN if is_told else 0  # other scripts' output is not kept whole
        self._output = self._said = processes.Drain(read_end, 0 if is_told else MOST_OUTPUT, limit)
        if self._process.stderr is not None:
            self._said = processes.Drain(os.dup(self._process.stderr.fileno()), MOST_OUTPUT, limit)
            self._process.stderr.close()
        self._outputs = (self._output, self._said) if self._said is not self._output else (self._output,)

    def wait(self, seconds: float) -> ScriptExit:
        """Wait until the script ends, and kill the processes that it leaves running. Raises Denial if the script
        exceeds a limit. If a process waits for a disk when the time is up, the script gets the same time again. The
        reason is that virtual time may run faster than the disk of a busy host."""
        code: int | None = None
        for _more in range(MOST_PATIENCE):
            if processes.ends_within(self._process.pid, seconds, self._takes_too_much, self._outputs):
                code = self._process.wait()
                break
            if self._takes_too_much() or not self._is_at_the_disk():
                break
        too_much = ""
        if code is None or processes.has_children(self._alone):
            too_much = self._takes_too_much()
            with processes.first_of_all() if too_much else nullcontext():
                self._kill_all()
        ended = ScriptExit(code, self._output.all(), self._said.all())
        if too_much := too_much or self._bounds.outgrown(self._outputs):
            raise Denial(f"{self._name} {too_much}")
        if ended.code != 0 and (memory := self._bounds.memory()):
            clear_scratch()  # files there take memory
            raise Denial(f"{self._name} {how_it_ended(ended, seconds)}; {memory}")
        return ended

    def _takes_too_much(self) -> str:
        return self._bounds.broken(self._outputs)

    def _is_at_the_disk(self) -> bool:
        if processes.is_on_host:
            return False  # its clock is real, and a parent in vfork(2) has the same state
        for _look in range(LOOKS):
            waits = any(processes.state_of(pid) == "D" for pid in processes.descendants(self._others))
            if waits or processes.ends_within(self._process.pid, processes.WAKING / 1000, outputs=self._outputs):
                return True
        return False

    def _kill_all(self) -> None:
        deadline = time.monotonic() + GONE_SECONDS
        while processes.has_children(self._alone) and (left := processes.descendants(self._others)):
            for pid in left:
                with suppress(OSError):
                    # strace ends by itself, with all in its file, if nothing holds it (:mod:`bob.agent.inside.pacing`)
                    os.kill(pid, signal.SIGCONT if processes.name_of(pid) == "strace" else signal.SIGKILL)
            for pid in left:
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            if time.monotonic() > deadline:
                raise RuntimeError(f"cannot kill {len(left)} processes of the program")
            time.sleep(0.001)
        self._process.returncode = self._process.returncode if self._process.returncode is not None else -9
