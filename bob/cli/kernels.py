"""The same questions to several kernels: a run on each image, their tables, and what changed from one to the next."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from bob.cli.ci import conclude
from bob.cli.display import watching
from bob.cli.output import console, is_stdout, write_json
from bob.cli.run_directories import check_out, telling_what_is_kept
from bob.errors import Exit
from bob.progress import Progress
from bob.report.comparison.compare import compare
from bob.report.comparison.sides import Side, run_side
from bob.report.comparison.terminal import print_comparison
from bob.report.nearby import nearby
from bob.report.table import print_result
from bob.result import Result, to_json
from bob.run.option_table import Kept
from bob.subject import FileSystem

Done = tuple[Result, Path]
"""A result, and the run directory behind it."""


def on_kernels(
    verb: str,
    images: Sequence[str],
    probe: Callable[[str, Path, Progress], Done],
    kept: Kept,
    expected: Side | None,
    *,
    fs: FileSystem | None = None,
    builds: bool = True,
) -> Exit:
    """Have ``probe`` probe on each image, in a run directory of its name in ``kept.out`` (None: in a new folder).

    All images are built, and it is seen that their kernels have what is needed (``fs`` too, if it is given), before
    the first of them is probed on; where it ``builds`` none, the workers of a cluster do.
    """
    from bob.image import check_file_system, check_kernel, ensure
    from bob.run.prober import RUNS, new_identity

    check_out(kept.out, RUNS)
    within = kept.out or RUNS / new_identity()
    done = []
    with watching(quiet=kept.quiet) as progress:
        for image in images if builds else ():
            built = ensure(image, progress.step)
            check_kernel(built)
            if fs is not None:
                check_file_system(built, fs.module, fs.package)
        for image in images:
            progress.step(f"on {image}")
            with telling_what_is_kept(verb, within / image, RUNS):
                done.append(probe(image, within / image, progress))
    _deliver(images, done, kept.json_file)
    return conclude(done, kept.json_file, kept.junit_file, expected)


def _deliver(images: Sequence[str], done: Sequence[Done], json_file: Path | None) -> None:
    """Write the results as an array into ``json_file``; print them and what changed unless JSON is on stdout."""
    if json_file is not None:
        write_json(json_file, [to_json(result) for result, _run in done])
    if not is_stdout(json_file):
        _print(console(), images, done)


def _print(screen: Console, images: Sequence[str], done: Sequence[Done]) -> None:
    if all(len(result.configurations) == 1 for result, _run in done):
        from bob.report.overview import print_overview  # pandas takes a while to load

        print_overview(screen, [result for result, _run in done])
        screen.print()
        for result, run in done:
            screen.print(f"{result.environment.kernel}: bob show {nearby(run)}", style="bob.dim", soft_wrap=True)
    else:  # as many columns again would be no table
        for result, run in done:
            print_result(screen, result, run)
            screen.print()
    sides = [run_side(image, *one) for image, one in zip(images, done, strict=True)]
    for before, after in itertools.pairwise(sides):
        comparison = compare(before, after)
        if comparison.compared:
            screen.print()
            print_comparison(screen, comparison)
