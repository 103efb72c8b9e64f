"""The guest image for witnesses: what they show, they show on the kernel that they were found on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bob.errors import UsageError
from bob.image import Image, ensure
from bob.progress import Progress
from bob.request import DEFAULT_IMAGE
from bob.witness import Witness


def image_for(
    witnesses: Iterable[tuple[Path, Witness]], name: str | None, progress: Progress, *, any_kernel: bool | None = None
) -> Image:
    """The image ``name``, or the default one, built if it has to be.

    Raises UsageError where its kernel is not that of all ``witnesses``, unless ``any_kernel`` will do; None says that
    there is no such option.
    """
    built = ensure(name or DEFAULT_IMAGE, progress.step)
    for path, witness in witnesses:
        if built.kernel_release != witness.kernel and not any_kernel:
            hint = "name an image with that kernel by --image"
            raise UsageError(
                f"the witness {path.name} is of kernel {witness.kernel}, the image has {built.kernel_release}",
                hint=hint if any_kernel is None else f"{hint}, or try it on this one with --any-kernel",
            )
    return built
