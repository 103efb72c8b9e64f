"""The table of options: each that several commands, or the command line and Python, have in common.

An option that one command has alone is declared there, in the same way (:mod:`bob.options`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

from bob.catalogue.probe_files import Probe
from bob.catalogue.sets import Rows
from bob.crash.caches import CACHES, VOLATILE
from bob.crash.device import DeviceModel
from bob.errors import UsageError, meant
from bob.options import Argument, Choice, Existing, Option, Range
from bob.program.pace import Pace
from bob.request import DEFAULT_COMPLETION, Host
from bob.run.option_values import (
    ALL,
    FILE_SYSTEM,
    GUEST_IMAGE,
    MODEL,
    NEW_FILE,
    NEW_FOLDER,
    OUTPUT,
    PROBE_FILE,
    PROGRAM,
    PROPERTY,
    SHARD,
    SIZE,
    image_names,
    known,
    model_names,
    one_of,
)
from bob.subject import DEFAULT_AUDIT, DEFAULT_BUDGET, Configuration, configuration
from bob.trace.completion import Completion
from bob.trace.model import SECTOR_BYTES
from bob.workload.operations import At

RECOVERIES = 40
"""So many recoveries are crashed by default: a minute or two for a configuration."""
MOST_WITNESSES = 5
"""So many ways to break an expectation are kept as witnesses by default."""
WHOLE = (1, 1)
"""The shard that is all."""
_FILE = Existing(folder=False)
_FOLDER = Existing(file=False)

# What is crashed

FileSystem: TypeAlias = Annotated[
    str, Option("--fs", "File system, e.g. ext4, or the TOML file of one of your own.", FILE_SYSTEM)
]
FileSystems: TypeAlias = tuple[FileSystem, ...]


@dataclass(frozen=True, slots=True)
class FileSystemOptions:
    """What makes a configuration of a file system; ``device`` is in bytes."""

    mount_options: Annotated[str, Option("--mount-opts", "Mount options, e.g. data=ordered.", metavar="OPTIONS")] = ""
    mkfs_options: Annotated[
        str, Option("--mkfs-opts", "More options for mkfs, e.g. '-O ^has_journal'.", metavar="OPTIONS")
    ] = ""
    device: Annotated[
        int,
        Option(
            "--device",
            "Size of the probed device, e.g. 64M; 800M at most.",
            SIZE,
            default="by file system",
            python="Size of the probed device, in bytes: whole MiB, at most 800. 0: by file system, or by program.",
        ),
    ] = 0

    def of(self, fs: str) -> Configuration:
        """Return the configuration of the file system ``fs``."""
        return configuration(fs, self.mkfs_options, self.mount_options, self.device)


# What is asked


@dataclass(frozen=True, slots=True)
class Questions:
    """Which properties a probe asks for, and of how many crash states it crashes the recovery, too."""

    rows: Annotated[
        Rows,
        Option(
            "--rows",
            "The properties of Table 1; or which kinds of change are persisted before which (pairs), what each call"
            " makes durable (durability), up to which size changes are whole (units).",
        ),
    ] = Rows.TABLE1
    properties: Annotated[
        tuple[str, ...],
        Option(
            "--property",
            "Ask only this property, of all workloads that it can be asked of.",
            PROPERTY,
            default="all of them, or those of --probe only",
            python="Ask only these properties, by name, or ``all``. Default: all, or those of ``probes`` only.",
        ),
    ] = ()
    probes: Annotated[
        tuple[Probe, ...],
        Option(
            "--probe",
            "Ask the property in this probe file of your own, too. `--property all` has the shipped ones beside it.",
            PROBE_FILE,
            "FILE",
            python="Probe files of your own, whose properties are asked, too.",
        ),
    ] = ()
    recovery_crashes: Annotated[
        int,
        Option(
            "--recovery-crashes",
            f"Crash the recovery of N crash states, too ({RECOVERIES} where no N is given): adds the row "
            "recovery-idempotent.",
            Range(0),
            "N",
            alone=RECOVERIES,
            python="Crash the recovery of so many crash states, too: adds the row recovery-idempotent.",
        ),
    ] = 0


Operations: TypeAlias = Annotated[
    str, Argument("OPERATIONS", python="What is done: separated by ``;`` or on a line each (docs/write-a-probe.md).")
]
Setup: TypeAlias = Annotated[
    str, Option("--setup", "The initial tree, durable before it all begins.", metavar="OPERATIONS")
]
Expectations: TypeAlias = Annotated[
    tuple[str, ...],
    Option(
        "--expect",
        "What is to be so after every crash. Each one is answered.",
        metavar="EXPECTATION",
        python="What is to be so after every crash (docs/try.md). Each one is answered.",
    ),
]
Moment: TypeAlias = Annotated[
    At, Option("--at", "When the crash comes: after the last operation has returned (end), or anywhere (any).")
]
Finishes: TypeAlias = Annotated[
    tuple[str, ...],
    Option(
        "--finish",
        "What comes after the operations: natural [SECONDS], sync, fsync PATH.",
        metavar="FINISH",
        default="natural; an fsync of the directories that they change; fsync /",
    ),
]
Witnesses: TypeAlias = Annotated[
    int, Option("--witnesses", "Show and keep at most so many ways to break each expectation.", Range(1), "N")
]
Program: TypeAlias = Annotated[
    str,
    Argument(
        "PROGRAM",
        PROGRAM,
        "The name of a program that bob ships, or a folder with app.toml and scripts.",
    ),
]
ModelName: TypeAlias = Annotated[str, Argument("MODEL", MODEL)]
Models: TypeAlias = Annotated[
    tuple[str, ...],
    Option(
        "--model",
        "A model: built-in (ext4-o), shipped (ext4-ordered), a file; or all. No --fs: models only.",
        one_of(lambda: [*model_names(), ALL]),
        "MODEL",
        python="Models against which the program's calls are held: built-in or shipped ones by name, files, or ``all``."
        " Without ``fs``, only they are asked.",
    ),
]
Paces: TypeAlias = Annotated[
    tuple[Pace, ...],
    Option(
        "--pace",
        "At which pace the workload runs (docs/apps.md).",
        default="each; to check: undisturbed",
        python="At which paces the workload runs (docs/apps.md). Default: each that the file system makes differ.",
    ),
]

# How it is explored


@dataclass(frozen=True, slots=True)
class Exploration:
    """How deep bob explores crash states, and which disk it assumes; ``atomic_write`` is in bytes."""

    budget: Annotated[
        int,
        Option(
            "--budget",
            "Mounts per workload, about; states that need none are free.",
            Range(1),
            "N",
            setting="budget",
        ),
    ] = DEFAULT_BUDGET
    audit: Annotated[
        float,
        Option(
            "--audit",
            "The share of predicted outcomes that is checked by more mounts; at least three of each kind.",
            Range(0, 1),
            "RATE",
        ),
    ] = DEFAULT_AUDIT
    seed: Annotated[int, Option("--seed", "Chooses the random crash states.", metavar="N")] = 1
    write_cache: Annotated[
        str,
        Option(
            "--write-cache",
            "The disk's cache: " + "; ".join(f"{cache.name}, {cache.promise}" for cache in CACHES.values()) + ".",
            Choice(tuple(CACHES)),
        ),
    ] = VOLATILE.name
    atomic_write: Annotated[
        int,
        Option(
            "--atomic-write",
            "Bytes that the disk writes as a whole.",
            Choice(("8", "512", "4096", "16384")),
            python="Bytes that the disk writes as a whole: a power of two, at least 8.",
        ),
    ] = SECTOR_BYTES
    completion: Annotated[
        Completion,
        Option(
            "--completion",
            "When the recorded disk tells that a write is done: at once, or as late as can be, of several the youngest"
            " or the oldest first.",
        ),
    ] = DEFAULT_COMPLETION

    @property
    def model(self) -> DeviceModel:
        """The disk that is assumed. Raises UsageError if there is none such."""
        if self.write_cache not in CACHES:
            raise UsageError(f"unknown write cache {self.write_cache!r}", hint=meant(self.write_cache, CACHES))
        return DeviceModel(CACHES[self.write_cache], self.atomic_write, self.completion)


# Where guests run

Image: TypeAlias = Annotated[
    str, Option("--image", "The guest image, and with it the kernel.", GUEST_IMAGE, setting="image")
]
Images: TypeAlias = tuple[Image, ...]
OtherImage: TypeAlias = Annotated[
    str | None,
    Option(
        "--image",
        "Another guest image than the witness names; its kernel must be of the same series.",
        known("guest image", image_names),
    ),
]
AnyKernel: TypeAlias = Annotated[
    bool, Option("--any-kernel", "Let the kernel be another one than that on which the witness was found.")
]
Connect: TypeAlias = Annotated[
    str | None,
    Option(
        "--connect",
        "Run guests on this libvirt connection (default: one of bob's own, no daemon).",
        metavar="URI",
        renewable=True,
    ),
]
Jobs: TypeAlias = Annotated[
    int | None,
    Option(
        "--jobs",
        "Guests side by side, two per processor at most.",
        Range(1),
        "N",
        default="one per processor, as far as memory goes",
        setting="jobs",
        renewable=True,
    ),
]
KernelTree: TypeAlias = Annotated[
    Path | None,
    Option(
        "--kernel-tree",
        "The kernel that `make` built in DIR, with its modules, in place of the image's.",
        _FOLDER,
        "DIR",
    ),
]
Guest: TypeAlias = Annotated[
    str | None,
    Option(
        "--guest",
        "A machine of your own, ssh://[USER@]HOST[:PORT], or libvirt:[USER@]DOMAIN of the libvirt at --connect, in"
        " place of guests that bob boots (docs/machines.md).",
        metavar="ADDRESS",
    ),
]
Scheduler: TypeAlias = Annotated[
    str | None,
    Option(
        "--scheduler",
        "Do the work on the Dask cluster whose scheduler is there, e.g. tcp://server:8786, or in the file that it"
        " wrote; --jobs are then guests of each parcel, 1 where it is not given (docs/cluster.md).",
        metavar="ADDRESS",
        renewable=True,
    ),
]


@dataclass(frozen=True, slots=True)
class Guests:
    """Which kernel runs in guests, and where these run."""

    kernel: Annotated[
        Path | None,
        Option("--kernel", "A kernel of your own, in place of the image's; needs --modules.", _FILE, metavar="BZIMAGE"),
    ] = None
    modules: Annotated[
        Path | None,
        Option("--modules", "The modules of --kernel: lib/modules/RELEASE, or a folder that it is in.", _FOLDER, "DIR"),
    ] = None
    kernel_tree: KernelTree = None
    connect: Connect = None
    jobs: Jobs = None

    def host(self, scheduler: str | None = None) -> Host:
        """Return where guests run. Raise UsageError if no ``scheduler`` answers."""
        from bob.run.scheduler import reached

        return Host(self.connect, self.jobs, None if scheduler is None else reached(scheduler))


# What is kept, and what is told

Run: TypeAlias = Annotated[Path, Argument("RUN", _FOLDER, "A run directory.")]
Runs: TypeAlias = Annotated[tuple[Path, ...], Argument("RUN...", _FOLDER)]
Out: TypeAlias = Annotated[
    Path | None,
    Option("--out", "The run directory.", NEW_FOLDER, "DIR", default="a new one in bob-runs"),
]
Resume: TypeAlias = Annotated[
    Path | None,
    Option(
        "--resume",
        "Go on with a run that was stopped, or lost something; what is finished is not done again.",
        _FOLDER,
        "RUN",
        renewable=True,
    ),
]
Shard: TypeAlias = Annotated[
    tuple[int, int],
    Option(
        "--shard", "Only the Kth of N parts, in a run of its own; bob merge puts them together.", SHARD, default="all"
    ),
]
Json: TypeAlias = Annotated[
    Path | None, Option("--json", "Write the result as JSON into FILE; - is stdout.", OUTPUT, "FILE", renewable=True)
]
Junit: TypeAlias = Annotated[
    Path | None,
    Option(
        "--junit", "Write the result as JUnit XML into FILE, for a CI (docs/ci.md).", NEW_FILE, "FILE", renewable=True
    ),
]
Quiet: TypeAlias = Annotated[bool, Option("--quiet", "Show no progress.", renewable=True)]
