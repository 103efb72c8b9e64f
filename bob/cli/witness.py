"""``bob witness``: explains, shrinks and exports a witness. A *witness* is a file about one crash state that breaks a
property (a × in a table)."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from bob.cli.commands import Commands
from bob.cli.display import watching
from bob.cli.output import console, is_stdout, present, whole_or_not_at_all, write_json, write_text
from bob.errors import Exit, UsageError
from bob.options import Range, option
from bob.run import option_table as table
from bob.run.option_paths import NEW_FILE, OUTPUT
from bob.run.option_values import WITNESS, WITNESSES
from bob.schema import Document, adapt
from bob.text import plural
from bob.trace.log_writer import write_log
from bob.trace.replay_log import CRASH
from bob.witness import probe_file
from bob.witness.document import WitnessSize, files_in, read
from bob.witness.keep import mount_words
from bob.witness.results import tell_results
from bob.witness.xfstests import to_case

if TYPE_CHECKING:
    from bob.run.export import ExportedLog
    from bob.run.shrink import Shrunk


class ShrunkRow(Document, frozen=True):
    """The sizes of a witness before and after bob shrank it. ``shows`` says whether the violation also shows after bob
    records the smaller workload again."""

    witness: str
    shows: bool
    before: WitnessSize
    after: WitnessSize


class ShrinkDocument(Document, frozen=True, tag_field="schema", tag="bob.shrink/1"):
    """Shrunk witnesses, as `bob witness shrink` writes them."""

    witnesses: tuple[ShrunkRow, ...]


@click.group(cls=Commands)
def witness() -> None:
    """Explain, shrink or export a witness: a file with a crash state that shows a violation."""


@witness.command()
def show(
    path: Path = option("WITNESS", "", WITNESS),
    *,
    picture: Path | None = option("--svg FILE", "Also draw the timeline.", OUTPUT),
    page: Path | None = option("--html FILE", "Also write the story as a stand-alone page.", OUTPUT),
    json_file: Path | None = table.JSON,
) -> Exit:
    """Explain WITNESS.

    bob prints what the program did, which writes the disk got and when, and which of them the crash left. Then it
    prints what the mount showed, and one sentence that sums it up. This needs no guest; `bob replay` shows the
    violation on a real kernel. --json writes the witness itself, as a separate file if it is in a bundle
    (docs/formats.md).

    \b
    Examples:
      bob witness show bob-runs/20261121T230021-1f2e3d/witnesses/append-any.json
      bob witness show --svg crash.svg append-any.json
      bob witness show --html crash.html append-any.json
      bob witness show --json - append-any.json | jq .evidence

    \b
    Exit codes:
      0   the story was printed
      8   the file is not a valid witness
    """
    from bob.report.drawing import svg
    from bob.report.story import print_story
    from bob.report.witness_page import in_link, to_html, witness_text

    found = read(path)
    if picture is not None:
        drawn = svg(found.timeline, found.operations, found.claim.role, found.evidence)
        write_text(picture, drawn + "\n", "--svg")
    if page is not None:
        write_text(page, to_html(found, path, download=in_link(witness_text(path))), "--html")
    if json_file is not None:
        write_text(json_file, witness_text(path), "--json")
    if not is_stdout(json_file):
        print_story(console(), found, f"bob replay {shlex.quote(str(path))}")
    return Exit.DONE


@witness.command()
def shrink(
    paths: tuple[Path, ...] = option("WITNESS...", "", WITNESSES),
    *,
    output: Path | None = option("--output FILE", "The file for the smaller witness; only for one WITNESS.", OUTPUT),
    in_place: bool = option("--in-place", "Replace each witness by the smaller one."),
    budget: int = option("--budget N", "About this many mounts for each attempt.", Range(1), 100),
    image: str | None = table.OTHER_IMAGE,
    connect: str | None = table.CONNECT,
    json_file: Path | None = table.JSON,
    quiet: bool = table.QUIET,
) -> Exit:
    """Make WITNESS smaller.

    bob leaves out operations and parts of the initial tree, records the rest, and keeps what still violates the
    property. Then it looks for the crash state closest to a clean crash, which leaves exactly the first writes that the
    disk was sent. For a program, bob reduces only the crash state, since it cannot leave out parts of the workload.
    This takes a guest and up to some minutes.

    For a run directory, bob shrinks all witnesses in place, except those that it shrank before. The run's result then
    has the smaller ones.

    \b
    Examples:
      bob witness shrink --output small.json append-any.json
      bob witness shrink --in-place bob-runs/20261121T230021-1f2e3d

    \b
    Exit codes:
      0   done; a witness may have kept its size
      1   a violation did not show when recorded again; its witness is unchanged
      2+  another error; `bob --help` lists the codes
    """
    # Imported only now, since libvirt and paramiko take a while to load.
    from bob.run.shrink import shrink as run_shrink

    if in_place == (output is not None):
        raise UsageError("expected either --output FILE or --in-place", hint="--in-place replaces the witness")
    if is_stdout(json_file) and is_stdout(output):
        raise UsageError("two documents cannot both go to stdout", hint="name a file with --output or with --json")
    files = files_in(paths)
    if output is not None and (len(files) > 1 or paths[0].is_dir()):
        raise UsageError("--output is for one witness", hint="name one witness, or use --in-place")
    if in_place and (bundled := [file for file in files if not file.is_file()]):
        hint = "shrink one witness with --output FILE"
        raise UsageError(f"{bundled[0]} is in a bundle, which --in-place cannot change", hint=hint)
    if in_place:
        files = [file for file in files if read(file).shrunk_from is None]
    done: list[Shrunk] = []
    try:
        with watching(quiet=quiet) as progress:
            for one in run_shrink(files, image=image, connect=connect, budget=budget, progress=progress):
                done.append(one)
                if one.document is not None:
                    write_json(output or one.path, one.document)
    finally:
        if in_place:
            for path in filter(Path.is_dir, paths):
                tell_results(path)
    rows = [adapt(ShrunkRow, one, witness=str(one.path), shows=one.document is not None) for one in done]
    present(
        json_file, ShrinkDocument(tuple(rows)), lambda screen: _print_shrunk(screen, () if is_stdout(output) else done)
    )
    return Exit.DONE if all(one.document is not None for one in done) else Exit.DIFFERENT


def _print_shrunk(screen: Console, done: Iterable[Shrunk]) -> None:
    for one in done:
        screen.print(Text(str(one.path)), soft_wrap=True)
        if one.document is None:
            screen.print(
                "  a new recording does not show the violation; the witness stays as it is", style="bob.unknown"
            )
            continue
        sizes = (
            ("operations", one.before.operations, one.after.operations),
            ("in the initial tree", one.before.setup, one.after.setup),
            ("writes off a clean prefix", one.before.departure, one.after.departure),
        )
        for name, before, after in sizes if one.before.operations else sizes[-1:]:
            screen.print(f"  {name:<26} {before} -> {after}")


@witness.command()
def export(
    path: Path = option("WITNESS", "", WITNESS),
    *,
    log_file: Path | None = option(
        "--dm-log FILE",
        "Record the workload again, and write its block log for xfstests' replay-log.",
        NEW_FILE,
    ),
    base_file: Path | None = option(
        "--base FILE",
        "With --dm-log: the file for the disk's image before the first entry. A replay starts from a copy of it.",
        NEW_FILE,
    ),
    probe: Path | None = option("--probe FILE", "Write a probe file with the same property and workload.", NEW_FILE),
    case_file: Path | None = option(
        "--xfstests FILE",
        "Write a case for xfstests, such as tests/generic/900, and its expected output into FILE.out.",
        NEW_FILE,
    ),
    image: str | None = table.OTHER_IMAGE,
    any_kernel: bool = table.ANY_KERNEL,
    connect: str | None = table.CONNECT,
    quiet: bool = table.QUIET,
) -> Exit:
    """Export WITNESS as a probe file, as a case for xfstests, or as a block log.

    With --probe, the file has the property and the workload, and `bob probe --probe FILE` checks them again. With
    --xfstests, a script runs the workload, crashes after it, and compares the files. bob says whether the script makes
    a crash state like that of the witness. Neither needs a guest.

    With --dm-log, bob records the workload again in a guest, and writes a dm-log-writes log. It has the writes in order
    of submission, the flushes at their completion, and marks at the program's progress: start, op-1-begin, op-1-end and
    so on, end. The mark `crash` is the moment of the witness's crash. A replay of the whole log onto a copy of the base
    makes the recorded disk, byte for byte.

    \b
    Examples:
      bob witness export --probe found.toml finding-1.json
      bob witness export --xfstests tests/generic/900 finding-1.json
      bob witness export --dm-log any.log --base base.img append-any.json

    \b
    Exit codes:
      0   all requested files were written
      2+  another error; `bob --help` lists the codes
    """
    golden_file = None if case_file is None else case_file.with_name(case_file.name + ".out")
    files = [file for file in (path, log_file, base_file, probe, case_file, golden_file) if file is not None]
    if len({file.resolve() for file in files}) < len(files):
        raise UsageError("the witness and the exported files must differ", hint="name another file")
    if base_file is not None and log_file is None:
        raise UsageError("--base needs --dm-log", hint="add --dm-log FILE")
    if len(files) == 1:
        raise UsageError("nothing to export", hint="give --probe FILE, --xfstests FILE or --dm-log FILE")
    if probe is not None and probe.is_file():  # people edit these
        raise UsageError(f"{probe} already exists", hint="choose another name, or remove it")
    if probe is not None:
        _write_probe(path, probe)
    if case_file is not None and golden_file is not None:
        _write_case(path, case_file, golden_file)
    if log_file is not None:
        # Imported only now, since libvirt and paramiko take a while to load.
        from bob.run.export import export as run_export

        with watching(quiet=quiet) as progress:
            done = run_export(path, image=image, any_kernel=any_kernel, connect=connect, progress=progress)
        _write_log(done, path, log_file, base_file)
    return Exit.DONE


def _write_probe(path: Path, file: Path) -> None:
    found = read(path)
    write_text(file, probe_file.to_probe(found), "--probe")
    console().print(f"wrote {file}; to probe with it:", soft_wrap=True)
    console().print(
        f"  {shlex.join(['bob', 'probe', *probe_file.options(found), '--probe', str(file)])}", soft_wrap=True
    )


def _write_case(path: Path, file: Path, golden: Path) -> None:
    case = to_case(read(path), file.name)
    write_text(file, case.script, "--xfstests")
    file.chmod(0o755)
    write_text(golden, case.golden, "--xfstests")
    console().print(f"wrote {file} and {golden}", soft_wrap=True)
    for remark in case.remarks:
        console().print(remark, soft_wrap=True)


def _write_log(done: ExportedLog, path: Path, log_file: Path, base_file: Path | None) -> None:
    with whole_or_not_at_all(log_file, "--dm-log") as file:
        write_log(file, (step.entry for step in done.steps))
    if base_file is not None:
        with whole_or_not_at_all(base_file, "--base") as file:
            done.witness.base.write(file)
    screen = console()
    for line in chain(_how_to_replay(done, log_file, base_file), _where_it_crashed(done, path)):
        screen.print(line, soft_wrap=True)


def _how_to_replay(done: ExportedLog, log_file: Path, base_file: Path | None) -> Iterator[str]:
    log, base = shlex.quote(str(log_file)), shlex.quote(str(base_file or "BASE"))
    until = ""
    if done.crash is not None:
        until = f" --end-mark {CRASH}" if done.crash.prefix is None else f" --limit {done.crash.prefix}"
    writes = sum(step.write is not None for step in done.steps)
    yield f"{log}: {_entries(len(done.steps))}, {plural(writes, 'write')}"
    if base_file is None:
        yield "A replay starts from the disk's image before the first entry; --base FILE writes it."
    yield "To replay it with xfstests' src/log-writes/replay-log, and mount the result:"
    yield f"  cp --sparse=always {base} disk.img"
    yield f"  replay-log --log {log} --replay disk.img{until}"
    yield f"  {mount_words(done.witness.configuration)} disk.img /mnt"


def _where_it_crashed(done: ExportedLog, path: Path) -> Iterator[str]:
    if done.crash is None:
        yield "The log has no mark for the crash of the witness: no new recording has its crash state."
        return
    before = [step.entry.mark for step in done.steps[: done.crash.entry] if step.entry.mark]
    yield f"The crash is entry {done.crash.entry}, the mark {CRASH}; the last mark before it is {before[-1]}."
    for entries, what in ((done.crash.lost, "lacks"), (done.crash.torn, "has only a part of")):
        if entries:
            numbers = ", ".join(map(str, entries))
            yield f"The crash state {what} {_entries(len(entries))} before it: {numbers}"
    if done.crash.prefix is None:
        yield "So no part of the log makes the crash state. The replay makes the disk with all writes before the crash."
    else:
        yield f"So the first {_entries(done.crash.prefix)} make the crash state."
    if done.crash.other:
        yield f"Sectors that differ from the witness, because of time stamps: {done.crash.other}"
    yield f"To get the image of the witness's own crash state: bob replay --keep DIR {shlex.quote(str(path))}"


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count:,} entries"
