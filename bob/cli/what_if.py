"""``bob apm what-if``: a model that differs from another one by some clauses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bob.cli.commands import Command
from bob.cli.display import watching
from bob.cli.options import takes_options
from bob.cli.output import console, is_stdout, write_json
from bob.cli.run_directories import check_out
from bob.errors import Exit
from bob.options import option
from bob.program.folder import named, shipped_programs
from bob.program.program import Program
from bob.run import option_table as table
from bob.run.option_values import ALL, NEW_FILE, PROGRAM

if TYPE_CHECKING:
    from bob.apm.listing import ProgramChange
    from bob.judge.modelled import Change


class WithSigns(Command):
    """A command of which an argument may begin with a ``-`` and be no option: one of several words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's own, of what is :meth:`shielded`."""
        return super().parse_args(ctx, self.shielded(args))

    @staticmethod
    def shielded(args: list[str]) -> list[str]:
        """The arguments, with a space before those that are no option: that makes no difference to a clause."""
        return [f" {one}" if one.startswith("-") and " " in one else one for one in args]


@click.command("what-if", cls=WithSigns)
@takes_options
def what_if_(
    model: str = table.MODEL_NAME,
    changes: tuple[str, ...] = option("CHANGE...", ""),
    *,
    out: Path | None = option("--out FILE", "The model.", NEW_FILE, words="apm/MODEL-what-if.json"),
    programs: tuple[str, ...] = option(
        "--app PROGRAM", "Hold this program against both models. With all, each one that bob ships.", PROGRAM
    ),
    image: str = table.IMAGE,
    guests: table.GuestOptions,
    exploration: table.Exploration,
    json_file: Path | None = table.JSON,
    quiet: bool = table.QUIET,
) -> Exit:
    """Change MODEL by clauses, write it as a model file, and say what is different.

    CHANGE is a clause with a sign: + where the new model promises it, - where it does not. In place of a word may stand
    any, several with | between them, or a part with a *. Some changes have plain words, with a - for the opposite:
    'fsync persists only its file', 'safe rename', 'safe file flush', 'atomic contents', 'atomic appends', 'directory
    operations in order', 'everything in order'.

    With --app, programs are recorded in a guest and held against both models (see `bob app run --help`): bob tells
    which vulnerabilities the change adds, and which it mends. The other options are about that.

    \b
    Examples:
      bob apm what-if ext3-j 'fsync persists only its file'
      bob apm what-if ext4-o '-safe rename' --out no-safe-rename.json --app replace-rename
      bob apm what-if xfs '+ordered append any same-file' '-durable fsync-file other-*'

    \b
    Exit codes:
      0   the model was written, and it harms no program more
      1   the change adds a vulnerability to a program
      2   a change is none, or changes nothing
      3   of a program it is not known
      4+  something is missing or went wrong, see `bob --help`
    """
    from bob.apm.listing import print_what_if, what_if_document
    from bob.apm.model import save
    from bob.apm.named import named_model
    from bob.apm.what_if import what_if
    from bob.report.programs import print_change
    from bob.store.run_directory import RUNS

    before = named_model(model)
    name = out.stem if out is not None else f"{before.name}-what-if"
    found = what_if(before, [change.strip() for change in changes], name)
    tried = _named_programs(programs)
    if tried:
        check_out(None, RUNS)
    path = out or Path("apm") / f"{name}.json"
    save(found.after, path)
    if not is_stdout(json_file):
        print_what_if(console(), found, path)
    answers = []
    for program in tried:
        from bob.run.model_change import model_change  # libvirt and paramiko take a while to load

        with watching(quiet=quiet) as progress:
            answers.append(model_change(program, (found.before, found.after), exploration, image, guests, progress))
        if not is_stdout(json_file):
            console().print()
            print_change(console(), answers[-1])
    if json_file is not None:
        write_json(json_file, what_if_document(found, path, [_row(one) for one in answers]))
    if any(answer.added for answer in answers):
        return Exit.DIFFERENT
    return Exit.UNKNOWN_CELLS if any(answer.is_unknown for answer in answers) else Exit.DONE


def _row(found: Change) -> ProgramChange:
    from bob.apm.listing import ProgramChange
    from bob.judge.programs import SAFETY

    sides = found.before, found.after
    evidence = (tuple(one.evidence for one in several) for several in (found.added, found.mended, found.kept))
    safety = [SAFETY[side.answer.verdict] for side in sides]
    is_all = [side.model is not None and side.model.is_all for side in sides]
    reason = found.before.answer.reason or found.after.answer.reason
    return ProgramChange(found.program, (safety[0], safety[1]), reason, (is_all[0], is_all[1]), *evidence)


def _named_programs(wanted: Sequence[str]) -> list[Program]:
    """The programs of these names, each once; :data:`ALL` is each one that bob ships."""
    names = [name for one in wanted for name in (shipped_programs() if one == ALL else (one,))]
    return [named(name) for name in dict.fromkeys(names)]
