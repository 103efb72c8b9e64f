"""``bob image``: lists, builds and removes guest images (kernels and root file systems of the virtual machines where
bob does its experiments)."""

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bob.catalogue.request import DEFAULT_IMAGE
from bob.cli.commands import Commands
from bob.cli.display import watching
from bob.cli.output import present
from bob.errors import UsageError
from bob.image import Image, ensure, find, installed, load_recipe, recipe_names, remove
from bob.image.cache import OWN, images_folder
from bob.options import option
from bob.report.lines import Trimmed
from bob.run import option_table as table
from bob.run.option_values import known, one_of
from bob.schema import Document, adapt
from bob.settings import settings
from bob.text import size

_STYLES = {"built": "bob.holds", "own kernel": "bob.holds", "not built": "bob.dim", "outdated": "bob.unknown"}


class ImageRow(Document, frozen=True, kw_only=True):
    """A guest image. ``name`` is the name of its recipe, the file that says how to build the image. If the image has a
    user's own kernel, the name also has the release of this kernel. ``bytes`` is the space on the disk that a removal
    of the image would free."""

    name: str
    state: str
    key: str
    kernel: str
    bytes: int
    folder: str
    description: str | None = None


class ImagesDocument(Document, frozen=True, tag_field="schema", tag="bob.images/1"):
    """Guest images, as `bob image list` and `bob image build` write them."""

    images: tuple[ImageRow, ...]


@click.group(cls=Commands)
def image() -> None:
    """List, build and remove guest images.

    bob builds an image when a probe first needs it. That takes a minute or two, and downloads some 150 MB.

    \b
    Examples:
      bob image list
      bob image build debian-bookworm
      bob image rm debian-bookworm
    """


@image.command("list")
def list_images(json_file: Path | None = table.JSON) -> None:
    """List all guest images, built or not.

    An outdated image is from an older recipe; probes no longer use it. An image with a kernel of your own comes from
    --kernel or --kernel-tree, and --image accepts its name. --json has the folder and the key of each image.

    \b
    Example:
      bob image list
    """
    rows = [_row(name) for name in recipe_names()] + [_described(found, state) for found, state in _others()]
    present(json_file, ImagesDocument(tuple(rows)), lambda screen: _print(screen, rows))


def _print(screen: Console, rows: Sequence[ImageRow]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for heading in ("image", "", "kernel", "size"):
        table.add_column(Text(heading, "bob.dim"), overflow="fold")
    for row in rows:
        taken = size(row.bytes) if row.bytes else ""
        table.add_row(row.name, Text(row.state, _STYLES[row.state]), row.kernel, taken)
    screen.print(Trimmed(table))
    screen.print(Text(f"in {images_folder()}", "bob.dim"), soft_wrap=True)


@image.command()
def build(
    name: str | None = option("[NAME]", "", known("guest image", recipe_names)),
    *,
    json_file: Path | None = table.JSON,
    quiet: bool = table.QUIET,
) -> None:
    """Build the guest image NAME, unless it exists.

    Without NAME, bob builds the image that `bob probe` uses by default. The key of an image, in brackets, names its
    recipe and its kernel package; results have it, too.

    \b
    Examples:
      bob image build
      bob image build debian-trixie --quiet --json - | jq -r .images[0].folder
      BOB_MIRROR=http://ftp.de.debian.org/debian bob image build debian-bookworm
    """
    name = name or settings().image or DEFAULT_IMAGE
    there = find(load_recipe(name))
    with watching(quiet=quiet) as progress:
        built = there or ensure(name, progress.step)
    line = f"{built.named} {'was built already' if there else 'is built'}: {built.folder}"
    present(json_file, ImagesDocument((_row(name),)), lambda _screen: click.echo(line))


@image.command()
def rm(
    names: tuple[str, ...] = option("NAME...", "", one_of(lambda: sorted({one.name for one in installed()}))),
) -> None:
    """Remove the guest images called NAME, also outdated ones.

    \b
    Example:
      bob image rm debian-bookworm
    """
    images = installed()
    there = sorted({found.name for found in images})
    for name in names:
        if name not in there:
            hint = f"built: {', '.join(there) or 'none'}"
            raise UsageError(f"the guest image {name!r} is not built", hint=hint)
    for found in images:
        if found.name in names:
            taken = found.bytes_of_its_own
            remove(found)
            click.echo(f"removed {found.folder} ({size(taken)})")


def _row(name: str) -> ImageRow:
    recipe = load_recipe(name)
    found = find(recipe)
    if found is not None:
        return _described(found, "built", recipe.description)
    return ImageRow(name=name, state="not built", key="", kernel="", bytes=0, folder="", description=recipe.description)


def _described(found: Image, state: str, description: str | None = None) -> ImageRow:
    sizes = {"kernel": found.kernel_release, "bytes": found.bytes_of_its_own, "folder": str(found.folder)}
    return adapt(ImageRow, found, state=state, description=description, **sizes)


def _others() -> list[tuple[Image, str]]:
    current = {found.folder for name in recipe_names() if (found := find(load_recipe(name)))}
    others = [found for found in installed() if found.folder not in current]
    return [(found, "own kernel" if OWN in found.name else "outdated") for found in others]
