"""The guest image that the options of a command ask for: a named image, an image with the user's kernel, or the user's
own machine."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from bob.catalogue.request import DEFAULT_IMAGE
from bob.errors import UsageError
from bob.run.option_table import GuestOptions
from bob.settings import settings
from bob.subject import FileSystem
from bob.trace.recording import Completion


def asked_images(
    images: Sequence[str],
    guests: GuestOptions,
    fs: Sequence[FileSystem] = (),
    *,
    completion: Completion = Completion.PROMPT,
    guest: str | None = None,
    scheduler: str | None = None,
    recovery_crashes: int = 0,
    progress: Callable[[str], None],
) -> tuple[str, ...]:
    """Return the names of the guest images that the options ask for. Without further options, these are ``images``
    without repetition. For --kernel or --kernel-tree, build an image with this kernel and the modules that the file
    systems ``fs`` need, and return its name. For --guest, return the address of the user's machine. ``progress`` gets a
    line for each step. Raise UsageError if options contradict each other."""
    from bob.guest.given_machine import is_machine
    from bob.image import load_recipe
    from bob.image.cache import OWN
    from bob.image.needs import LATE_MODULES
    from bob.image.own import own_image, read_build
    from bob.image.tree import tree_build

    images = tuple(dict.fromkeys(images))
    if guest is not None:
        return (_machine(guest, images, guests, scheduler, recovery_crashes),)
    if machine := next(filter(is_machine, images), None):
        raise UsageError(f"unknown guest image {machine!r}", hint="name a machine of your own with --guest")
    kernel, modules, tree = guests.kernel, guests.modules, guests.kernel_tree
    if kernel is modules is tree is None:
        return images
    option = "--kernel" if tree is None else "--kernel-tree"
    if scheduler:
        raise UsageError(
            f"{option} cannot be used with --scheduler: each worker has its own images",
            hint="build that image on each worker's machine, and name it here with --image",
        )
    if tree is not None and (kernel or modules):
        raise UsageError("--kernel-tree cannot be used with --kernel or --modules", hint="leave out the other options")
    if tree is None and (kernel is None or modules is None):
        raise UsageError(
            "--kernel and --modules need each other",
            hint="--kernel arch/x86/boot/bzImage --modules DIR; or --kernel-tree DIR for a build tree",
        )
    if len(images) > 1 or OWN in images[0]:
        raise UsageError(
            f"{option} replaces the kernel of one shipped image", hint=f"for example --image {DEFAULT_IMAGE}"
        )
    recipe = load_recipe(images[0])
    with ExitStack() as stack:
        if tree is not None:
            late = () if completion is Completion.PROMPT else LATE_MODULES
            needed = tuple(dict.fromkeys((*late, *(one.module for one in fs))))
            build = stack.enter_context(tree_build(tree, recipe, needed))
        else:
            assert kernel is not None and modules is not None
            build = read_build(kernel, modules, recipe)
        return (own_image(recipe, build, progress).name,)


def _machine(
    guest: str, images: Sequence[str], guests: GuestOptions, scheduler: str | None, recovery_crashes: int
) -> str:
    """Return the address of the machine of --guest, which takes the place of an image. Raise UsageError if another
    option is also about guests."""
    from bob.guest.given_machine import place

    where = place(guest)
    others = {
        "--kernel": guests.kernel,
        "--modules": guests.modules,
        "--kernel-tree": guests.kernel_tree,
        "--connect": None
        if where.is_domain
        else guests.connect,  # for a domain, --connect names the libvirt that has it
        "--scheduler": scheduler,
    }
    for option, value in others.items():
        if value is not None:
            raise UsageError(f"{option} cannot be used with --guest", hint="bob does not boot the machine of --guest")
    if tuple(images) not in ((DEFAULT_IMAGE,), (settings().image,)):
        raise UsageError("--image cannot be used with --guest", hint="bob uses the machine of --guest as it is")
    if (guests.jobs or 1) > 1:
        raise UsageError("the machine of --guest counts as one guest", hint="leave out --jobs")
    if recovery_crashes:
        raise UsageError("bob crashes recoveries only in guests that it boots", hint="leave out --recovery-crashes")
    return where.name
