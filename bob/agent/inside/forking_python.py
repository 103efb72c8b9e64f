"""Import the modules of a program's checker (a Python script) once, and fork a process for each tree that the checker
shall check. In an emulated guest a fork takes milliseconds, and a start of Python takes 0.25 s. In each forked process
the checker runs from its first line, as ``__main__``. Each forked process is a child of the agent
(:mod:`bob.agent.inside.warm_python`).

The kernel copies each page of memory that a forked process writes to. On the host these copies take about half of a
short check, so the code here writes to few objects after the fork."""

from __future__ import annotations

import ast
import ctypes
import errno
import gc
import importlib
import importlib.util
import json
import os
import signal
import socket
import sys
import types
import weakref
from _io import _IOBase
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from io import TextIOWrapper

READY = b"ready"
PR_GET_TID_ADDRESS, SYS_CLONE = 40, 56
CLONE_PARENT, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID = 0x8000, 0x0020_0000, 0x0100_0000
LONGEST = 64 * 1024  # bytes of a message
_SET_AT_THE_END = (
    "ps1",
    "ps2",
    "last_type",
    "last_value",
    "last_traceback",
    *(("last_exc",) * (sys.hexversion >= 0x30C0000)),
)


def serve(script: str, end: socket.socket) -> None:
    """Fork a checker for each message on ``end``, the socket to the agent. Return when the agent has closed the socket.
    Return before the first fork if the imports started a thread, which a fork would lack, or if Python is older than
    3.9. This function also returns in each forked process, after the checker has ended there.

    Before the first fork, this process runs the imports at the head of ``script``. The head ends at the first line that
    is not an import, or that imports a module of the program itself. Such a line may change what later imports do, so
    the rest of the script runs only in the forks."""
    folder = sys.path[0] = os.path.dirname(script)
    with open(script, "rb") as file:
        text = file.read()
    code = compile(text, script, "exec", dont_inherit=True)
    for name in _imports(ast.parse(text)):
        with suppress(Exception):
            if _is_in(folder, name.partition(".")[0]):
                break
            importlib.import_module(name)
    if len(os.listdir("/proc/self/task")) > 1 or not hasattr(socket, "recv_fds"):
        return  # a fork would lack the library's thread; Python 3.8 cannot take a file from another process
    try:
        fork = Fork()
    except OSError:
        return  # a kernel that was built without CONFIG_CHECKPOINT_RESTORE
    gc.collect()
    libraries = Libraries(end)
    gc.freeze()
    end.send(READY)
    while True:
        message, files, _flags, _address = socket.recv_fds(end, LONGEST, 1)
        if not message:
            return
        # As much as possible happens before the fork: each page that a fork writes to is copied.
        [output] = files
        sys.argv = [script, *json.loads(message)]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        main.__dict__.update(__file__=script, __builtins__=__builtins__)
        pid = fork()
        if not pid:
            os.setsid()
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
            os.close(end.fileno())
            _run(code, main.__dict__, libraries)
            return
        os.close(output)
        end.send(str(pid).encode())


class Fork:
    """A function that forks this process. The new process is a child of this process's parent, the agent, so the agent
    can wait for it. Raises OSError if the kernel cannot do that, or if a fork fails.

    glibc's fork() passes the same flags to the kernel, except CLONE_PARENT (sysdeps/unix/sysv/linux/arch-fork.h). With
    them, the kernel writes the number of the new process where glibc keeps it."""

    def __init__(self) -> None:
        if os.uname().machine != "x86_64":
            raise OSError(errno.ENOSYS, "the order of the arguments of clone(2) is that of x86-64")
        # These functions of ctypes keep Python's lock, as os.fork does.
        self._before, self._after, self._after_in_parent, self._call = (
            getattr(ctypes.pythonapi, name)
            for name in ("PyOS_BeforeFork", "PyOS_AfterFork_Child", "PyOS_AfterFork_Parent", "syscall")
        )
        place = ctypes.c_void_p()
        self._before.restype = self._after.restype = self._after_in_parent.restype = None
        if ctypes.CDLL(None).prctl(PR_GET_TID_ADDRESS, ctypes.byref(place), 0, 0, 0) or not place.value:
            raise OSError(errno.ENOSYS, "prctl")
        flags = CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | signal.SIGCHLD
        self._arguments = [ctypes.c_long(one) for one in (SYS_CLONE, flags, 0, 0, place.value, 0)]

    def __call__(self) -> int:
        """Return the number of the new process; 0 in that process."""
        self._before()
        pid: int = self._call(*self._arguments)
        (self._after_in_parent if pid else self._after)()
        if pid < 0:
            raise OSError(errno.EAGAIN, "clone")
        return pid


class Libraries:
    """The modules that were imported before the fork. At exit, Python would free them, which takes longer than the
    checker's work. So this class prevents that. ``spared`` are other objects that Python shall not free. ``status`` is
    the checker's exit code. Until Python itself can no longer change the exit code, it is None."""

    def __init__(self, *spared: object) -> None:
        self.status: int | None = None
        self._exit = ctypes.CDLL(None).exit
        self._exit.restype = None
        # This must happen after the last garbage collection (finalizers may import modules), and before Python tears
        # the modules down. Between these two, Python deletes ``sys.__interactivehook__`` (``finalize_modules``,
        # Python/pylifecycle.c). So an object there does the work when Python deletes it.
        sys.__interactivehook__ = _AtTheEnd(self._end)  # type: ignore[assignment]
        known = {name: module for name, module in sys.modules.items() if name != "__main__"}
        self._known = list(known.items())
        self._sizes = list(map(_size_of, known.values()))
        circle: list[object] = [self._known, self._sizes, self._exit, spared]
        circle.append(circle)  # only the garbage collector would free this cycle, and it skips frozen objects

    def _end(self) -> None:
        """End this process, if nothing is left to do but to free memory. Otherwise let Python do what is left."""
        if "__main__" in sys.modules:
            sys.modules["__main__"] = None  # type: ignore[assignment]  # Python would tear it down first
        is_simple = not _flush_all() and len(sys.modules) == len(self._known) + 1
        is_simple = is_simple and all(size.is_as_before() for size in self._sizes)
        if not is_simple:
            self._spare()
        if self.status is None or not _are_flushed():
            return
        if is_simple:
            gc.collect()  # as Python would do next; the rest would only free its own memory
            if _are_flushed():
                self._exit(self.status)
        # Python clears sys after all other modules, in this order. After that, it would only free its own memory.
        vars(sys)["the end"] = _AtTheEnd(partial(self._exit, self.status))

    def _spare(self) -> None:
        """Take the modules out of ``sys.modules``, so that Python does not free them. A module that got a new name
        since the fork stays there, so that Python frees the new object."""
        for (name, module), size in zip(self._known, self._sizes):
            if size.is_as_before() and sys.modules.get(name) is module:
                del sys.modules[name]


def _flush_all() -> bool:
    """Flush the files that this process has opened since the fork: a library may hold one of them. Return whether an
    object made since then has a finalizer, which may look at what is left of Python."""
    has_finalizer = False
    for one in gc.get_objects():
        kind = type(one)
        if issubclass(kind, _IOBase):
            with suppress(Exception):
                one.flush()
        is_watched = issubclass(kind, weakref.ref) and one.__callback__ is not None
        has_finalizer |= is_watched or (kind is not _AtTheEnd and hasattr(kind, "__del__"))
    return has_finalizer


def _are_flushed() -> bool:
    return all(map(_is_flushed, (sys.stdout, sys.stderr)))


class _Size:
    """The number of names in a dictionary. ``is_as_before`` says whether the dictionary has ``more`` names than at
    first. It reads the memory of the dictionary (``ma_used`` of PyDictObject), because Python writes a new count of
    references to each object that it looks at."""

    __slots__ = ("_expected", "_now")

    def __init__(self, names: dict[str, object], more: int = 0) -> None:
        self._now, self._expected = ctypes.c_ssize_t.from_address(id(names) + 16), len(names) + more

    def is_as_before(self) -> bool:
        return self._now.value == self._expected


def _size_of(module: types.ModuleType) -> _Size:
    """Return the size of the names of ``module``, for a comparison when Python ends. By then Python has set some names
    of its own modules to None, also those that were missing (``finalize_modules_delete_special``)."""
    names = vars(module)
    own = {"sys": _SET_AT_THE_END, "builtins": ("_",)}.get(module.__name__, ())
    return _Size(names, sum(name not in names for name in own))


def _is_flushed(file: object) -> bool:
    """Return whether ``file``, one of Python's own outputs, has been written completely. If not, Python may still fail
    to write it, and then chooses another exit code."""
    if type(file) is not TextIOWrapper or file.closed or file.fileno() > 2:
        return False
    with suppress(Exception):
        file.flush()
        return True
    return False


class _AtTheEnd:
    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def __del__(self) -> None:
        self._function()


def _imports(tree: ast.Module) -> list[str]:
    found: list[str] = []
    for number, node in enumerate(tree.body):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
        elif number or not isinstance(node, ast.Expr):  # the first node may be the docstring of the script
            break
    return found


def _is_in(folder: str, name: str) -> bool:
    """Return whether the module ``name`` may belong to the program under test: it lies in the program's ``folder``, or
    Python cannot say where it lies. Such a module may look at its surroundings when it is imported, so bob does not
    import it early."""
    spec = importlib.util.find_spec(name)
    return spec is None or str(spec.origin).startswith(f"{folder}/") or spec.origin is None


def _run(code: types.CodeType, names: dict[str, object], libraries: Libraries) -> None:
    try:
        exec(code, names)
    except SystemExit as error:
        said = 0 if error.code is None else error.code
        libraries.status = said if type(said) is int and said >> 31 == 0 else None
        raise
    except BaseException as error:
        _show_without_us(code)
        libraries.status = None if isinstance(error, KeyboardInterrupt) else 1
        raise
    libraries.status = 0


def _show_without_us(code: types.CodeType) -> None:
    """Print the raised error without the stack frames that called ``code``."""
    hook = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        sys.excepthook = hook
        while trace is not None and trace.tb_frame.f_code is not code:
            trace = trace.tb_next
        sys.last_traceback = trace
        hook(kind, error.with_traceback(trace), trace)

    sys.excepthook = show


if __name__ == "__main__":
    serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
