"""``bob trace import``: explores the crash states of a drive of a virtual machine, from the log that QEMU wrote."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from bob.cli.ci import finish
from bob.cli.commands import command
from bob.cli.display import watching
from bob.cli.logs import LOG, opened_log
from bob.cli.run_directories import telling_what_is_kept
from bob.errors import Exit, UsageError
from bob.guest.capacity import LARGEST_DEVICE_MIB
from bob.options import Range, option
from bob.run import option_table as table
from bob.run.guest_images import asked_images
from bob.run.option_paths import EXISTING_FILE
from bob.run.requests import request, trial_of_import
from bob.subject import configuration
from bob.text import plural
from bob.trace.outside import Outside, extent_in, imported


@command("import")
def import_(
    log: Path = LOG,
    *,
    base: Path = option("--base IMAGE", "The drive before the session: a raw image.", EXISTING_FILE),
    final: Path | None = option(
        "--final IMAGE", "The drive after the session. bob checks that the replayed log gives it.", EXISTING_FILE
    ),
    fs: str = table.FILE_SYSTEM,
    mount_options: str = option("--mount-opts OPTIONS", "Mount options, e.g. data=ordered.", default=""),
    offset: int = option("--offset BYTES", "The first byte of the file system on the drive.", Range(0), 0),
    size: int | None = option("--size BYTES", "Length of the file system.", Range(1), words="all of the rest"),
    expect: tuple[str, ...] = option(
        "--expect EXPECTATION", "An expectation for every crash state. bob answers each one.", words="mounts"
    ),
    first: int = option("--from N", "Crashes come from entry N of the log on (from 0).", Range(0), 0),
    stop: int | None = option("--until N", "Crashes come before entry N.", Range(0), words="the end of the log"),
    witnesses: int = table.WITNESSES,
    image: str = table.IMAGE,
    guests: table.GuestOptions,
    guest: str | None = table.GUEST,
    exploration: table.StateExploration,
    delivery: table.Delivery,
) -> Exit:
    """Explore the crash states of a drive that QEMU logged in LOG, whatever ran in its guest.

    QEMU's driver blklogwrites writes LOG. Copy the drive before the session; it is --base. bob's own guest then mounts
    the crash states, as a boot would, and checks each one against every --expect. The expectations are those of `bob
    try`, without old, new and opN, since bob knows no operations.

    LOG does not say when a write was submitted, or a flush. So bob explores fewer states than the drive may leave, and
    none that it cannot leave (docs/try.md).

    \b
    Example:
      cp disk.img base.img
      qemu-system-x86_64 ... -device virtio-blk-pci,drive=logged \\
        -blockdev driver=file,filename=disk.img,node-name=disk \\
        -blockdev driver=file,filename=disk.log,node-name=log \\
        -blockdev driver=blklogwrites,file=disk,log=log,node-name=logged
      bob trace import disk.log --base base.img --final disk.img --fs ext4 --expect mounts
      bob trace import disk.log --base base.img --fs xfs --from 200 --expect 'exists /mail/new/1'
    """
    part = extent_in(base, offset, size)
    if part.padded > LARGEST_DEVICE_MIB << 20:
        raise UsageError(
            f"the drive has {part.padded >> 20:,} MiB: a guest holds it in memory, at most {LARGEST_DEVICE_MIB} MiB",
            hint="--offset and --size name a partition of the drive",
        )
    made = configuration(fs, "", mount_options, part.padded)
    made = replace(made, fs=replace(made.fs, note="", smallest=0))  # both are about bob's mkfs
    asked = request(made, exploration, image, guests.host())
    trial = trial_of_import(expect or ("mounts",), witnesses, asked)
    with closing(opened_log(log, past_count=False)) as reader:
        needs_flush = asked.model.write_cache.needs_flush
        outside = imported(reader, base, part, first=first, stop=stop, final=final, needs_flush=needs_flush)

    from bob.run.prober import try_import

    with telling_what_is_kept("trace import", delivery.out, resumes=False), watching(quiet=delivery.quiet) as progress:
        progress.step(_counted(outside))
        [image] = asked_images((image,), guests, [made.fs], guest=guest, progress=progress.step)
        about = {"log": str(log), "entries": outside.entries, "from": first, "until": stop}
        about["checked"] = outside.is_checked
        trial = replace(trial, request=replace(trial.request, image=image))
        result, run = try_import(trial, outside, about, delivery.out, progress)
    code = finish(result, run, delivery.json_file, delivery.ci_files)
    return Exit.DIFFERENT if result.subjects[0].falls else code


def _counted(outside: Outside) -> str:
    writes, flushes = plural(outside.writes, "write"), plural(outside.flushes, "flush", "flushes")
    ignored = f", {plural(outside.discards, 'discard')} ignored" if outside.discards else ""
    unchecked = "" if outside.is_checked else "; nothing checks that they are all (--final)"
    return f"the log has {writes} and {flushes}{ignored}{unchecked}"
