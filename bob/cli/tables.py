"""Runs that make a table of persistence properties, on one kernel or several. If there are several kernels, bob also
shows the changes from one kernel to the next."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from bob.answer.result import Result
from bob.catalogue.request import Host, ProbeRequest
from bob.cli.ci import EXPECTED, check_expected, conclude
from bob.cli.display import watching
from bob.cli.output import deliver, document, present
from bob.cli.run_directories import telling_what_is_kept
from bob.errors import Exit
from bob.guest.capacity import check_device
from bob.options import group
from bob.progress import Progress
from bob.report.columns import columns_of
from bob.report.comparison.compare import compare
from bob.report.comparison.sides import Side, run_side
from bob.report.comparison.terminal import print_comparison
from bob.report.marks import print_overview
from bob.report.nearby import nearby
from bob.report.table import print_result
from bob.run import option_table as table
from bob.run.guest_images import asked_images
from bob.run.requests import request
from bob.subject import FileSystem, Subject

FinishedRun = tuple[Result, Path]  # a result, and the run directory that has it
Probing = Callable[[ProbeRequest, Path | None, Progress], FinishedRun]


@group
class TableOptions:
    """The options of the commands that make a table."""

    questions: table.Questions
    images: tuple[str, ...] = table.IMAGE
    guests: table.GuestOptions
    guest: str | None = table.GUEST
    exploration: table.Exploration
    delivery: table.Delivery
    resume: Path | None = table.RESUME
    expected: Side | None = EXPECTED


def make_table(
    verb: str,
    options: TableOptions,
    configurations: Sequence[Subject],
    probe: Probing,
    resume: Callable[[Path, Host, Progress], FinishedRun],
    *,
    systems: Sequence[FileSystem] = (),
    scheduler: str | None = None,
) -> Exit:
    """Probe ``configurations`` on each kernel in turn. If the user gave --resume, call ``resume`` instead. Print the
    table, and the changes between kernels. ``verb`` is the name of the command, such as "probe".

    bob calls ``probe`` once for each kernel. The request in this call names only the first configuration; ``probe``
    must add the others itself. Each kernel must have the modules and packages that ``systems`` need."""
    delivery, guests = options.delivery, options.guests

    def ask(configuration: Subject, image: str) -> ProbeRequest:
        return request(configuration, options.exploration, image, guests.host(scheduler), options.questions)

    if options.resume is not None:
        with telling_what_is_kept(verb, options.resume), watching(quiet=delivery.quiet) as progress:
            done = [resume(options.resume, guests.host(scheduler), progress)]
        deliver(*done[0], delivery.json_file)
        return conclude(done, delivery.json_file, delivery.ci_files, options.expected)
    for one in configurations:
        check_device(one)
    check_expected(options.expected, (ask(one, options.images[0]) for one in configurations))
    with watching(quiet=delivery.quiet) as progress:
        images = asked_images(
            options.images,
            guests,
            systems,
            completion=options.exploration.completion,
            guest=options.guest,
            scheduler=scheduler,
            recovery_crashes=options.questions.recovery_crashes,
            progress=progress.step,
        )
        wanted = [ask(configurations[0], image) for image in images]
        if len(images) > 1:
            done = _on_kernels(verb, wanted, delivery.out, probe, progress, systems)
        else:
            with telling_what_is_kept(verb, delivery.out):
                done = [probe(wanted[0], delivery.out, progress)]
    if len(images) > 1:
        documents = [document(*one) for one in done]
        present(delivery.json_file, documents, lambda screen: _print(screen, images, done))
    else:
        deliver(*done[0], delivery.json_file)
    return conclude(done, delivery.json_file, delivery.ci_files, options.expected)


def _on_kernels(
    verb: str,
    wanted: Sequence[ProbeRequest],
    out: Path | None,
    probe: Probing,
    progress: Progress,
    systems: Sequence[FileSystem],
) -> list[FinishedRun]:
    """Probe on each image that ``wanted`` names. Each image has a run directory with its name in the folder ``out``
    (None: a new folder). Before the first probe, build all images and check their kernels, unless the guests run on a
    cluster."""
    from bob.image import check_kernel, check_subject, ensure
    from bob.store.run_directory import RUNS, check_runs, new_identity

    check_runs(out)
    within = out or RUNS / new_identity()
    for one in wanted if wanted[0].host.scheduler is None else ():
        built = ensure(one.image, progress.step)
        check_kernel(built)
        for fs in systems:
            check_subject(built, (fs.module,), (fs.package,))
        check_subject(built, one.configuration.modules, one.configuration.packages)
    done = []
    for one in wanted:
        progress.step(f"guest image {one.image}")
        with telling_what_is_kept(verb, within / one.image):
            done.append(probe(one, within / one.image, progress))
    return done


def _print(screen: Console, images: Sequence[str], done: Sequence[FinishedRun]) -> None:
    if all(len(result.subjects) == 1 for result, _run in done):
        print_overview(screen, columns_of(done))
        screen.print()
        for result, run in done:
            screen.print(f"{result.environment.kernel}: bob show {nearby(run)}", style="bob.dim", soft_wrap=True)
    else:  # side by side, the tables would be too wide
        for result, run in done:
            print_result(screen, result, run)
            screen.print()
    sides = [run_side(image, *one) for image, one in zip(images, done, strict=True)]
    for before, after in itertools.pairwise(sides):
        comparison = compare(before, after)
        if comparison.compared:
            screen.print()
            print_comparison(screen, comparison)
