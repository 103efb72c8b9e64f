"""However bob ends, it says so in a line or two, and never with a traceback; what it freed it gave back."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from itertools import cycle
from pathlib import Path
from typing import NoReturn

import pytest
from inline_snapshot import snapshot

from bob.cli.ending import exit_code
from bob.errors import BobError, Exit, PointedError, RecordingError
from wording import line_with, text_with

from .stand_in import Bob, Work

BOB = [sys.executable, "-m", "bob.cli.main"]
CHECKOUT = Path(__file__).parents[2]


def raising(error: BaseException) -> int:
    """The exit code of a command that raises ``error``."""

    def command() -> NoReturn:
        raise error

    return exit_code(command)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (RecordingError("refused", hint="look"), 7, "bob: refused\nhint: look\n"),
        (BobError("two\nlines", exit_code=Exit.GUEST), 6, "bob: two lines\n"),
        (
            PointedError("no word", "some\nvery wrong\tword\nhere", 10, 15, hint="look"),
            2,
            "bob: no word\n  very wrong word\n       ^^^^^\nhint: look\n",
        ),
        (PointedError("no word", "some", 4, 4), 2, "bob: no word\n  some\n      ^\n"),
        (PointedError("no word", "", 0, 0), 2, "bob: no word\n"),
        (KeyboardInterrupt(), 130, "bob: interrupted\n"),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_errors(error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(error) == code
    assert capsys.readouterr() == ("", said)


def test_a_full_disk(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(OSError(errno.ENOSPC, "No space left on device", "/x/log")) == Exit.STORE
    assert text_with(capsys.readouterr().err, "/x/log") == snapshot("""\
bob: No space left on device (/x/log)
hint: free some space, or choose another folder with --out or XDG_CACHE_HOME
""")


def test_an_internal_error(bob: Bob, work: Work, tmp_path: Path) -> None:
    work.raises = ZeroDivisionError("division\nby zero")

    ended = bob("probe", "--fs", "ext4", "--quiet")

    (file,) = tmp_path.glob("bob-error-*.txt")
    assert ended.code == 70
    assert ended.err.replace(str(file), "FILE") == snapshot("""\
bob: internal error: ZeroDivisionError: division by zero (traceback: FILE)
hint: please report this error, with that file
""")
    assert file.read_text().count("Traceback (most recent") == 1
    assert f"Python {sys.version.split()[0]}" in file.read_text()


def test_an_internal_error_when_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch, bob: Bob, work: Work) -> None:
    work.raises = ZeroDivisionError("x")
    monkeypatch.setattr("tempfile.NamedTemporaryFile", lambda *_, **__: raising_oserror())

    ended = bob("probe", "--fs", "ext4", "--quiet")

    assert ended.code == 70
    assert text_with(ended.err, "BOB_DEBUG=1") == snapshot("""\
bob: internal error: ZeroDivisionError: x
hint: BOB_DEBUG=1 shows the traceback
""")


def test_a_python_package_that_is_not_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(ModuleNotFoundError("No module named 'rich'", name="rich.cells")) == Exit.MISSING_PROGRAM
    assert text_with(capsys.readouterr().err.replace(sys.executable, "PYTHON"), "rich", "./run") == snapshot("""\
bob: the Python package rich is not installed for PYTHON
hint: ./run in bob's folder installs the packages that bob needs, and runs bob
""")
    assert raising(ModuleNotFoundError("No module named 'bob.x'", name="bob.x")) == Exit.INTERNAL


def test_debug_shows_what_came_of_a_missing_package_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOB_DEBUG", "1")

    assert raising(ModuleNotFoundError("No module named 'rich'", name="rich")) == Exit.MISSING_PROGRAM
    told = capsys.readouterr().err
    assert told.count("Traceback (most recent") == 1
    assert line_with(told, "package rich", "bob:").replace(sys.executable, "PYTHON") == snapshot(
        "bob: the Python package rich is not installed for PYTHON"
    )


def test_a_python_without_any_package() -> None:
    """``-S``: without site-packages."""
    words = [sys.executable, "-S", "-m", "bob", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=CHECKOUT)
    assert (done.returncode, done.stdout) == (Exit.MISSING_PROGRAM, "")
    said, hint = done.stderr.splitlines()
    assert re.sub("package [a-z_]+", "package NAME", said).replace(sys.executable, "PYTHON") == snapshot(
        "bob: the Python package NAME is not installed for PYTHON"
    )
    assert text_with(hint, "./run") == snapshot(
        "hint: ./run in bob's folder installs the packages that bob needs, and runs bob"
    )


def raising_oserror() -> NoReturn:
    raise OSError(errno.EROFS, "Read-only file system")


def test_debug_shows_tracebacks(bob: Bob, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    work.raises = ZeroDivisionError("x")
    monkeypatch.setenv("BOB_DEBUG", "1")

    assert "Traceback (most recent" in bob("probe", "--fs", "ext4", "--quiet").err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals(number: signal.Signals, tmp_path: Path) -> None:
    """Each ends bob as Ctrl-C does: what is in ``finally`` runs."""
    script = """
import sys, time
from bob.cli import ending
ending.catch_signals()
def wait():
    try:
        print("ready", flush=True)
        time.sleep(60)
    finally:
        print("cleaned up", flush=True)
sys.exit(ending.exit_code(wait))
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=CHECKOUT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "cleaned up\n", "bob: interrupted\n")


STUBBORN = """
import sys, time
from bob.cli import ending
ending.catch_signals()
def wait():
    try:
        print("ready", flush=True)
        time.sleep(60)
    finally:
        print("cleaning up", flush=True)
        time.sleep(float(sys.argv[1]))
        print("cleaned up", flush=True)
sys.exit(ending.exit_code(wait))
"""


def interrupted(cleaning: float, gaps: list[float]) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of a program that takes ``cleaning`` seconds to clean up, and is sent a signal
    after each of ``gaps`` (seconds)."""
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN, str(cleaning)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for number, gap in zip(cycle([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]), gaps, strict=False):
            time.sleep(gap)
            process.send_signal(number)
        out, err = process.communicate(timeout=30)
        return process.returncode, out, err


@pytest.mark.parametrize("gap", [0.0, 0.01, 0.1])
def test_a_signal_that_is_repeated_at_once_disturbs_no_cleaning_up(gap: float) -> None:
    """`timeout` sends one to bob and one to its process group, which bob is in."""
    assert interrupted(1.0, [gap] * 6) == (
        130,
        snapshot("""\
cleaning up
cleaned up
"""),
        "bob: interrupted\n",
    )


def test_a_signal_after_a_while_ends_bob_at_once() -> None:
    code, out, err = interrupted(60, [0.1, 1.5])
    assert (code, out) == (130, "cleaning up\n")
    assert err == snapshot("bob: interrupted again, and stopped at once; finished work is kept\n")


def test_an_interrupt_that_c_code_has_swallowed_is_one_still(tmp_path: Path) -> None:
    """numpy made a TypeError of one that came while it compared: no internal error, and what is kept is said."""
    script = """
import os, signal, sys
from pathlib import Path
from bob.cli import ending
from bob.cli.run_directories import telling_what_is_kept
ending.catch_signals()
folder = Path(sys.argv[1])
(folder / "run.json").touch()
def compare():
    with telling_what_is_kept("matrix", folder):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt:
            raise TypeError("cannot compare") from None
sys.exit(ending.exit_code(compare))
"""
    words = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=CHECKOUT)
    assert (done.returncode, "internal error" in done.stderr) == (130, False)
    assert f"bob matrix --resume {tmp_path}" in done.stderr


def test_a_thread_that_fails_prints_no_traceback(tmp_path: Path) -> None:
    script = """
import threading
from bob.cli import ending
ending.catch_signals()
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=CHECKOUT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    [file] = tmp_path.glob("bob-error-*.txt")
    assert done.stderr.replace(str(file), "FILE") == snapshot("""\
bob: internal error: ZeroDivisionError: division by zero (traceback: FILE)
hint: please report this error, with that file
""")
    assert "Traceback" not in done.stderr


def test_a_reader_that_leaves(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run(
            [*BOB, "image", "list"], stdout=closed, stderr=subprocess.PIPE, text=True, check=False, cwd=CHECKOUT
        )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_leaves_does_not_change_the_exit_code() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        compare = ["compare", "osdi14", str(CHECKOUT / "reports/reference/osdi14-linux-6.1")]
        for command in (compare, [*compare, "--json", "-"]):
            done = subprocess.run(
                [*BOB, *command], stdout=closed, stderr=subprocess.PIPE, text=True, check=False, cwd=CHECKOUT
            )
            assert (done.returncode, done.stderr) == (Exit.DIFFERENT, ""), command


def test_stdout_that_is_full() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*BOB, "image", "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=CHECKOUT
        )
    assert done.returncode == Exit.STORE
    assert done.stderr == snapshot("""\
bob: No space left on device
hint: free some space, or choose another folder with --out or XDG_CACHE_HOME
""")


STORM = """
import os, signal, sys, time
from bob.cli import ending

ending.catch_signals()
ending._INTERRUPTS.since = time.monotonic()  # it was interrupted, and has ended well
target = os.getpid()
if os.fork() == 0:
    for _ in range(4000):
        try:
            os.kill(target, signal.SIGHUP)
        except OSError:
            break
    os._exit(0)
ending.ignore_signals()
sys.exit(130)
"""


def test_signals_as_python_ends_do_not_change_the_exit_code() -> None:
    """Python gives signals back to the kernel before it is gone: a SIGHUP then killed a bob that had ended well."""
    for _ in range(5):
        assert subprocess.run([sys.executable, "-c", STORM], cwd=CHECKOUT, check=False).returncode == 130


# Memory that was freed is given back, in a process that does as bob's entry point does


CHILD = """
import re, sys
from pathlib import Path
from bob.memory import give_back_what_is_freed

def mib():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024

if sys.argv[1] == "give back":
    give_back_what_is_freed()
before = mib()
freed = b"x" * (8 << 20)  # from this glibc learns to keep
del freed
freed = [b"x" * (2 << 20) for _ in range(40)]
above = b"y" * 500_000  # nothing below this in the heap can be given back
del freed
print(mib() - before)
"""


def left(how: str) -> int:
    """What a process has more than at its beginning when it has freed everything (MiB). A nanny of Dask's, of another
    test, leaves MALLOC_TRIM_THRESHOLD_ in the environment."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run([sys.executable, "-c", CHILD, how], capture_output=True, text=True, check=True, env=plain)
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc")
def test_what_is_freed_is_given_back() -> None:
    assert left("keep") > 60
    assert left("give back") <= 4
