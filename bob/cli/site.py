"""``bob site``: builds one static site of the documentation and the results."""

from pathlib import Path

from bob.cli.commands import command
from bob.cli.output import console
from bob.errors import Exit
from bob.options import option
from bob.resources import shipped
from bob.run.option_paths import EXISTING, FOLDER


@command()
def site(
    folder: Path = option("DIR", "", FOLDER), runs: tuple[Path, ...] = option("[RUN...]", "", EXISTING, default=())
) -> Exit:
    """Build a static site with the documentation and the results in DIR.

    The site has the project's pages, a page for each ×, and files to download. Its table has all reference results in
    reports/, which you can filter by kernel, file system and property. It shows what changed between kernels. The page
    "Can I rely on ...?" answers from the measurements. bob adds the tables of RUN..., which are run directories or
    results that --json wrote.

    The site needs no server: open DIR/index.html. It loads nothing from another host. bob builds it from a checkout of
    the project, with MkDocs and its theme Material, which `./run` installs. It replaces a site in DIR. bob checks all
    links first. If one is broken, bob names it and leaves DIR unchanged.

    \b
    Examples:
      bob site pages
      bob site pages bob-runs/20261121T230021-1f2e3d

    \b
    Exit codes:
      0   the site was built
      1   a link is broken, or a page loads something from another host
      4   MkDocs or its theme is missing
      8   a result or a page is malformed
      9   DIR cannot be written or is not a site, a run has no result, or this is not a checkout
    """
    from bob.site.build import build

    built = build(shipped("probes").parent, folder, runs)
    for fault in built.faults:
        console(stderr=True).print(str(fault), soft_wrap=True)
    if built.faults:
        return Exit.DIFFERENT
    console().print(f"{built.pages:,} pages; open {folder / 'index.html'}", soft_wrap=True)
    return Exit.DONE
