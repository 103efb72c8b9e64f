"""Guests for witnesses. A witness is a file about one crash state that breaks a property. The file names the kernel and
the image that bob used to find the state."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from bob.agent.client import Agent
from bob.catalogue.request import DEFAULT_IMAGE
from bob.errors import UsageError
from bob.guest.capacity import memory_for
from bob.guest.spec import Clock
from bob.image import Image, ensure_world, image_names
from bob.kernel_series import is_same_series
from bob.progress import Progress
from bob.run.agents import guests_of, image_called
from bob.run.pool import each_in_a_guest
from bob.witness.document import Witness

R = TypeVar("R")
WitnessFile = tuple[Path, Witness]  # the path of a witness, and the witness


def by_image(
    witnesses: Sequence[WitnessFile],
    name: str | None,
    progress: Progress,
    *,
    connect: str | None = None,
    any_kernel: bool | None = None,
) -> list[tuple[Image, list[WitnessFile]]]:
    """Group ``witnesses`` by guest image. If ``name`` is given, all witnesses use the
    image ``name``. Otherwise each witness uses the image that it names, or the default image if this machine lacks it.

    If ``any_kernel`` is True, accept any kernel. Otherwise raise UsageError if a witness names a kernel of another
    series (Debian version and flavour) than its image has. If the two kernels differ only in their Debian package,
    report that to ``progress``. If the command lacks the option --any-kernel, ``any_kernel`` is None, and the message
    does not suggest the option."""
    groups: dict[str, list[WitnessFile]] = {}
    for found in witnesses:
        groups.setdefault(name or _named(found[1]), []).append(found)
    images = [(image_called(each, progress.step, connect), group) for each, group in groups.items()]
    told = set()
    for image, group in images:
        for path, witness in group:
            found_on, kernel = witness.kernel, image.kernel_release
            if any_kernel or kernel == found_on:
                continue
            if not is_same_series(kernel, found_on):
                hint = "name an image with that kernel with --image"
                raise UsageError(
                    f"the witness {path.name} is of kernel {found_on}, but the image has {kernel}",
                    hint=hint if any_kernel is None else f"{hint}, or try this image with --any-kernel",
                )
            if (kernel, found_on) not in told:
                told.add((kernel, found_on))
                progress.step(f"{path.name} is of kernel {found_on}; bob runs it on {kernel}")
    return images


def each_witness(
    images: Sequence[tuple[Image, Sequence[WitnessFile]]],
    clock: Clock,
    do: Callable[[Agent, Image, WitnessFile], R],
    progress: Progress,
    connect: str | None,
) -> Iterator[R]:
    """Yield the result of ``do`` for each witness. All witnesses that need the same image and the same Debian packages
    share a guest. If the guest is lost, go on in a new guest. Raise an error if that guest is lost at the same witness,
    or if ``do`` fails for another reason."""
    for image, witnesses in images:
        memory = memory_for(witness.configuration for _path, witness in witnesses)
        with guests_of(image, connect, progress.step, memory) as guests:
            for packages, alike in groupby(sorted(witnesses, key=_packages), _packages):
                world = ensure_world(image, packages, progress.step)
                items = [(str(found[0]), found) for found in alike]

                def do_one(agent: Agent, found: WitnessFile, image: Image = image) -> R:
                    return do(agent, image, found)

                yield from each_in_a_guest(guests, image, clock, items, do_one, progress, world)


def _packages(found: WitnessFile) -> tuple[str, ...]:
    return found[1].claim.packages


def _named(witness: Witness) -> str:
    """Return the name of the image where ``witness`` was found. If this machine lacks that image, return the name of
    the default image."""
    name = witness.environment.get("image", "").partition(" ")[0]
    return name if name in image_names() else DEFAULT_IMAGE
