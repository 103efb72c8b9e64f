"""``bob try``: answers a quick question about some operations: does what a user expects hold after a crash?"""

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
        "Also write the answers as a stand-alone page FILE.html, or as pages in DIR/, one for each witness.",
        DESTINATION,
    ),
    image: str = table.IMAGE,
    guests: table.GuestOptions,
    guest: str | None = table.GUEST,
    exploration: table.Exploration,
    delivery: table.Delivery,
) -> Exit:
    """Check what you expect of OPERATIONS after a crash.

    bob performs the operations of --setup and then OPERATIONS on the file system in a guest. It explores the legal
    crash states, and checks each one against every --expect. For each expectation, the answer is how many states fulfil
    it, or the different ways to break it, each with a witness. Separate the operations by ; or by line breaks. With -,
    bob reads them from standard input.

    bob makes one recording for each --finish, and explores each with the whole --budget. An expectation holds if it
    holds in all of them.

    An expectation consists of tests, joined by not, and, or, implies (in order of precedence), and parentheses:

    \b
      exists /a               the name exists            absent /a    it does not
      size /a >= 4K           compares the file's size   same /a /b   two names of one inode
      content /a = new        the content after the last operation; old: before the first
      content /a = op2        the bytes that operation 2 wrote; also zeros, empty, and a range: /a[0:512]
      content /a prefix new   a prefix of the content after the last operation, possibly empty
      mounts                  the kernel mounts the file system without a repair

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
      0   every expectation holds in all explored crash states
      1   an expectation can break, or the kernel panicked or hung during a recording
      2   invalid usage; nothing was started
      3   none breaks, but one is unknown: a guest was lost, or a control failed
      4+  another error; `bob --help` lists the codes
    """
    made = options.of(fs)
    wanted = format_of(output)
    check_format(ResultKind.QUESTION, wanted)
    check_output(wanted, output)
    if output is not None and is_stdout(output.path):
        raise UsageError("--output -: bob prints the answers anyway", hint="for example --output answers.html")
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
    code = finish(result, run, delivery.json_file, delivery.ci_files)
    if output is not None:
        write(ResultKind.QUESTION, wanted, [Saved(result, run)], output.path)
    return Exit.DIFFERENT if result.subjects[0].falls else code


def _text(operations: tuple[str, ...]) -> str:
    if len(operations) > 1:
        hint = "quote them: 'create /a; fsync /a'"
        raise UsageError(f"expected all operations in one argument, got {len(operations)} arguments", hint=hint)
    return sys.stdin.read() if operations == ("-",) else operations[0]
