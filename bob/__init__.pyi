"""What Python may call. This file is written by a program: python tests/python_stub.py."""

import os
from collections.abc import Sequence
from typing import Literal, TypeAlias

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
    checks: Literal["auto", "host", "guest"] | None = None,
    pace: Literal["undisturbed", "slow", "slower", "busy"] | Sequence[Literal["undisturbed", "slow", "slower", "busy"]] = (),
    mount_options: str = "",
    mkfs_options: str = "",
    device: int = 0,
    stack: StrPath = "",
    missing: int | Sequence[int] = (),
    lost: int | Sequence[int] = (),
    budget: int | None = None,
    audit: float = 0.01,
    seed: int = 1,
    write_cache: Literal["volatile", "none", "ordered"] = "volatile",
    atomic_write: int = 512,
    completion: Literal["prompt", "youngest-first", "oldest-first"] = "youngest-first",
    image: str | None = None,
    jobs: int | None = None,
    out: StrPath | None = None,
    progress: Progress | None = None,
) -> Saved:
    """Find out whether a program survives a crash, as ``bob app`` does (docs/apps.md). Return the result and its run
    directory.

    Raises UsageError if the program cannot run, or its checker cannot be trusted.

    :param program: The name of a program that bob ships, or a folder with app.toml and scripts.
    :param fs: File system, e.g. ext4, or a TOML file that declares your own.
    :param model: Also check the program's calls against these models: built-in or shipped ones by name, files, or
        ``all``. Without ``fs``, bob checks only the models.
    :param checks: Where the checker looks at trees of models: on the host in a sandbox, in guests, or on the host if
        possible (docs/apps.md). One of auto, host, guest. Default: from bob.toml, else auto.
    :param pace: The paces of the workload (docs/apps.md). Default: each that makes a difference on the file system.
    :param mount_options: Mount options, e.g. data=ordered.
    :param mkfs_options: More options for mkfs, e.g. '-O ^has_journal'.
    :param device: Size of the probed device, in bytes: whole MiB, at most 800. 0: by file system, or by program.
    :param stack: Layers between the file system and the disks, from the top down: e.g. raid1, or the TOML file of one
        of your own. --device is then the size of each disk.
    :param missing: Disks below the layers that failed before the operations begin; the first is 0.
    :param lost: Disks below the layers that fail together with the crash; the first is 0.
    :param budget: About this many mounts per workload. Crash states whose outcome bob predicts need none. Default: from
        bob.toml, else 100.
    :param audit: The share of predicted outcomes that bob verifies by extra mounts; at least three of each kind.
    :param seed: Seed of the random crash states.
    :param write_cache: The disk's cache. volatile: a write is durable after a later flush; none: a write is durable
        when it completes; ordered: a crash loses the last writes that no flush followed, in order of completion. One of
        volatile, none, ordered.
    :param atomic_write: Bytes that the disk writes atomically: a power of two, at least 8.
    :param completion: When the recorded disk completes a write: at once (prompt); or as late as possible, the youngest
        or the oldest of several writes first. One of prompt, youngest-first, oldest-first.
    :param image: The guest image, which determines the kernel. Default: from bob.toml, else debian-bookworm.
    :param jobs: Number of parallel guests, at most two per processor. Default: from bob.toml, else one per processor,
        as memory allows.
    :param out: The run directory. Default: a new one in bob-runs.
    :param progress: An object that bob calls with its progress, from several threads.
    """

def load(
    path: StrPath,
) -> Saved:
    """Return the result of a run: ``bob.load(run).matrix()`` is the table as a DataFrame (docs/results.md).

    Raises :class:`bob.errors.StoreError` if the result is missing, and :class:`bob.errors.MalformedError` if it is
    damaged.

    :param path: A run directory, or a file that ``--json`` wrote.
    """

def probe(
    fs: StrPath,
    *,
    mount_options: str = "",
    mkfs_options: str = "",
    device: int = 0,
    stack: StrPath = "",
    missing: int | Sequence[int] = (),
    lost: int | Sequence[int] = (),
    rows: Literal["table1", "pairs", "durability", "units"] = "table1",
    properties: str | Sequence[str] = (),
    probes: StrPath | Sequence[StrPath] = (),
    recovery_crashes: int = 0,
    recovery_depth: int = 1,
    budget: int | None = None,
    audit: float = 0.01,
    seed: int = 1,
    write_cache: Literal["volatile", "none", "ordered"] = "volatile",
    atomic_write: int = 512,
    completion: Literal["prompt", "youngest-first", "oldest-first"] = "youngest-first",
    image: str | None = None,
    jobs: int | None = None,
    out: StrPath | None = None,
    progress: Progress | None = None,
) -> Saved:
    """Find out which persistence properties a file system has, as ``bob probe`` does. Return the result and its run
    directory.

    :param fs: File system, e.g. ext4, or a TOML file that declares your own.
    :param mount_options: Mount options, e.g. data=ordered.
    :param mkfs_options: More options for mkfs, e.g. '-O ^has_journal'.
    :param device: Size of the probed device, in bytes: whole MiB, at most 800. 0: by file system, or by program.
    :param stack: Layers between the file system and the disks, from the top down: e.g. raid1, or the TOML file of one
        of your own. --device is then the size of each disk.
    :param missing: Disks below the layers that failed before the operations begin; the first is 0.
    :param lost: Disks below the layers that fail together with the crash; the first is 0.
    :param rows: The set of properties: those of Table 1; the order of changes on the disk (pairs); the changes that
        each call makes durable (durability); the size of atomic changes (units). One of table1, pairs, durability,
        units.
    :param properties: Check only these properties, by name, or ``all``. Default: all; with ``probes``, only theirs.
    :param probes: Your own probe files, whose properties bob checks.
    :param recovery_crashes: Also crash the recovery of this many crash states. This adds the row recovery-idempotent.
    :param recovery_depth: How many crashes in a row interrupt recovery. With 2, bob also crashes the recovery of as
        many states that a crash during recovery left.
    :param budget: About this many mounts per workload. Crash states whose outcome bob predicts need none. Default: from
        bob.toml, else 100.
    :param audit: The share of predicted outcomes that bob verifies by extra mounts; at least three of each kind.
    :param seed: Seed of the random crash states.
    :param write_cache: The disk's cache. volatile: a write is durable after a later flush; none: a write is durable
        when it completes; ordered: a crash loses the last writes that no flush followed, in order of completion. One of
        volatile, none, ordered.
    :param atomic_write: Bytes that the disk writes atomically: a power of two, at least 8.
    :param completion: When the recorded disk completes a write: at once (prompt); or as late as possible, the youngest
        or the oldest of several writes first. One of prompt, youngest-first, oldest-first.
    :param image: The guest image, which determines the kernel. Default: from bob.toml, else debian-bookworm.
    :param jobs: Number of parallel guests, at most two per processor. Default: from bob.toml, else one per processor,
        as memory allows.
    :param out: The run directory. Default: a new one in bob-runs.
    :param progress: An object that bob calls with its progress, from several threads.
    """

def resume(
    run: StrPath,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Saved:
    """Resume a probe that was stopped or is incomplete, as ``bob probe --resume RUN`` does. bob does not repeat
    finished work.

    :param run: A run directory.
    :param jobs: Number of parallel guests, at most two per processor. Default: from bob.toml, else one per processor,
        as memory allows.
    :param progress: An object that bob calls with its progress, from several threads.
    """

def try_(
    operations: str,
    expect: str | Sequence[str],
    *,
    fs: StrPath,
    setup: str = "",
    at: Literal["end", "any"] = "end",
    finishes: str | Sequence[str] = (),
    witnesses: int = 5,
    mount_options: str = "",
    mkfs_options: str = "",
    device: int = 0,
    stack: StrPath = "",
    missing: int | Sequence[int] = (),
    lost: int | Sequence[int] = (),
    budget: int | None = None,
    audit: float = 0.01,
    seed: int = 1,
    write_cache: Literal["volatile", "none", "ordered"] = "volatile",
    atomic_write: int = 512,
    completion: Literal["prompt", "youngest-first", "oldest-first"] = "youngest-first",
    image: str | None = None,
    jobs: int | None = None,
    out: StrPath | None = None,
    progress: Progress | None = None,
) -> Saved:
    """Check what you expect of operations after a crash, as ``bob try`` does. Return the answers, and how each
    expectation breaks.

    Raises :class:`bob.errors.RecordingError` if nothing could be recorded.

    :param operations: The operations, separated by ``;`` or line breaks (docs/extend.md).
    :param expect: Expectations for every crash state (docs/try.md). bob answers each one.
    :param fs: File system, e.g. ext4, or a TOML file that declares your own.
    :param setup: Operations that make the initial tree. It is durable before the other operations start.
    :param at: The moment of the crash: after the last operation has returned (end), or any moment (any). One of end,
        any.
    :param finishes: The end of the workload: natural [SECONDS], sync, fsync PATH. Default: natural; an fsync of the
        changed directories; fsync /.
    :param witnesses: Maximum counterexamples shown and kept per expectation.
    :param mount_options: Mount options, e.g. data=ordered.
    :param mkfs_options: More options for mkfs, e.g. '-O ^has_journal'.
    :param device: Size of the probed device, in bytes: whole MiB, at most 800. 0: by file system, or by program.
    :param stack: Layers between the file system and the disks, from the top down: e.g. raid1, or the TOML file of one
        of your own. --device is then the size of each disk.
    :param missing: Disks below the layers that failed before the operations begin; the first is 0.
    :param lost: Disks below the layers that fail together with the crash; the first is 0.
    :param budget: About this many mounts per workload. Crash states whose outcome bob predicts need none. Default: from
        bob.toml, else 100.
    :param audit: The share of predicted outcomes that bob verifies by extra mounts; at least three of each kind.
    :param seed: Seed of the random crash states.
    :param write_cache: The disk's cache. volatile: a write is durable after a later flush; none: a write is durable
        when it completes; ordered: a crash loses the last writes that no flush followed, in order of completion. One of
        volatile, none, ordered.
    :param atomic_write: Bytes that the disk writes atomically: a power of two, at least 8.
    :param completion: When the recorded disk completes a write: at once (prompt); or as late as possible, the youngest
        or the oldest of several writes first. One of prompt, youngest-first, oldest-first.
    :param image: The guest image, which determines the kernel. Default: from bob.toml, else debian-bookworm.
    :param jobs: Number of parallel guests, at most two per processor. Default: from bob.toml, else one per processor,
        as memory allows.
    :param out: The run directory. Default: a new one in bob-runs.
    :param progress: An object that bob calls with its progress, from several threads.
    """
