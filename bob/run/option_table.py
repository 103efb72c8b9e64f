"""The options that several commands share, or that the command line shares with Python (:mod:`bob.options`)."""

from pathlib import Path
from typing import Any

from bob.catalogue.probe_files import Probe
from bob.catalogue.request import DEFAULT_COMPLETION, DEFAULT_IMAGE, CheckPlace, Host
from bob.catalogue.sets import RowSet
from bob.crash.caches import CACHES, VOLATILE
from bob.crash.cuts import CutKind
from bob.crash.device import DeviceModel
from bob.errors import UsageError, meant
from bob.options import REQUIRED, Choice, Range, group, option
from bob.program.program import Pace
from bob.run import option_paths as paths
from bob.run import option_values as values
from bob.subject import DEFAULT_AUDIT, DEFAULT_BUDGET, Subject, configuration, file_system
from bob.trace.model import SECTOR_BYTES
from bob.trace.recording import Completion
from bob.workload.operations import At

RECOVERIES = 40  # the default number of crashed recoveries: a minute or two for a configuration
MOST_WITNESSES = 5  # the default number of witnesses that bob keeps for an expectation
WHOLE = (1, 1)  # shard 1 of 1: everything

# The subject

FILE_SYSTEM: Any = option("--fs", "File system, e.g. ext4, or a TOML file that declares your own.", values.FILE_SYSTEM)

CLUSTER_BUDGET = 60  # a check takes seconds, as all nodes start

NODE_FILE_SYSTEMS: Any = option(
    "--fs",
    "File system of all nodes, e.g. ext4; or one for each node, e.g. ext4,xfs,btrfs.",
    values.NODE_FILE_SYSTEMS,
)


@group
class FileSystemOptions:
    """The options that set up a file system. They are for mkfs and mount, for the size of its device (bytes), and for
    the layers (such as RAID) and failing disks below it."""

    mount_options: str = option("--mount-opts OPTIONS", "Mount options, e.g. data=ordered.", default="")
    mkfs_options: str = option("--mkfs-opts OPTIONS", "More options for mkfs, e.g. '-O ^has_journal'.", default="")
    device: int = option(
        "--device",
        "Size of the probed device, e.g. 64M; 800M at most.",
        values.SIZE,
        0,
        words="by file system",
        python="Size of the probed device, in bytes: whole MiB, at most 800. 0: by file system, or by program.",
    )

    stack: str = option(
        "--stack LAYERS",
        "Layers between the file system and the disks, from the top down: e.g. raid1, or the TOML file of one of your"
        " own. --device is then the size of each disk.",
        values.STACK,
        "",
    )
    missing: tuple[int, ...] = option(
        "--without-disk N",
        "A disk below the layers that failed before the operations begin; the first is 0.",
        Range(0),
        python="Disks below the layers that failed before the operations begin; the first is 0.",
    )
    lost: tuple[int, ...] = option(
        "--lose-disk N",
        "A disk below the layers that fails together with the crash; the first is 0.",
        Range(0),
        python="Disks below the layers that fail together with the crash; the first is 0.",
    )

    def of(self, fs: str, least: int = 0) -> Subject:
        """Return the subject that bob shall test: the file system ``fs`` with these options. If the user did not give a
        size, the subject's device has at least ``least`` bytes. Raise the errors of :func:`configuration`."""
        usual = file_system(fs).device
        device = self.device or (least if usual < least else 0)
        options = self.mkfs_options, self.mount_options
        return configuration(fs, *options, device, on=self.stack, missing=self.missing, lost=self.lost)


# The question


@group
class Questions:
    """The properties that the user wants bob to test."""

    rows: RowSet = option(
        "--rows",
        "The set of properties: those of Table 1; the order of changes on the disk (pairs); the changes that each call"
        " makes durable (durability); the size of atomic changes (units).",
        default=RowSet.TABLE1,
    )
    properties: tuple[str, ...] = option(
        "--property",
        "Check only this property, with all workloads that suit it.",
        values.PROPERTY,
        words="all; with --probe, only its own",
        python="Check only these properties, by name, or ``all``. Default: all; with ``probes``, only theirs.",
    )
    probes: tuple[Probe, ...] = option(
        "--probe FILE",
        "Check the property in your own probe file. `--property all` adds the shipped ones.",
        values.PROBE_FILE,
        python="Your own probe files, whose properties bob checks.",
    )
    recovery_crashes: int = option(
        "--recovery-crashes N",
        f"Also crash the recovery of N crash states ({RECOVERIES} without N). This adds the row recovery-idempotent.",
        Range(0),
        0,
        alone=RECOVERIES,
        python="Also crash the recovery of this many crash states. This adds the row recovery-idempotent.",
    )
    recovery_depth: int = option(
        "--recovery-depth D",
        "How many crashes in a row interrupt recovery. With 2, bob also crashes the recovery of N states that a crash"
        " during recovery left.",
        Range(1),
        1,
        python="How many crashes in a row interrupt recovery. With 2, bob also crashes the recovery of as many states"
        " that a crash during recovery left.",
    )


OPERATIONS: Any = option("OPERATIONS", "The operations, separated by ``;`` or line breaks (docs/extend.md).")
SETUP: Any = option(
    "--setup OPERATIONS",
    "Operations that make the initial tree. It is durable before the other operations start.",
    default="",
)
EXPECTATIONS: tuple[str, ...] = option(
    "--expect EXPECTATION",
    "An expectation for every crash state. bob answers each one.",
    default=REQUIRED,
    python="Expectations for every crash state (docs/try.md). bob answers each one.",
)
MOMENT: At = option(
    "--at", "The moment of the crash: after the last operation has returned (end), or any moment (any).", default=At.END
)
FINISHES: tuple[str, ...] = option(
    "--finish FINISH",
    "The end of the workload: natural [SECONDS], sync, fsync PATH.",
    words="natural; an fsync of the changed directories; fsync /",
)
WITNESSES: int = option(
    "--witnesses N", "Maximum counterexamples shown and kept per expectation.", Range(1), MOST_WITNESSES
)
PROGRAM: str = option(
    "PROGRAM", "The name of a program that bob ships, or a folder with app.toml and scripts.", values.PROGRAM
)
MODEL_NAME: str = option("MODEL", "", values.MODEL)
MODELS: tuple[str, ...] = option(
    "--model MODEL",
    "Also check against this model: built-in (ext4-o), shipped (ext4-ordered), a file, or all. Without --fs, bob checks"
    " only the models.",
    values.one_of(lambda: [*values.model_names(), values.ALL]),
    python="Also check the program's calls against these models: built-in or shipped ones by name, files, or ``all``."
    " Without ``fs``, bob checks only the models.",
)
CHECKS: CheckPlace = option(
    "--checks",
    "Where the checker looks at trees of models: on the host in a sandbox, in guests, or on the host if possible"
    " (docs/apps.md).",
    default=CheckPlace.AUTO,
    setting="checks",
)
CLUSTER_CHECKS: CheckPlace = option(
    "--checks",
    "Where bob starts the cluster for a check: on the host in a sandbox, in guests, or on the host if possible"
    " (docs/clusters.md).",
    default=CheckPlace.AUTO,
    setting="checks",
)
PACES: tuple[Pace, ...] = option(
    "--pace",
    "The pace of the workload (docs/apps.md).",
    words="each that makes a difference; for bob app check: undisturbed",
    python="The paces of the workload (docs/apps.md). Default: each that makes a difference on the file system.",
)

# The exploration


@group
class StateExploration:
    """How many crash states of a recording to explore, and what bob assumes about the disk. ``atomic_write`` is in
    bytes."""

    budget: int = option(
        "--budget N",
        "About this many mounts per workload. Crash states whose outcome bob predicts need none.",
        Range(1),
        DEFAULT_BUDGET,
        setting="budget",
    )
    audit: float = option(
        "--audit RATE",
        "The share of predicted outcomes that bob verifies by extra mounts; at least three of each kind.",
        Range(0, 1),
        DEFAULT_AUDIT,
    )
    seed: int = option("--seed N", "Seed of the random crash states.", default=1)
    write_cache: str = option(
        "--write-cache",
        "The disk's cache. " + "; ".join(f"{cache.name}: {cache.promise}" for cache in CACHES.values()) + ".",
        Choice(tuple(CACHES)),
        VOLATILE.name,
    )
    atomic_write: int = option(
        "--atomic-write",
        "Bytes that the disk writes atomically.",
        Choice(("8", "512", "4096", "16384")),
        SECTOR_BYTES,
        python="Bytes that the disk writes atomically: a power of two, at least 8.",
    )

    @property
    def model(self) -> DeviceModel:
        """The disk that bob assumes, with its cache and its atomic writes. Raise UsageError for values that no disk can
        have."""
        return _disk(self, Completion.PROMPT)


@group
class Exploration(StateExploration):
    """How much to explore, and what bob assumes about the disk, if bob itself makes the recording."""

    completion: Completion = option(
        "--completion",
        "When the recorded disk completes a write: at once (prompt); or as late as possible, the youngest or the oldest"
        " of several writes first.",
        default=DEFAULT_COMPLETION,
    )

    @property
    def model(self) -> DeviceModel:
        """The disk that bob assumes, which completes writes as asked. Raise UsageError for values that no disk can
        have."""
        return _disk(self, self.completion)


def _disk(exploration: StateExploration, completion: Completion) -> DeviceModel:
    name = exploration.write_cache
    if name not in CACHES:
        raise UsageError(f"unknown write cache {name!r}", hint=meant(name, CACHES))
    return DeviceModel(CACHES[name], exploration.atomic_write, completion)


@group
class ClusterExploration(Exploration):
    """How much to explore of a program that is a cluster of nodes. Its checks are slow, so there are few."""

    budget: int = option(
        "--budget N",
        "At most about this many checks. Each starts the cluster.",
        Range(1),
        CLUSTER_BUDGET,
    )
    cut: CutKind = option(
        "--cut",
        "When each node crashes: at any moments that the messages between the nodes allow, or all at one instant.",
        default=CutKind.ANY,
    )
    every: bool = option("--every", "Also check what the rules in cluster.toml set aside.")


# Guests

IMAGE: Any = option(
    "--image", "The guest image, which determines the kernel.", values.GUEST_IMAGE, DEFAULT_IMAGE, setting="image"
)
OTHER_IMAGE: str | None = option(
    "--image",
    "The guest image, instead of the witness's. Its kernel must be of the same series.",
    values.known("guest image", values.image_names),
)
ANY_KERNEL: bool = option("--any-kernel", "Accept a kernel other than the witness's.")
CONNECT: str | None = option(
    "--connect URI", "Run guests on this libvirt connection (default: bob's own, without a daemon).", renewable=True
)
JOBS: int | None = option(
    "--jobs N",
    "Number of parallel guests, at most two per processor.",
    Range(1),
    words="one per processor, as memory allows",
    setting="jobs",
    renewable=True,
)
KERNEL_TREE: Path | None = option(
    "--kernel-tree DIR",
    "The kernel and modules that `make` built in DIR, instead of the image's.",
    paths.EXISTING_FOLDER,
)
GUEST: str | None = option(
    "--guest ADDRESS",
    "Your own machine, instead of guests that bob boots: ssh://[USER@]HOST[:PORT], or libvirt:[USER@]DOMAIN of the"
    " libvirt at --connect (docs/machines.md).",
)
SCHEDULER: str | None = option(
    "--scheduler ADDRESS",
    "Work on the Dask cluster of this scheduler: its address, e.g. tcp://server:8786, or the file that it wrote."
    " Then --jobs is the number of guests per parcel, 1 by default (docs/machines.md).",
    renewable=True,
)


@group
class GuestOptions:
    """The kernel of the guests, and the place where they run."""

    kernel: Path | None = option(
        "--kernel BZIMAGE",
        "Your own kernel, instead of the image's; needs --modules.",
        paths.EXISTING_FILE,
        None,
    )
    modules: Path | None = option(
        "--modules DIR",
        "The modules of --kernel: lib/modules/RELEASE, or a folder that contains it.",
        paths.EXISTING_FOLDER,
        None,
    )
    kernel_tree: Path | None = KERNEL_TREE
    connect: str | None = CONNECT
    jobs: int | None = JOBS

    def host(self, scheduler: str | None = None) -> Host:
        """Return the place where the guests run: this host, a libvirt, or a cluster. ``scheduler`` names the Dask
        scheduler of the cluster: its address, or the file that it wrote. Raise UsageError if it does not answer."""
        from bob.run.scheduler import reached

        return Host(self.connect, self.jobs, None if scheduler is None else reached(scheduler))


# Results

RUN: Path = option("RUN", "A run directory.", paths.EXISTING_FOLDER)
RUNS: tuple[Path, ...] = option("RUN...", "", paths.EXISTING_FOLDER)
OUT: Path | None = option("--out DIR", "The run directory.", paths.NEW_FOLDER, words="a new one in bob-runs")
RESUME: Path | None = option(
    "--resume RUN",
    "Resume a run that was stopped or is incomplete. bob keeps finished work.",
    paths.EXISTING_FOLDER,
    renewable=True,
)
SHARD: tuple[int, int] = option(
    "--shard",
    "Do only part K of N, in a separate run. `bob merge` combines the parts.",
    values.SHARD,
    WHOLE,
    words="all",
)
JSON: Path | None = option(
    "--json FILE", "Write the result as JSON into FILE; - is stdout.", paths.OUTPUT, renewable=True
)
JUNIT: Path | None = option(
    "--junit FILE",
    "Write the result as JUnit XML into FILE, for a CI (docs/results.md).",
    paths.NEW_FILE,
    renewable=True,
)
KTAP: Path | None = option(
    "--ktap FILE",
    "Write the result as KTAP into FILE, for a dashboard of kernel tests (docs/results.md).",
    paths.NEW_FILE,
    renewable=True,
)
QUIET: bool = option("--quiet", "Show no progress.", renewable=True)


@group
class ProgramRunOptions:
    """Options for a program under test: how bob records it and tries its crash states, and where the result goes."""

    image: str = IMAGE
    guests: GuestOptions
    exploration: Exploration
    json_file: Path | None = JSON
    quiet: bool = QUIET


@group
class CiFiles:
    """The files that a CI reads (None: bob does not write it)."""

    junit_file: Path | None = JUNIT
    ktap_file: Path | None = KTAP


@group
class Delivery:
    """The places where bob writes a run and its result."""

    out: Path | None = OUT
    json_file: Path | None = JSON
    ci_files: CiFiles
    quiet: bool = QUIET
