"""The same questions to several kernels: a run on each image, their tables, and what changed from one to the next."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console

from bob.cli.asking import check_out, telling_what_is_kept
from bob.cli.ci import conclude
from bob.cli.display import watching
from bob.cli.output import console, is_stdout, write_json
from bob.errors import Exit, UsageError
from bob.progress import Progress
from bob.report.comparison.compare import compare
from bob.report.comparison.sides import Side, run_side
from bob.report.comparison.terminal import print_comparison
from bob.report.nearby import nearby
from bob.report.table import print_result
from bob.request import DEFAULT_IMAGE
from bob.result import Result, to_json
from bob.settings import settings
from bob.subject import FileSystem
from bob.trace.completion import Completion

Done = tuple[Result, Path]
"""A result, and the run directory behind it."""


def on_kernels(
    verb: str,
    images: Sequence[str],
    out: Path | None,
    probe: Callable[[str, Path, Progress], Done],
    json_file: Path | None,
    junit_file: Path | None,
    expected: Side | None,
    *,
    fs: FileSystem | None = None,
    builds: bool = True,
    quiet: bool,
) -> Exit:
    """Have ``probe`` probe on each image, in a run directory of the image's name in ``out`` (None: in a new folder).

    All images are built, and it is seen that their kernels have what is needed (``fs`` too, if it is given), before
    the first of them is probed on; where it ``builds`` none, the workers of a cluster do.
    """
    from bob.image import check_file_system, check_kernel, ensure
    from bob.judge.searched import keep
    from bob.run.prober import RUNS, new_identity

    check_out(out, RUNS)
    within = out if out is not None else RUNS / new_identity()
    done = []
    with watching(quiet=quiet) as progress:
        for image in images if builds else ():
            built = ensure(image, progress.step)
            check_kernel(built)
            if fs is not None:
                check_file_system(built, fs.module, fs.package)
        for image in images:
            progress.step(f"on {image}")
            with telling_what_is_kept(verb, within / image, RUNS):
                result, run = probe(image, within / image, progress)
            done.append((keep(run, result), run))
    _deliver(images, done, json_file)
    return conclude(done, json_file, junit_file, expected)


def asked_images(asked: Mapping[str, Any], fs: Sequence[FileSystem] = (), *, quiet: bool) -> tuple[str, ...]:
    """The images that the options ask for, in order; makes the one that --kernel or --kernel-tree asks for, of which
    it is seen that it has what ``fs`` need.

    Raises UsageError where --kernel and --modules do not go together, or with the rest.
    """
    from bob.image import load_recipe
    from bob.image.cache import OWN
    from bob.image.needs import LATE_MODULES
    from bob.image.own import own_image, read_build
    from bob.image.tree import tree_build

    images = tuple(dict.fromkeys(asked["images"]))
    if asked.get("guest") is not None:
        return (_machine(asked),)
    own = {name: asked[name] for name in ("kernel", "modules", "kernel_tree") if asked.get(name) is not None}
    tree = own.pop("kernel_tree", None)
    said = "--kernel" if tree is None else "--kernel-tree"
    if tree is None and not own:
        return images
    if asked.get("scheduler"):
        raise UsageError(
            f"{said} does not go with --scheduler: each worker has images of its own",
            hint="make it on each worker's machine, and name it here by --image",
        )
    if tree is not None and own:
        raise UsageError("--kernel-tree has a kernel and its modules", hint="leave out --kernel and --modules")
    if tree is None and len(own) == 1:
        raise UsageError(
            "--kernel and --modules go together",
            hint="--kernel arch/x86/boot/bzImage --modules DIR; of a build tree, --kernel-tree DIR has both",
        )
    if len(images) > 1 or OWN in images[0]:
        raise UsageError(f"{said} goes over one image", hint=f"for example --image {DEFAULT_IMAGE}")
    recipe = load_recipe(images[0])
    with watching(quiet=quiet) as progress, ExitStack() as stack:
        if tree is None:
            build = read_build(own["kernel"], own["modules"], recipe)
        else:
            late = () if asked.get("completion") in (None, Completion.PROMPT.value) else LATE_MODULES
            needed = tuple(dict.fromkeys((*late, *(one.module for one in fs))))
            build = stack.enter_context(tree_build(tree, recipe, needed))
        return (own_image(recipe, build, progress.step).name,)


def _machine(asked: Mapping[str, Any]) -> str:
    """The address of the machine that --guest names, which stands for an image. Raises UsageError where another option
    says something else of guests."""
    from bob.guest.given import place

    others = {"kernel": "--kernel", "modules": "--modules", "kernel_tree": "--kernel-tree", "connect": "--connect"}
    others["scheduler"] = "--scheduler"
    where = place(asked["guest"])
    if where.is_domain:
        del others["connect"]  # it says which libvirt has it
    for name, option in others.items():
        if asked.get(name) is not None:
            raise UsageError(f"{option} is for guests that bob boots", hint="the machine of --guest runs a kernel")
    if asked["images"] not in ((DEFAULT_IMAGE,), (settings().image,)):
        raise UsageError("--image is for guests that bob boots", hint="the machine of --guest is what it is")
    if (asked.get("jobs") or 1) > 1:
        raise UsageError("the machine of --guest is one guest", hint="leave out --jobs")
    if asked.get("recovery_crashes"):
        raise UsageError("recoveries are crashed in guests that bob boots", hint="leave out --recovery-crashes")
    return where.name


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
