"""What Python may call. This file is written by a program: python tests/python_stub.py."""

import os
from collections.abc import Sequence
from typing import TypeAlias

from bob.progress import Progress
from bob.report.saved import Saved

StrPath: TypeAlias = str | os.PathLike[str]

__all__ = ["app", "load", "probe", "resume", "try_"]

__version__: str

def app(
    program: StrPath,
    *,
    fs: StrPath | Sequence[StrPath] = (),
    model: StrPath | Sequence[StrPath] = (),
    pace: str | Sequence[str] = (),
    mount_options: str = "",
    mkfs_options: str = "",
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
) -> Saved:
    """Find out whether a program survives a crash, as ``bob app`` does (docs/apps.md): the result and its place.

    Raises UsageError where the program cannot be run, or its checker cannot be trusted.

    :param program: The name of a program that bob ships, or a folder with app.toml and scripts.
    :param fs: File system, e.g. ext4, or the TOML file of one of your own.
    :param model: Models against which the program's calls are held: built-in or shipped ones by name, files, or
        ``all``. Without ``fs``, only they are asked.
    :param pace: The paces of the workload (docs/apps.md). Default: each that makes a difference on the file system.
    :param mount_options: Mount options, e.g. data=ordered.
    :param mkfs_options: More options for mkfs, e.g. '-O ^has_journal'.
    :param device: Size of the probed device, in bytes: whole MiB, at most 800. 0: by file system, or by program.
    :param budget: Mounts per workload, about. States that need no mount are free. Default: what bob.toml says, or else
        100.
    :param audit: The share of predicted outcomes that extra mounts check; at least three of each kind.
    :param seed: Seed of the random crash states.
    :param write_cache: The disk's cache: volatile, a write is durable after a later flush; none, a write is durable
        when it completes; ordered, a crash loses the last writes that no flush followed, in order of completion. One of
        volatile, none, ordered.
    :param atomic_write: Bytes that the disk writes as a whole: a power of two, at least 8.
    :param completion: When the recorded disk reports a write as done: at once; or as late as possible, the youngest or
        the oldest of several first. One of prompt, youngest-first, oldest-first.
    :param image: The guest image, and with it the kernel. Default: what bob.toml says, or else debian-bookworm.
    :param jobs: Guests side by side, two per processor at most. Default: what bob.toml says, or else one per processor,
        as far as memory goes.
    :param out: The run directory. Default: a new one in bob-runs.
    :param progress: Gets the progress, from several threads.
    """

def load(
    path: StrPath,
) -> Saved:
    """The result of a run: ``bob.load(run).matrix()`` is the table as a DataFrame (docs/results.md).

    Raises :class:`bob.errors.StoreError` where there is no result, :class:`bob.errors.MalformedError` where it is
    damaged.

    :param path: A run directory, or a file that ``--json`` wrote.
    """

def probe(
    fs: StrPath,
    *,
    mount_options: str = "",
    mkfs_options: str = "",
    device: int = 0,
    rows: str = "table1",
    properties: str | Sequence[str] = (),
    probes: StrPath | Sequence[StrPath] = (),
    recovery_crashes: int = 0,
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
) -> Saved:
    """Find out which persistence properties a file system has, as ``bob probe`` does: the result and its place.

    :param fs: File system, e.g. ext4, or the TOML file of one of your own.
    :param mount_options: Mount options, e.g. data=ordered.
    :param mkfs_options: More options for mkfs, e.g. '-O ^has_journal'.
    :param device: Size of the probed device, in bytes: whole MiB, at most 800. 0: by file system, or by program.
    :param rows: The set of properties: those of Table 1; the order in which changes persist (pairs); the changes that
        each call makes durable (durability); the size up to which changes are whole (units). One of table1, pairs,
        durability, units.
    :param properties: Ask only these properties, by name, or ``all``. Default: all, or those of ``probes`` only.
    :param probes: Probe files of your own, whose properties are asked, too.
    :param recovery_crashes: Crash the recovery of so many crash states, too. Adds the row recovery-idempotent.
    :param budget: Mounts per workload, about. States that need no mount are free. Default: what bob.toml says, or else
        100.
    :param audit: The share of predicted outcomes that extra mounts check; at least three of each kind.
    :param seed: Seed of the random crash states.
    :param write_cache: The disk's cache: volatile, a write is durable after a later flush; none, a write is durable
        when it completes; ordered, a crash loses the last writes that no flush followed, in order of completion. One of
        volatile, none, ordered.
    :param atomic_write: Bytes that the disk writes as a whole: a power of two, at least 8.
    :param completion: When the recorded disk reports a write as done: at once; or as late as possible, the youngest or
        the oldest of several first. One of prompt, youngest-first, oldest-first.
    :param image: The guest image, and with it the kernel. Default: what bob.toml says, or else debian-bookworm.
    :param jobs: Guests side by side, two per processor at most. Default: what bob.toml says, or else one per processor,
        as far as memory goes.
    :param out: The run directory. Default: a new one in bob-runs.
    :param progress: Gets the progress, from several threads.
    """

def resume(
    run: StrPath,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Saved:
    """Go on with a probe that was stopped or lost something, as ``bob probe --resume RUN`` does; what is finished is
    not done again.

    :param run: A run directory.
    :param jobs: Guests side by side, two per processor at most. Default: what bob.toml says, or else one per processor,
        as far as memory goes.
    :param progress: Gets the progress, from several threads.
    """

def try_(
    operations: str,
    expect: str | Sequence[str],
    *,
    fs: StrPath,
    setup: str = "",
    at: str = "end",
    finishes: str | Sequence[str] = (),
    witnesses: int = 5,
    mount_options: str = "",
    mkfs_options: str = "",
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
) -> Saved:
    """Ask what a crash may leave of some operations, as ``bob try`` does: the answers, with their ways to break it.

    Raises :class:`bob.errors.RecordingError` where nothing could be recorded.

    :param operations: The operations, separated by ``;`` or on a line each (docs/extend.md).
    :param expect: Expectations for every crash state (docs/try.md). Each one is answered.
    :param fs: File system, e.g. ext4, or the TOML file of one of your own.
    :param setup: The initial tree, durable before it all begins.
    :param at: The moment of the crash: after the last operation has returned (end), or anywhere (any). One of end, any.
    :param finishes: The end of the workload: natural [SECONDS], sync, fsync PATH. Default: natural; an fsync of the
        directories that they change; fsync /.
    :param witnesses: Maximum counterexamples shown and kept per expectation.
    :param mount_options: Mount options, e.g. data=ordered.
    :param mkfs_options: More options for mkfs, e.g. '-O ^has_journal'.
    :param device: Size of the probed device, in bytes: whole MiB, at most 800. 0: by file system, or by program.
    :param budget: Mounts per workload, about. States that need no mount are free. Default: what bob.toml says, or else
        100.
    :param audit: The share of predicted outcomes that extra mounts check; at least three of each kind.
    :param seed: Seed of the random crash states.
    :param write_cache: The disk's cache: volatile, a write is durable after a later flush; none, a write is durable
        when it completes; ordered, a crash loses the last writes that no flush followed, in order of completion. One of
        volatile, none, ordered.
    :param atomic_write: Bytes that the disk writes as a whole: a power of two, at least 8.
    :param completion: When the recorded disk reports a write as done: at once; or as late as possible, the youngest or
        the oldest of several first. One of prompt, youngest-first, oldest-first.
    :param image: The guest image, and with it the kernel. Default: what bob.toml says, or else debian-bookworm.
    :param jobs: Guests side by side, two per processor at most. Default: what bob.toml says, or else one per processor,
        as far as memory goes.
    :param out: The run directory. Default: a new one in bob-runs.
    :param progress: Gets the progress, from several threads.
    """
