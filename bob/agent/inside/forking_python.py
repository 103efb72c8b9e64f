"""Import the modules of a program's checker (a Python script) once, and fork a process for each tree that the checker
shall check. In an emulated guest a fork takes milliseconds, and a start of Python takes 0.25 s. In each forked process
the checker runs from its first line, as ``__main__``. Each forked process is a child of the agent
(:mod:`bob.agent.inside.warm_python`)."""

from __future__ import annotations

import ast
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import socket
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from io import IOBase, TextIOWrapper

READY = b"ready"
LONGEST = 64 * 1024  # bytes of a message


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
    libraries = Libraries()
    gc.collect()
    gc.freeze()
    end.send(READY)
    while True:
        message, files, _flags, _address = socket.recv_fds(end, LONGEST, 1)
        if not message:
            return
        read_end, write_end = os.pipe()
        between = os.fork()
        if not between:
            # Fork twice: when its parent has ended, the checker becomes a child of the agent, which can wait for it.
            between = os.getpid()
            if pid := os.fork():
                os.write(write_end, str(pid).encode())
                os._exit(0)
            while os.getppid() == between:
                os.sched_yield()
            os.setsid()
            os.dup2(files[0], 1)
            os.dup2(files[0], 2)
            for fd in (read_end, write_end, files[0]):
                os.close(fd)
            end.close()
            libraries.spare_at_the_end()
            _run(code, [script, *json.loads(message)], libraries)
            return
        os.close(write_end)  # so that the read below returns nothing if the second fork failed
        os.waitpid(between, 0)
        end.send(os.read(read_end, LONGEST))
        for fd in (read_end, files[0]):
            os.close(fd)


class Libraries:
    """The modules that were imported before the fork. At exit, Python would free them, which takes longer than the
    checker's work. So this class prevents that. ``status`` is the checker's exit code. Until Python itself can no
    longer change the exit code, it is None."""

    def __init__(self) -> None:
        self.status: int | None = None
        self._exit = ctypes.CDLL(None).exit
        self._exit.restype = None
        self._known = [(name, module, len(vars(module))) for name, module in sys.modules.items()]
        circle: list[object] = [self._known]
        circle.append(circle)  # only the garbage collector would free this cycle, and it skips frozen objects

    def spare_at_the_end(self) -> None:
        """Take the modules out of ``sys.modules`` when Python ends, so that Python does not free them. This must happen
        after the last garbage collection (finalizers may import modules), and before Python tears the modules down.
        Between these two, Python deletes ``sys.__interactivehook__`` (``finalize_modules``, Python/pylifecycle.c). So
        this method puts an object there that does the work when Python deletes it."""
        sys.__interactivehook__ = _AtTheEnd(self._spare)  # type: ignore[assignment]

    def _spare(self) -> None:
        if "__main__" in sys.modules:
            sys.modules["__main__"] = None  # type: ignore[assignment]  # Python would tear it down first
        for name, module, size in self._known:
            # A module that got a new name since the fork stays in ``sys.modules``, so that Python frees the new object.
            if sys.modules.get(name) is module and len(vars(module)) == size:
                del sys.modules[name]
        for one in gc.get_objects():  # those made since the fork: a library may hold a file that the checker opened
            if issubclass(type(one), IOBase):
                with suppress(Exception):
                    one.flush()
        if self.status is not None and all(map(_is_flushed, (sys.stdout, sys.stderr))):
            # Python clears sys after all other modules, in this order. After that, it would only free its own memory.
            vars(sys)["the end"] = _AtTheEnd(partial(self._exit, self.status))


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


def _run(code: types.CodeType, words: list[str], libraries: Libraries) -> None:
    sys.argv = words
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=words[0], __builtins__=__builtins__)
    sys.modules["__main__"] = main
    try:
        exec(code, main.__dict__)
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
