"""``bob judge``: gives a run new verdicts, from the recordings and observations in its run directory."""

from pathlib import Path

from bob.cli.ci import finish
from bob.cli.commands import command
from bob.cli.display import watching
from bob.errors import Exit
from bob.run import option_table as table


@command()
def judge(
    run: Path = table.RUN,
    *,
    json_file: Path | None = table.JSON,
    ci_files: table.CiFiles,
    quiet: bool = table.QUIET,
) -> Exit:
    """Judge the run in the directory RUN again, without a guest.

    bob reads the kept recordings and observations, and replaces the run's result and witnesses. In an interrupted run,
    workloads that were not observed count as unknown. A run of an earlier bob gets the verdicts of this one.

    If RUN has only the result and the witnesses, as in reports/reference, bob rewrites the evidence of each × from the
    files that its witness keeps.

    \b
    Examples:
      bob judge bob-runs/20261121T230021-1f2e3d
      bob judge reports/reference/osdi14-linux-6.1
      bob judge --json judged.json bob-runs/20261121T230021-1f2e3d

    \b
    Exit codes:
      0   every cell has a verdict
      3   some cell is unknown
      8   this bob finds no violation in a witness; nothing is changed
      9   RUN is not a run directory, or is incomplete
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
    return finish(result, run, json_file, ci_files, is_wrong=False)
