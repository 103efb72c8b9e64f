"""``bob merge``: joins runs that were made apart, such as the shards of one run, into one run."""

from pathlib import Path

from bob.cli.ci import finish
from bob.cli.commands import command
from bob.errors import Exit
from bob.options import option
from bob.run import option_table as table
from bob.run.option_paths import NEW_FOLDER


@command()
def merge(
    out: Path = option("OUT", "", NEW_FOLDER),
    runs: tuple[Path, ...] = table.RUNS,
    *,
    json_file: Path | None = table.JSON,
    ci_files: table.CiFiles,
) -> Exit:
    """Merge the runs RUN... into the new run directory OUT, and print the table.

    The runs are the shards of one run (--shard K/N of bob matrix, search and app), or probes and matrices of different
    configurations. They must agree in their questions, kernel, image and QEMU. bob leaves them unchanged. `bob matrix
    --resume OUT` continues a merged matrix.

    \b
    Examples:
      bob matrix --set osdi14 --shard 1/4 --out part-1
      bob merge whole part-1 part-2 part-3 part-4
      bob merge table bob-runs/ext4 bob-runs/xfs

    \b
    Exit codes:
      0   every cell has a verdict, or a program is safe
      1   a program is vulnerable
      2   the runs do not go together
      3   some cell is unknown
      9   a RUN is not a run directory, or is not done
    """
    from bob.judge.merging import merge as merged
    from bob.store.run_directory import new_identity

    result = merged(out, runs, new_identity())
    return finish(result, out, json_file, ci_files, is_wrong=not result.is_table)
