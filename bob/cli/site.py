"""``bob site``: the documentation and the results as one static site."""

from __future__ import annotations

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
    """Build the documentation and the results as one static site into DIR.

    The site has the project's pages, the table of all references in reports/, filtered by kernel, file system and
    property, what changed between kernels, a page for each ×, files to download, and the page "Can I rely on ...?",
    which answers from what was measured. The tables of RUN, run directories or results that --json wrote, are added.

    It needs no server: open DIR/index.html. It loads nothing from another host. It is made from a checkout of the
    project, and needs MkDocs with the theme Material: pip install 'bob-prober[site]'. A site that is in DIR is
    replaced. All links are checked; where one leads to nothing, it is named, and DIR is left as it was.

    \b
    Examples:
      bob site pages
      bob site pages bob-runs/20261121T230021-1f2e3d

    \b
    Exit codes:
      0   the site was built
      1   a link leads to nothing, or something would be loaded from another host
      4   MkDocs or its theme is missing
      8   a result or a page is malformed
      9   DIR cannot be written or is no site, a run has no result, or this is no checkout
    """
    from bob.site.build import build

    built = build(shipped("probes").parent, folder, runs)
    for fault in built.faults:
        console(stderr=True).print(str(fault), soft_wrap=True)
    if built.faults:
        return Exit.DIFFERENT
    console().print(f"{built.pages:,} pages; open {folder / 'index.html'}", soft_wrap=True)
    return Exit.DONE
