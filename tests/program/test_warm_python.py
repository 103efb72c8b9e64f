"""A checker in Python must not see that it is forked: neither how it is run, nor how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from bob.agent.inside import programs
from bob.agent.inside.frames import Denial
from bob.agent.inside.warm_python import WarmPython

LIKE_ANY_OTHER = {
    "well": "pass",
    "told": """
import sys
print(sys.argv[1:], open(sys.argv[2]).read(), __name__, __file__ == sys.argv[0])
""",
    "both": """
import os, sys
print('a', flush=True)
print('b', file=sys.stderr)
os.write(1, b'c')
""",
    "code": """
import sys
print('bad')
sys.exit(11)
""",
    "words": """
import sys
sys.exit('bad')
""",
    "error": """
def f():
    raise KeyError('b')
f()
""",
    "at once": """
import os
print('lost')
os._exit(3)
""",
    "signal": """
import os
os.kill(os.getpid(), 9)
""",
    "at exit": """
import atexit, sys
atexit.register(print, 'bye')
sys.exit(4)
""",
    "own module": """
import beside
print(beside.seen)
""",
    "path first": """
import sys
sys.path.insert(0, sys.path[0] + '/lib')
import colorsys
print(colorsys.mine)
""",
    "missing": "import no_such_module",
    "thread": """
import threading
t = threading.Thread(target=print, args=['in it'])
t.start()
""",
    "left behind": """
import subprocess
subprocess.Popen(['sleep', '60'])
print('on')
""",
    "too long": """
import time
print('on', flush=True)
time.sleep(60)
""",
    "afresh": """
import json
print(hasattr(json, 'mark'))
json.mark = 1
""",
    "input": """
import sys
print(repr(sys.stdin.read()), sys.stdin.isatty())
""",
    "files": """
import os
print(sorted(os.listdir('/proc/self/fd')), os.getcwd(), os.getsid(0) == os.getpid())
""",
    "docs": """
'Words.'
import sys
print(__doc__)
""",
    "not flushed": """
import os
file = os.fdopen(os.dup(1), 'w')
file.write('there')
""",
    "not flushed, in a module": """
import os, beside
beside.file = os.fdopen(os.dup(1), 'w')
beside.file.write('there')
""",
    "not flushed, in a library": """
import json, os
json.file = os.fdopen(os.dup(1), 'w')
json.file.write('there')
""",
    "not flushed, by C": """
import ctypes
ctypes.CDLL(None).printf(b'there')
""",
    "another output": """
import io, sys
sys.stdout = io.TextIOWrapper(sys.stdout.detach(), 'utf-16')
print('there')
""",
    "no output": """
import os
print('lost')
os.close(1)
""",
    "no buffered output": """
import os, sys
sys.stdout = open(1, 'w', closefd=False)
print('lost')
os.close(1)
""",
    "another output of its own": """
import io, sys
class Out(io.TextIOWrapper):
    def flush(self):
        super().flush()
        raise OSError(5, 'no')
sys.stdout = Out(sys.stdout.buffer)
print('there')
""",
    "last words": """
class Last:
    def __del__(self):
        print('bye')
last = Last()
print('on')
""",
    "in a circle": """
class Last:
    def __del__(self):
        print('bye')
last = Last()
last.last = last
""",
    "import, at last": """
import json
class Last:
    def __del__(self):
        try:
            import json
            print(json.dumps(1))
        except ImportError as error:
            print(error)
last = Last()
""",
    "import, at exit": """
import atexit, json
@atexit.register
def bye():
    import json, wave
    print(json.dumps(wave.__name__))
""",
    "error, at exit": """
import atexit
atexit.register(exec, '1 / 0')
""",
    "log, at exit": """
import logging.handlers, sys
to = logging.StreamHandler(sys.stdout)
logging.getLogger().addHandler(logging.handlers.MemoryHandler(9, target=to))
logging.warning('kept')
""",
    "finalizer": """
import weakref
class Last: pass
last = Last()
weakref.finalize(last, print, 'bye')
""",
    "pool": """
from concurrent.futures import ThreadPoolExecutor
ThreadPoolExecutor(1).submit(print, 'done')
""",
    "daemon": """
import threading, time
threading.Thread(target=time.sleep, args=[60], daemon=True).start()
print('on')
""",
    "no code": """
import sys
sys.exit(None)
""",
    "large code": """
import sys
sys.exit(268)
""",
    "negative code": """
import sys
sys.exit(-1)
""",
    "huge code": """
import sys
sys.exit(2 ** 40)
""",
    "code of its own": """
class Refused(SystemExit):
    code = 7
raise Refused
""",
    "closed output": """
import sys
sys.stdout.close()
sys.exit(5)
""",
    "output gone at the end": """
import os, sys
class Last:
    def __del__(self):
        os.close(1)
last = Last()
print('lost?')
sys.exit(6)
""",
    "two codes": """
import sys
sys.exit((1, 2))
""",
    "import, collected": """
import ctypes
class Last:
    def __init__(self):
        self.me = self
    def __del__(self):
        import ctypes.util, sys
        ctypes.CDLL(None)
        sys.stdout.write('bye')
def main():
    last = Last()
main()
""",
    "server in a circle": """
import subprocess, sys
class Server:
    def __init__(self):
        self.stop = self.end
    def end(self):
        subprocess.run(['echo', 'stopping'])
    def __del__(self):
        self.end()
def main():
    server = Server()
    print('row 3 is gone', flush=True)
    sys.exit(10)
main()
""",
    "not raised": """
import sys
def hook(what):
    import traceback
    print(traceback.format_exception_only(type(what.exc_value), what.exc_value))
sys.unraisablehook = hook
class Last:
    def __init__(self):
        self.me = self
    def __del__(self):
        raise ValueError('x')
def main():
    Last()
main()
""",
    "import, of its own": """
import json
from beside import Last
last = Last()
""",
    "exit functions, now": """
import atexit, sys
atexit._run_exitfuncs()
import sys as again
print(sys is again)
""",
    "another flush": """
import sys
class Out:
    def __init__(self, to):
        self.to, self.write = to, to.write
    def flush(self):
        import os, sys
        self.to.flush()
sys.stdout = Out(sys.stdout)
print('there')
""",
    "unfinished": """
import asyncio
def main():
    async def one():
        try:
            yield 1
        finally:
            print('bye')
    async def all():
        async for n in one(): break
    asyncio.new_event_loop().run_until_complete(all())
main()
""",
    "in place of another": """
import json, os
json.scanner = os.fdopen(os.dup(1), 'w')
json.scanner.write('there')
""",
    "known to a library": """
import os
from typing import Optional
class Row:
    def get(self): pass
file = os.fdopen(os.dup(1), 'w')
def f(row: Optional[Row]): pass
file.write('there')
""",
    "own module before": """
import earlier
import colorsys
print(hasattr(colorsys, 'mine'))
""",
    "interrupted": """
import signal, os
os.kill(os.getpid(), signal.SIGINT)
import time
time.sleep(9)
""",
    "last traceback": """
import atexit, traceback, sys
@atexit.register
def show():
    try:
        traceback.print_last(file=sys.stdout)
    except Exception as error:
        print(repr(error))
1 / 0
""",
    "own hook": """
import sys
sys.excepthook = lambda kind, error, trace: print(kind, trace.tb_frame.f_lineno)
1 / 0
""",
    "parent": """
import os
print(open(f'/proc/{os.getppid()}/comm').read())
assert os.getppid() == int(open(os.path.dirname(__file__) + '/agent').read())
""",
    "warned": "there = 1\nassert (there, 'always true')",
    "spoken": "import spoken",
    "database": """
import sqlite3
db = sqlite3.connect(':memory:')
print(db.execute('SELECT 1').fetchone())
""",
    "a name in sys": """
import sys
class Last:
    def __del__(self):
        print('bye')
sys.mine = Last()
""",
    "a name in builtins": """
import builtins
class Last:
    __slots__ = ()
    def __del__(self):
        print('bye')
builtins.mine = Last()
""",
    "a name in a library": """
import json
class Last:
    __slots__ = ()
    def __del__(self):
        print('bye')
json.mine = Last()
""",
    "a library of its own": """
import sys, types
class Last:
    __slots__ = ()
    def __del__(self):
        print('bye')
sys.modules['mine'] = types.ModuleType('mine')
sys.modules['mine'].last = Last()
""",
    "number": """
import os, threading
print(threading.get_native_id() == os.getpid() == int(os.readlink('/proc/self')))
""",
    "aborted": """
import os
os.abort()
""",
    "forked again": """
import os
if child := os.fork():
    print(os.waitpid(child, 0)[1], os.getpid() != child)
else:
    print(os.getppid() == os.getsid(0), flush=True)
    os._exit(3)
""",
    "syntax": "print(",
}
"""Checkers in Python that may see how they are run, or how they end."""


NOT_FORKED = {"syntax", "warned", "spoken"}
"""Those that say something already when they are compiled, or import."""
BESIDE = {
    "home/beside.py": """
import sys
seen = len(sys.argv)
class Last:
    def __del__(self):
        import json
        print(json.dumps('bye'))
""",
    "home/earlier.py": "import sys\nsys.path.insert(0, sys.path[0] + '/lib')\n",
    "home/lib/colorsys.py": "mine = True\n",
    "libraries/spoken.py": "import sys\nprint('deprecated', file=sys.stderr)\n",
    "libraries/failing.py": """
import resource, os
os.setresuid(65534, 65534, 65534)
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
""",
    "libraries/threaded.py": """
import threading, time
threading.Thread(target=time.sleep, args=[9], daemon=True).start()
""",
}
"""Modules of the program's own, and libraries."""
THRICE = """import os, sys
from bob.agent.inside import processes, programs
from bob.agent.inside.warm_python import WarmPython
home, libraries, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
told = home + "/told"
programs.SCRATCH = ()
open(told, "w").write("1")
words = [home + "/check", home, told]
open(home + "/agent", "w").write(str(os.getpid()))
plain = programs._environment
programs._environment = lambda: {**plain(), "PYTHONPATH": libraries}
forks = WarmPython(words[0], list, programs._environment(), 30.0)
print(forks.pid is not None)
ended = [programs.Script([], words, "/", by).wait(seconds) for by in (forks, forks, None)]
print(processes.descendants() == ([] if forks.pid is None else [forks.pid]))
forks.end()
print(processes.has_children())
for one in ended:
    print(one)
"""
"""In a process of its own, which becomes a subreaper: a checker is run twice by a Python that forks, and once anew."""


def put(checker: str, folder: Path) -> str:
    """Put a checker, and what is beside it, into ``folder``; where the checker is."""
    for path, text in BESIDE.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    script = folder / "home" / "check"
    script.write_text(f"#!/usr/bin/env python3\n{checker}\n")
    script.chmod(0o755)
    return str(script)


def warm(checker: str, folder: Path) -> WarmPython:
    """A Python that forks for the checker, if it does."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder / "libraries")}
    return WarmPython(put(checker, folder), list, environment, 30.0)


@pytest.mark.parametrize("name", LIKE_ANY_OTHER)
def test_a_checker_in_python_does_not_see_that_it_is_forked(name: str, tmp_path: Path) -> None:
    home = Path(put(LIKE_ANY_OTHER[name], tmp_path)).parent
    seconds = "1" if name == "too long" else "30"
    words = [sys.executable, "-c", THRICE, str(home), str(tmp_path / "libraries"), seconds]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=100)
    is_forked, alone, children, first, second, anew = done.stdout.splitlines()
    assert (is_forked, alone, children) == (str(name not in NOT_FORKED), "True", "False")
    assert first == second == anew


def test_a_fork_ends_without_freeing_all_of_python(tmp_path: Path) -> None:
    """That takes half of the time of a short checker. A new Python would call this function of C's after it."""
    home = put("import ctypes\nctypes.pythonapi.Py_AtExit(ctypes.CDLL(None).abort)\nprint('on')", tmp_path)
    words = [sys.executable, "-c", THRICE, str(Path(home).parent), str(tmp_path / "libraries"), "30"]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=100)
    *_others, first, second, anew = done.stdout.splitlines()
    assert first == second and "code=0, output=b'on" in first and "code=-6, output=b'on" in anew


@pytest.mark.parametrize(
    "line",
    ["#!/bin/sh", "#!/usr/bin/env python3\r", "#!/usr/bin/env -S python3 -I", "#!/usr/bin/python3 -I", "#!/x/perl"],
)
def test_a_checker_that_is_not_plain_python_is_started_each_time(line: str, tmp_path: Path) -> None:
    script = tmp_path / "check"
    script.write_text(f"{line}\n")
    assert WarmPython(str(script), list, {}, 1.0).pid is None


def test_a_checker_whose_python_is_not_there_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "check").write_text("#!/x/python3\n")
    (tmp_path / "check").chmod(0o755)
    mine = Path("/proc/self/fd")
    before = {path.name for path in mine.iterdir()}
    forks = WarmPython(str(tmp_path / "check"), list, {}, 1.0)
    assert forks.pid is None and {path.name for path in mine.iterdir()} == before
    assert not programs.owns_machine
    with pytest.raises(Denial) as refused:
        programs.Script([], [str(tmp_path / "check")], "/", forks).wait(1.0)
    assert str(refused.value) == snapshot("cannot start check: No such file or directory")


def test_a_fork_that_fails_ends_in_words(tmp_path: Path) -> None:
    """What waits for the number of a process must not wait for one that there will never be."""
    forks = warm("import failing", tmp_path)
    assert forks.pid is not None
    with (tmp_path / "output").open("wb") as output, pytest.raises(RuntimeError) as refused:
        forks.fork([], output.fileno())
    assert str(refused.value) == snapshot("the Python that forks for the checker has ended")
    forks.end()


def test_what_forks_can_be_ended_twice(tmp_path: Path) -> None:
    """Its files are not closed twice: by then their numbers may be another's."""
    mine = Path("/proc/self/fd")
    before = {path.name for path in mine.iterdir()}
    forks = warm("", tmp_path)
    forks.end()
    assert {path.name for path in mine.iterdir()} == before
    (tmp_path / "other").write_text("there")
    with (tmp_path / "other").open() as one, (tmp_path / "other").open() as other:
        forks.end()
        assert one.read() == other.read() == "there"


def test_a_library_with_a_thread_is_imported_each_time(tmp_path: Path) -> None:
    assert warm("import threaded", tmp_path).pid is None


def test_that_what_forks_is_gone_is_no_fault_of_the_checker(tmp_path: Path) -> None:
    forks = warm("", tmp_path)
    assert forks.pid is not None
    os.kill(forks.pid, 9)
    os.waitid(os.P_PID, forks.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(RuntimeError) as refused:
        forks.fork([], 1)
    assert str(refused.value) == snapshot("the Python that forks for the checker has ended")
    forks.end()
