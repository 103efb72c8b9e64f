"""``bob try``: a quick question about some operations, and what is expected of them after a crash."""

from __future__ import annotations

import sys
from dataclasses import replace

from bob.cli.ci import finish
from bob.cli.commands import command
from bob.cli.display import watching
from bob.cli.formats import ResultKind, check_format, check_output, format_of, write
from bob.cli.output import is_stdout
from bob.cli.run_directories import telling_what_is_kept
from bob.errors import Exit, UsageError
from bob.options import option
from bob.report.saved import Saved
from bob.run import option_table as table
from bob.run.guest_images import asked_images
from bob.run.option_paths import DESTINATION, Destination
from bob.run.requests import PartLabels, QuickQuestion, request
from bob.run.requests import trial as read
from bob.workload.operations import At

_PARTS = PartLabels("--setup", "OPERATIONS", "--finish", "--expect")


@command("try")
def try_(
    operations: tuple[str, ...] = table.OPERATIONS,
    *,
    fs: str = table.FILE_SYSTEM,
    options: table.FileSystemOptions,
    setup: tuple[str, ...] = table.SETUP,
    expect: tuple[str, ...] = table.EXPECTATIONS,
    at: At = table.MOMENT,
    finishes: tuple[str, ...] = table.FINISHES,
    witnesses: int = table.WITNESSES,
    output: Destination | None = option(
        "--output FILE|DIR/",
        "Write the answers as a page, too: FILE.html stands alone; into DIR/, with a page for each witness.",
        DESTINATION,
    ),
    image: str = table.IMAGE,
    guests: table.GuestOptions,
    guest: str | None = table.GUEST,
    exploration: table.Exploration,
    delivery: table.Delivery,
) -> Exit:
    """Ask what a crash may leave of OPERATIONS.

    Performs them on the file system in a guest, after those of --setup, explores the legal crash states, and holds
    each of them against what you expect. The answer is in how many of them it holds, or the different ways in which it
    breaks, each with a witness. Operations are separated by ; or stand on a line each; - reads them from standard
    input.

    They are recorded once for each --finish, and all recordings are explored, each with the whole --budget. An
    expectation holds where it holds in all of them.

    An expectation is made of tests, joined by not, and, or, implies (in this order), and brackets:

    \b
      exists /a               the name is there          absent /a    it is not
      size /a >= 4K           the file has this size     same /a /b   two names, one inode
      content /a = new        its bytes are those after the last operation; old: before the first
      content /a = op2        what operation 2 wrote is there; also zeros, empty, and a range: /a[0:512]
      content /a prefix new   its bytes are the first of those, perhaps none
      mounts                  the kernel mounts the file system, without a repair

    \b
    Examples:
      bob try --fs ext4 'write /a 0 4096; fsync /a' --expect 'content /a = new'
      bob try --fs xfs --setup 'write /f 0 4K' 'write /g 0 8K; rename /g /f' \\
        --expect 'content /f = old or content /f = new'
      bob try --fs btrfs --setup 'create /a' --expect 'exists /d' \\
        'mkdir /d; write /a 0 4096; fsync /a; link /a /d/b; fsync /'
      bob try --fs ext4 --at any - --expect 'exists /b implies absent /a' < operations.txt
      bob try --fs f2fs 'create /a; rename /a /b' --expect 'exists /b' --output answers.html

    \b
    Exit codes:
      0   every expectation holds in all crash states that were explored
      1   one of them can break, or the kernel panicked or hung while it was recorded
      2   the command line asks for something that cannot be; nothing was started
      3   none breaks, but of one it is not known: a guest was lost, or a control failed
      4+  something is missing or went wrong, see `bob --help`
    """
    made = options.of(fs)
    wanted = format_of(output)
    check_format(ResultKind.QUESTION, wanted)
    check_output(wanted, output)
    if output is not None and is_stdout(output.path):
        raise UsageError("the answers are printed anyway", hint="name a file: --output answers.html")
    question = QuickQuestion(
        _text(operations), expect, "\n".join(setup), finishes, at, most_witnesses=witnesses, parts=_PARTS
    )
    trial = read(question, request(made, exploration, image, guests.host()))

    from bob.run.prober import try_out

    with telling_what_is_kept("try", delivery.out, resumes=False), watching(quiet=delivery.quiet) as progress:
        [image] = asked_images(
            (image,), guests, [made.fs], completion=exploration.completion, guest=guest, progress=progress.step
        )
        result, run = try_out(replace(trial, request=replace(trial.request, image=image)), delivery.out, progress)
    code = finish(result, run, delivery.json_file, delivery.junit_file)
    if output is not None:
        write(ResultKind.QUESTION, wanted, [Saved(result, run)], output.path)
    return Exit.DIFFERENT if result.subjects[0].falls else code


def _text(operations: tuple[str, ...]) -> str:
    if len(operations) > 1:
        hint = "quote them: 'create /a; fsync /a'"
        raise UsageError(f"the operations are one argument, here are {len(operations)}", hint=hint)
    return sys.stdin.read() if operations == ("-",) else operations[0]
