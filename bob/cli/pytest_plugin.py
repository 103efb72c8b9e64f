"""A plugin for pytest: the fixture ``crash`` asks whether what a test does survives a crash (docs/apps.md). It skips a
test with the reason where bob cannot run guests, and never lets a test pass whose answer is unknown."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pytest

if TYPE_CHECKING:  # every run of pytest loads this file, so the rest of bob is imported when a test asks for it
    from bob.program.program import Program
    from bob.report.saved import Saved

CrashScript = Callable[..., object] | str | Path
_OPTIONS = (
    ("fs", "FS", "a file system to test on, e.g. ext4 (the default); may be repeated"),
    ("budget", "N", "about this many mounts between two outputs of a workload (default: 100)"),
    ("jobs", "N", "number of parallel guests (default: one per processor, as memory allows)"),
    ("pace", "PACE", "a pace of the workload: undisturbed (the default), slow, slower or busy; may be repeated"),
    ("image", "IMAGE", "the guest image, which determines the kernel (default: debian-bookworm)"),
)
_REPEATED = ("fs", "pace")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("crash", "crashes of what a test does, by bob")
    for name, metavar, words in _OPTIONS:
        is_repeated = name in _REPEATED
        action, kind = ("append", "args") if is_repeated else ("store", "string")
        group.addoption(f"--crash-{name}", action=action, metavar=metavar, default=None, help=words)
        parser.addini(f"crash_{name}", words, type=cast(Any, kind), default=None)
    group.addoption("--crash-required", action="store_true", help="fail where bob cannot run guests, instead of a skip")


@pytest.fixture
def crash(request: pytest.FixtureRequest) -> Crash:
    """``crash.run(workload, check)`` fails the test if a crash during ``workload`` leaves files that ``check``
    refuses."""
    return Crash(request)


class Crash:
    """The value of the fixture ``crash``."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._config, self._node = request.config, request.node

    def run(
        self,
        workload: CrashScript,
        check: CrashScript | None = None,
        setup: CrashScript | None = None,
        *,
        files: Sequence[Path | str] = (),
        packages: Sequence[str] = (),
        must_fail: Sequence[str] | None = None,
        seconds: float = 60.0,
        fs: Sequence[str] | str = (),
    ) -> Saved:
        """Crash ``workload`` at every moment, and run ``check`` on the files that the crashes leave. Return the result.
        Fail the test if ``check`` refuses something, or the answer is unknown. Each script is a function, a command, or
        the path of a script. Functions run alone in a guest: they take the directory, and a check also the output so
        far.

        ``files`` go along, ``packages`` are Debian packages, and ``fs`` takes the place of the options. The other
        arguments are as in app.toml. Without a check, all is refused that is neither before nor after an output or a
        sync."""
        from bob.errors import BobError, Exit

        __tracebackhide__ = True
        self._check_machine()
        refusal: BobError
        try:
            program = self._program(workload, check, setup, files, packages, must_fail, seconds)
            saved = self._tried(program, [fs] if fs and isinstance(fs, str) else list(fs))
        except BobError as error:
            refusal = error
        else:
            self._judge(saved)
            return saved
        said = f"{refusal.message}\nhint: {refusal.hint}" if refusal.hint else refusal.message
        if refusal.exit_code in (Exit.MISSING_PROGRAM, Exit.IMAGE):
            self._cannot(said)
        pytest.fail(f"bob: {said}", pytrace=False)

    def _check_machine(self) -> None:
        __tracebackhide__ = True
        if _CANNOT not in self._config.stash:
            from bob.cli.checks import Health, checks

            missing = [f"{one.name}: {one.found}" for one in checks() if one.state is Health.MISSING]
            self._config.stash[_CANNOT] = "; ".join(missing)
        if said := self._config.stash[_CANNOT]:
            self._cannot(f"bob cannot run guests here: {said}")

    def _cannot(self, said: str) -> NoReturn:
        """Skip the test, and all later ones for the same reason, or fail it if the user requires crashes."""
        __tracebackhide__ = True
        self._config.stash[_CANNOT] = said
        if self._config.getoption("--crash-required"):
            pytest.fail(said, pytrace=False)
        pytest.skip(said)

    def _program(
        self,
        workload: CrashScript,
        check: CrashScript | None,
        setup: CrashScript | None,
        files: Sequence[Path | str],
        packages: Sequence[str],
        must_fail: Sequence[str] | None,
        seconds: float,
    ) -> Program:
        from bob.program.folder import script_of
        from bob.program.functions import ScriptMaker
        from bob.program.program import EMPTIED, Program

        here, root = self._node.path.parent, self._config.rootpath
        maker = ScriptMaker(root)
        maker.add(here / one for one in files)
        scripts = []
        for name, one in (("setup", setup), ("workload", workload), ("check", check)):
            if one is not None:
                scripts.append(maker.script(name, one) if callable(one) else script_of(name, _text(one, here)))
        every = (*maker.files.values(), *scripts)
        damage = must_fail if must_fail is not None else (EMPTIED,) if check is not None else ()
        about = self._node.nodeid
        return Program(
            self._node.name, about, every, must_fail=tuple(damage), packages=tuple(packages), seconds=seconds
        )

    def _tried(self, program: Program, systems: list[str]) -> Saved:
        from bob.catalogue.request import DEFAULT_IMAGE
        from bob.cli.display import watching
        from bob.program.program import Pace
        from bob.report.saved import Saved
        from bob.run import option_table as table
        from bob.run.interrupts import no_guest_left
        from bob.run.programs import try_program
        from bob.run.requests import program_requests
        from bob.settings import settings
        from bob.store.run_directory import RUNS, new_identity

        budget, jobs = self._number("budget"), self._number("jobs")
        exploration = table.Exploration() if budget is None else table.Exploration(budget=budget)
        systems = systems or self._option("fs") or ["ext4"]
        paces = [_pace(Pace, one) for one in self._option("pace") or ["undisturbed"]]
        image = self._option("image") or settings().image or DEFAULT_IMAGE
        out = self._config.rootpath / RUNS / new_identity()
        capture: Any = self._config.pluginmanager.getplugin("capturemanager")
        is_quiet = self._config.get_verbosity() < 1
        with capture.global_and_fixture_disabled(), watching(quiet=is_quiet) as progress, no_guest_left():
            asked = program_requests(
                program,
                systems,
                table.FileSystemOptions(),
                paces,
                exploration,
                image,
                table.GuestOptions(jobs=jobs),
                progress=progress.step,
            )
            return Saved(*try_program(program, asked, out, progress))

    def _judge(self, saved: Saved) -> None:
        from bob.claim.verdict import Verdict
        from bob.cli.output import paper
        from bob.report.programs import print_programs
        from bob.store.kept_runs import remove

        __tracebackhide__ = True
        if set(saved.result.verdicts) == {Verdict.HOLDS}:
            remove(saved.folder)  # a test that passes needs no recordings
            return
        told = io.StringIO()
        print_programs(paper(told), saved.result, saved.folder)
        pytest.fail(told.getvalue(), pytrace=False)

    def _option(self, name: str) -> Any:
        return self._config.getoption(f"--crash-{name}") or self._config.getini(f"crash_{name}")

    def _number(self, name: str) -> int | None:
        from bob.errors import UsageError

        said = self._option(name)
        if said and not (said.isdecimal() and int(said)):
            raise UsageError(f"invalid --crash-{name} {said!r}; expected 1 or more")
        return int(said) if said else None


_CANNOT = pytest.StashKey[str]()  # why bob cannot run guests in this session; empty: it can


def _text(script: str | Path, here: Path) -> str:
    """Return a script's path, or a command. A path is relative to the folder of the test."""
    beside = here / script
    return str(beside) if isinstance(script, Path) or (" " not in script and beside.is_file()) else script


def _pace(paces: Any, word: str) -> Any:
    from bob.errors import UsageError, meant

    names = [one.value for one in paces]
    if word not in names:
        raise UsageError(f"invalid --crash-pace {word!r}", hint=meant(word, names))
    return paces(word)
