"""What every verb that probes is asked in the same way: how deep to look, where to keep it, what to go on with."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from bob.catalogue.probe_files import Probe, load
from bob.catalogue.sets import Rows
from bob.cli.ci import expect_option, junit_option
from bob.cli.ending import Interrupted, is_interrupt
from bob.cli.options import (
    RUN,
    Files,
    Known,
    NewFolder,
    ParamType,
    Size,
    connect_option,
    image_names,
    json_option,
    quiet_option,
)
from bob.crash.caches import CACHES, VOLATILE
from bob.errors import UsageError
from bob.request import DEFAULT_COMPLETION, DEFAULT_IMAGE, Host, ProbeRequest
from bob.run.interrupts import Begun
from bob.run.requests import ALL, checked, device_model, property_names
from bob.store.new_folder import check_new_folder
from bob.store.run_directory import instead_of_resuming
from bob.subject import DEFAULT_AUDIT, DEFAULT_BUDGET, Configuration
from bob.trace.completion import Completion

Command = TypeVar("Command", bound=Callable[..., Any])

RECOVERIES = 40
"""So many recoveries are crashed by default: a minute or two for a configuration."""
ATOMIC_WRITES = ("8", "512", "4096", "16384")
_WITH_RESUME = {"resume", "connect", "jobs", "scheduler", "json_file", "junit_file", "expected", "quiet"}
"""What may be said anew when a run is gone on with."""


class PropertyName(ParamType):
    """A property among the rows that are asked for, or the word for all of them; it is looked up with these."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name itself."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin so."""
        names = (*property_names(Rows(ctx.params.get("rows") or Rows.TABLE1)), ALL)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class OwnProbe(Files):
    """A probe file of the user's, read; mistakes in it are told before anything starts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Probe:
        """The probe in the file."""
        return value if isinstance(value, Probe) else load(Path(value))


property_option = click.option(
    "--property",
    "properties",
    type=PropertyName(),
    multiple=True,
    help="Ask only this property, of all workloads that it can be asked of; may be repeated. [default: all of them, or"
    " those of --probe only]",
)
rows_option = click.option(
    "--rows",
    type=click.Choice([rows.value for rows in Rows]),
    default=Rows.TABLE1.value,
    show_default=True,
    help="The properties of Table 1; or which kinds of change are persisted before which (pairs), what each call makes"
    " durable (durability), up to which size changes are whole (units).",
)
probe_option = click.option(
    "--probe",
    "probes",
    type=OwnProbe(),
    metavar="FILE",
    multiple=True,
    help="Ask the property in this probe file of your own, too; may be repeated. `--property all` has the shipped"
    " ones beside it.",
)


image_option = click.option(
    "--image",
    type=Known("guest image", image_names),
    default=DEFAULT_IMAGE,
    show_default=True,
    help="The guest image, and with it the kernel.",
)
images_option = click.option(
    "--image",
    "images",
    type=Known("guest image", image_names),
    default=(DEFAULT_IMAGE,),
    show_default=True,
    multiple=True,
    help="The guest image, and with it the kernel; may be repeated, to compare kernels.",
)
kernel_option = click.option(
    "--kernel",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="BZIMAGE",
    help="A kernel of your own, in place of the image's; needs --modules.",
)
modules_option = click.option(
    "--modules",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The modules of --kernel: lib/modules/RELEASE, or a folder that it is in.",
)
kernel_tree_option = click.option(
    "--kernel-tree",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The kernel that `make` built in DIR, with its modules, in place of the image's.",
)
guest_option = click.option(
    "--guest",
    metavar="ADDRESS",
    help="A machine of your own, ssh://[USER@]HOST[:PORT], or libvirt:[USER@]DOMAIN of the libvirt at --connect, in"
    " place of guests that bob boots (docs/machines.md).",
)


class _Jobs(click.Option):
    """An option whose help says in words what is done by default, unless bob.toml has a number."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """As click's own, with that number."""
        record, said = super().get_help_record(ctx), self.get_default(ctx, call=False)
        if record is None or not isinstance(said, int):
            return record
        return record[0], re.sub(r"\[default: [^];]*", f"[default: {said}", record[1])


jobs_option = click.option(
    "--jobs",
    cls=_Jobs,
    type=click.IntRange(min=1),
    metavar="N",
    help="Guests side by side, two per processor at most. [default: one per processor, as far as memory goes]",
)
scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Do the work on the Dask cluster whose scheduler is there, e.g. tcp://server:8786, or in the file that it"
    " wrote; --jobs are then guests of each parcel, 1 where it is not given (docs/cluster.md).",
)
resume_option = click.option(
    "--resume",
    type=RUN,
    metavar="RUN",
    help="Go on with a run that was stopped, or lost something; what is finished is not done again.",
)
out_option = click.option(
    "--out", type=NewFolder(), metavar="DIR", help="The run directory. [default: a new one in bob-runs]"
)
recoveries_option = click.option(
    "--recovery-crashes",
    type=click.IntRange(min=0),
    metavar="N",
    is_flag=False,
    flag_value=RECOVERIES,
    default=0,
    help=f"Crash the recovery of N crash states, too ({RECOVERIES} where no N is given): adds the row "
    "recovery-idempotent.",
)
_SEARCH = (
    click.option(
        "--budget",
        type=click.IntRange(min=1),
        metavar="N",
        default=DEFAULT_BUDGET,
        show_default=True,
        help="Mounts per workload, about; states that need none are free.",
    ),
    click.option(
        "--audit",
        type=click.FloatRange(0, 1),
        metavar="RATE",
        default=DEFAULT_AUDIT,
        show_default=True,
        help="The share of predicted outcomes that is checked by more mounts; at least three of each kind.",
    ),
    click.option(
        "--seed", type=int, metavar="N", default=1, show_default=True, help="Chooses the random crash states."
    ),
)
_DEVICE = (
    click.option(
        "--write-cache",
        type=click.Choice(list(CACHES)),
        default=VOLATILE.name,
        show_default=True,
        help="The disk's cache: " + "; ".join(f"{cache.name}, {cache.promise}" for cache in CACHES.values()) + ".",
    ),
    click.option(
        "--atomic-write",
        type=click.Choice(ATOMIC_WRITES),
        default="512",
        show_default=True,
        help="Bytes that the disk writes as a whole.",
    ),
    click.option(
        "--completion",
        type=click.Choice([one.value for one in Completion]),
        default=DEFAULT_COMPLETION.value,
        show_default=True,
        help="When the recorded disk tells that a write is done: at once, or as late as can be, of several the"
        " youngest or the oldest first.",
    ),
)
_PROBING = (
    rows_option,
    property_option,
    probe_option,
    images_option,
    kernel_option,
    modules_option,
    kernel_tree_option,
    guest_option,
    connect_option,
    jobs_option,
    *_SEARCH,
    recoveries_option,
    *_DEVICE,
    out_option,
    resume_option,
    json_option,
    junit_option,
    expect_option,
    quiet_option,
)
_TRYING = (
    image_option,
    kernel_option,
    modules_option,
    kernel_tree_option,
    guest_option,
    connect_option,
    *_SEARCH,
    *_DEVICE,
    out_option,
    json_option,
    junit_option,
    quiet_option,
)
_PREFLIGHT = tuple(option for option in _TRYING if option not in (guest_option, out_option, junit_option))
_CONFIGURATION = (
    click.option("--mount-opts", metavar="OPTIONS", default="", help="Mount options, e.g. data=ordered."),
    click.option("--mkfs-opts", metavar="OPTIONS", default="", help="More options for mkfs, e.g. '-O ^has_journal'."),
    click.option(
        "--device",
        type=Size(),
        default=0,
        help="Size of the probed device, e.g. 64M; 800M at most. [default: by file system]",
    ),
)


def probing_options(command: Command) -> Command:
    """The options that `bob probe` and `bob matrix` have in common."""
    return _with(command, _PROBING)


def trying_options(command: Command) -> Command:
    """The options of `bob try` that say how and where it is done."""
    return _with(command, _TRYING)


def preflight_options(command: Command) -> Command:
    """Those of them that make sense where nothing is kept."""
    return _with(command, _PREFLIGHT)


def configuration_options(command: Command) -> Command:
    """The options that make a configuration of a file system."""
    return _with(command, _CONFIGURATION)


def _with(command: Command, options: Iterable[Callable[[Command], Command]]) -> Command:
    for option in reversed(tuple(options)):
        command = option(command)
    return command


def host(asked: dict[str, Any]) -> Host:
    """Where the options want guests to run. Raises UsageError where no scheduler answers."""
    from bob.run.scheduler import reached

    said = asked.get("scheduler")
    return Host(asked["connect"], asked.get("jobs"), None if said is None else reached(said))


def request(configuration: Configuration, asked: dict[str, Any]) -> ProbeRequest:
    """What the options ask of one configuration, on the first image; :func:`bob.run.requests.checked` checks it."""
    return checked(
        ProbeRequest(
            configuration=configuration,
            properties=asked.get("properties", ()),
            probes=asked.get("probes", ()),
            image=asked["images"][0] if "images" in asked else asked["image"],
            host=host(asked),
            budget=asked["budget"],
            seed=asked["seed"],
            model=device_model(asked["write_cache"], int(asked["atomic_write"]), asked["completion"]),
            audit=asked["audit"],
            recovery_crashes=asked.get("recovery_crashes", 0),
            rows=Rows(asked.get("rows", Rows.TABLE1)),
        )
    )


def row_names(asked: ProbeRequest) -> tuple[str, ...]:
    """The properties that are asked for, and so the rows of the table."""
    return tuple(probe.property.name for probe in asked.asked)


def check_resumed(context: click.Context) -> None:
    """Raise UsageError for options that contradict --resume: the run knows what it was asked."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in _WITH_RESUME and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(
                f"{parameter.opts[0]} cannot be changed on the way",
                hint="with --resume, RUN itself says what it was asked; for other questions, start a new run",
            )


def check_out(out: Path | None, runs: Path) -> None:
    """Raise UsageError if no run directory can be made where one is wanted."""
    if out is None:
        check_new_folder(runs / "new", "--out")


@contextmanager
def telling_what_is_kept(verb: str, folder: Path | None, runs: Path, *, resumes: bool = True) -> Iterator[None]:
    """Where Ctrl-C ends the block, says how to go on with the run in ``folder`` (None: a new one in ``runs``); or,
    where the verb never ``resumes`` one, what to do with it."""
    begun = Begun(folder, runs)
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        if not is_interrupt(error):
            raise
        if (run := begun.run) is None:
            raise Interrupted from None
        if not resumes:
            raise Interrupted(f"bob {verb} cannot be resumed: {instead_of_resuming(run)}") from None
        raise Interrupted(f"what is finished is kept; `bob {verb} --resume {shlex.quote(str(run))}` goes on") from None
