"""``bob judge``: judges a run again from its kept files."""

from __future__ import annotations

from pathlib import Path

from bob.cli.ci import finish
from bob.cli.commands import command
from bob.cli.display import watching
from bob.errors import Exit
from bob.run import option_table as table


@command()
def judge(
    run: Path = table.RUN,
    json_file: Path | None = table.JSON,
    junit_file: Path | None = table.JUNIT,
    quiet: bool = table.QUIET,
) -> Exit:
    """Judge the run in the directory RUN again, without a guest.

    Takes the recordings and observations that the run kept, and replaces its result and its witnesses. For a run that
    was interrupted: what is not observed counts as unknown. For a run of an earlier bob: the verdicts of this one.

    Where only the result and the witnesses are left, as in reports/reference, each × says its evidence anew, from what
    its witness keeps of the tree that was found.

    \b
    Examples:
      bob judge bob-runs/20261121T230021-1f2e3d
      bob judge reports/reference/osdi14-linux-6.1
      bob judge --json judged.json bob-runs/20261121T230021-1f2e3d

    \b
    Exit codes:
      0   every cell has a verdict
      3   some cell is unknown
      8   what the witness of a × keeps does not break its row, by this bob; nothing is changed
      9   RUN is no run directory, or lacks something that the run should have kept
    """
    from bob.judge.again import judge_again
    from bob.judge.restated import is_reference, restate
    from bob.report.saved import load_table

    with watching(quiet=quiet) as progress:
        if is_reference(run):
            restate(run, progress.step)
            result = load_table(run).result
        else:
            result = judge_again(run, progress.step)
    return finish(result, run, json_file, junit_file, is_wrong=False)
