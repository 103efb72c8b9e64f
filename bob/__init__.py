"""bob, the Block Order Breaker: which persistence properties does a file system have?

The way of the data is the layout of this package (docs/design.md, section 1)::

    record -> enumerate (crash) -> observe -> judge -> report -> derive (apm)

From Python, :func:`probe` asks a file system for its properties, :func:`try_` asks a quick question, :func:`app` asks
whether a program survives a crash, :func:`resume` goes on with a probe, and :func:`load` reads what a run found
(docs/reports.md, docs/notebook.ipynb).

A question that cannot be asked raises :class:`bob.errors.UsageError` before anything starts; a mistake in a text raises
:class:`bob.errors.PointedError`, which is one, too. MissingProgramError, ImageError, GuestError and StoreError say what
the machine lacks or does not do. All of them are :class:`bob.errors.BobError`, with a ``hint``. Ctrl-C raises
KeyboardInterrupt when no guest is left; pressed again, it ends the guests at once.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeAlias, TypeVar

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bob.judge.program_result import Programs
    from bob.judge.tried import Tried
    from bob.progress import Progress
    from bob.report.saved import Saved

    StrPath: TypeAlias = str | os.PathLike[str]

__all__ = ["app", "load", "probe", "resume", "try_"]

__version__ = "0.2.0"

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def as_annotated(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """``function``, which raises UsageError for an argument that is not of its annotated type."""

    @wraps(function)
    def asked(*given: Given.args, **named: Given.kwargs) -> Answer:
        from bob.arguments import bound

        asks = bound(function, given, named)
        return function(*asks.args, **asks.kwargs)

    return asked


@as_annotated
def probe(
    fs: str,
    *,
    mkfs_options: str = "",
    mount_options: str = "",
    device: int = 0,
    properties: str | Sequence[str] = (),
    probes: StrPath | Sequence[StrPath] = (),
    rows: str = "table1",
    budget: int | None = None,
    audit: float = 0.01,
    seed: int = 1,
    recovery_crashes: int = 0,
    write_cache: str = "volatile",
    atomic_write: int = 512,
    completion: str = "youngest-first",
    image: str | None = None,
    jobs: int | None = None,
    out: StrPath | None = None,
    progress: Progress | None = None,
) -> Saved:
    """Find out which persistence properties a file system has, as ``bob probe`` does: the result, and where it is kept.

    :param fs: a file system that bob knows: ``ext4``, ``xfs`` ...
    :param device: bytes of the probed device, whole MiB; 0 is the file system's default.
    :param properties: names of shipped properties, or ``all``. All of them where neither these nor probes are named.
    :param probes: probe files of one's own.
    :param rows: the set that the properties are of: ``table1``, ``pairs``, ``durability``, ``units``.
    :param budget: mounts per workload, about. Where it is None, bob.toml says it, or else it is 100.
    :param audit: the share of predicted outcomes that is checked by more mounts, 0 to 1.
    :param seed: chooses the random crash states.
    :param recovery_crashes: of so many crash states the recovery is crashed, too.
    :param write_cache: the disk's cache: ``volatile``, ``none``, ``ordered``.
    :param atomic_write: bytes that the disk writes as a whole, a power of two from 8 on.
    :param completion: when the disk tells that a write is done: ``prompt``, ``youngest-first``, ``oldest-first``.
    :param image: the guest image. Where it is None, bob.toml says it, or else it is ``debian-bookworm``.
    :param jobs: guests side by side. Where it is None, bob.toml says it, or else there are as many as fit.
    :param out: the run directory, new or empty; where it is None, a new one in ``bob-runs``.
    :param progress: told how far it is, from several threads; None tells nothing.
    """
    from dataclasses import replace
    from pathlib import Path

    from bob.catalogue.probe_files import load as read_probe
    from bob.catalogue.sets import Rows
    from bob.judge import searched
    from bob.progress import Silent
    from bob.report.saved import Saved
    from bob.run import prober
    from bob.run.interrupts import no_guest_left, telling_where
    from bob.run.requests import asked_request, checked, several, word
    from bob.store.new_folder import check_new_folder
    from bob.subject import configuration

    how = asked_request(
        configuration(fs, mkfs_options, mount_options, device),
        image=image,
        jobs=jobs,
        budget=budget,
        audit=audit,
        seed=seed,
        write_cache=write_cache,
        atomic_write=atomic_write,
        completion=completion,
    )
    wanted = checked(
        replace(
            how,
            properties=several(properties),
            probes=tuple(read_probe(Path(one)) for one in several(probes)),
            rows=word(Rows, rows, "rows"),
            recovery_crashes=recovery_crashes,
        )
    )
    folder = None if out is None else Path(out)
    check_new_folder(folder or prober.RUNS / "new", "out")
    searched.check(folder or prober.RUNS / "new")
    with telling_where(folder, prober.RUNS), no_guest_left():
        result, run = prober.probe(wanted, folder, progress or Silent())
    return Saved(searched.keep(run, result), run)


@as_annotated
def resume(run: StrPath, *, jobs: int | None = None, progress: Progress | None = None) -> Saved:
    """Go on with a probe that was stopped or lost something, as ``bob probe --resume RUN`` does; what is finished is
    not done again. ``jobs`` and ``progress`` are as for :func:`probe`.
    """
    from pathlib import Path

    from bob.judge import searched
    from bob.progress import Silent
    from bob.report.saved import Saved
    from bob.run import prober
    from bob.run.interrupts import no_guest_left, telling_where
    from bob.run.requests import asked_host

    folder = Path(run)
    searched.check(folder)
    with telling_where(folder, prober.RUNS), no_guest_left():
        result, folder = prober.resume(folder, asked_host(jobs), progress or Silent())
    return Saved(searched.keep(folder, result), folder)


@as_annotated
def try_(
    operations: str,
    expect: str | Sequence[str],
    *,
    fs: str,
    setup: str = "",
    at: str = "end",
    finishes: str | Sequence[str] = (),
    witnesses: int = 5,
    mkfs_options: str = "",
    mount_options: str = "",
    device: int = 0,
    budget: int | None = None,
    audit: float = 0.01,
    seed: int = 1,
    write_cache: str = "volatile",
    atomic_write: int = 512,
    completion: str = "youngest-first",
    image: str | None = None,
    jobs: int | None = None,
    out: StrPath | None = None,
    progress: Progress | None = None,
) -> Tried:
    """Ask what a crash may leave of some operations, as ``bob try`` does: the answers, with their ways to break it.

    The run directory is ``out``, or that of the name ``tried.run.id`` in ``bob-runs``. Whatever is not here is as for
    :func:`probe`. Raises :class:`bob.errors.RecordingError` where nothing could be recorded.

    :param operations: separated by ``;`` or on a line each (docs/write-a-probe.md).
    :param expect: what is to be so after every crash (docs/try.md); each of several is answered.
    :param setup: operations that make the initial tree, durable before it all begins.
    :param at: when the crash comes: ``end``, after the last operation has returned, or ``any``.
    :param finishes: what comes after the operations: ``natural``, ``natural SECONDS``, ``sync``, ``fsync PATH``. Where
        there are none: natural, an fsync of the directories that the operations change, ``fsync /``.
    :param witnesses: so many ways to break each expectation are kept as witnesses, at most.
    """
    from pathlib import Path

    from bob.progress import Silent
    from bob.run import prober
    from bob.run.interrupts import no_guest_left
    from bob.run.requests import Question, asked_request, several, trial, word
    from bob.run.trial import try_out
    from bob.store.new_folder import check_new_folder
    from bob.subject import configuration
    from bob.workload.operations import At

    how = asked_request(
        configuration(fs, mkfs_options, mount_options, device),
        image=image,
        jobs=jobs,
        budget=budget,
        audit=audit,
        seed=seed,
        write_cache=write_cache,
        atomic_write=atomic_write,
        completion=completion,
    )
    moment = word(At, at, "moment of the crash")
    asked = Question(operations, several(expect), setup, several(finishes), moment, most_witnesses=witnesses)
    question = trial(asked, how)
    folder = None if out is None else Path(out)
    check_new_folder(folder or prober.RUNS / "new", "out")
    with no_guest_left():
        tried, _run = try_out(question, folder, progress or Silent())
    return tried


@as_annotated
def app(
    program: StrPath,
    *,
    fs: str | Sequence[str] = (),
    model: StrPath | Sequence[StrPath] = (),
    pace: str | Sequence[str] = (),
    mkfs_options: str = "",
    mount_options: str = "",
    device: int = 0,
    budget: int | None = None,
    audit: float = 0.01,
    seed: int = 1,
    write_cache: str = "volatile",
    atomic_write: int = 512,
    completion: str = "youngest-first",
    image: str | None = None,
    jobs: int | None = None,
    out: StrPath | None = None,
    progress: Progress | None = None,
) -> tuple[Programs, Path]:
    """Find out whether a program survives a crash, as ``bob app`` does (docs/apps.md): the answers, and the run
    directory.

    Whatever is not here is as for :func:`probe`. Raises UsageError where the program cannot be run, or its checker
    cannot be trusted.

    :param program: the name of a program that bob ships, or a folder with app.toml and scripts.
    :param fs: one file system, or several. Where there is none, only models are asked.
    :param model: a model, or several, against which the program's calls are held: built-in or shipped ones by name, a
        file, or "all".
    :param pace: at which pace the workload runs, "undisturbed", "slow", "slower" or "busy", or at which of these; if
        none is named, at each of which the file system makes something of its own.
    :param device: 0 is the size that app.toml says, or else the file system's default.
    """
    from dataclasses import replace
    from pathlib import Path

    from bob.apm.named import named_models
    from bob.errors import UsageError
    from bob.program.folder import named
    from bob.program.pace import Pace
    from bob.progress import Silent
    from bob.run import prober
    from bob.run.interrupts import no_guest_left
    from bob.run.programs import try_program
    from bob.run.requests import RECORDED_ON, asked_request, checked, several, word
    from bob.store.new_folder import check_new_folder
    from bob.subject import configuration

    found, models = named(str(program)), named_models([str(one) for one in several(model)])
    systems = several(fs)
    if not systems and not models:
        raise UsageError("neither a file system nor a model is named", hint="for example fs='ext4', or model='all'")
    once = [
        checked(
            asked_request(
                configuration(name, mkfs_options, mount_options, device or found.device),
                image=image,
                jobs=jobs,
                budget=budget,
                audit=audit,
                seed=seed,
                write_cache=write_cache,
                atomic_write=atomic_write,
                completion=completion,
            )
        )
        for name in dict.fromkeys(systems or (RECORDED_ON,))
    ]
    paces = [word(Pace, one, "pace") for one in dict.fromkeys(several(pace))]
    if not systems:
        paces = paces or [Pace.UNDISTURBED]
    requests = [replace(one, pace=each) for one in once for each in paces or Pace.on(one.configuration.fs.commit)]
    folder = None if out is None else Path(out)
    check_new_folder(folder or prober.RUNS / "new", "out")
    with no_guest_left():
        return try_program(found, requests, folder, progress or Silent(), models, explores=bool(systems))


@as_annotated
def load(path: StrPath) -> Saved:
    """The result of a run: ``bob.load(run).matrix()`` is the table as a DataFrame (docs/reports.md).

    ``path`` is a run directory, or a file that ``--json`` wrote. Raises :class:`bob.errors.StoreError` where there is
    no result, :class:`bob.errors.MalformedError` where it is damaged.
    """
    from pathlib import Path

    from bob.report.saved import load

    return load(Path(path))
