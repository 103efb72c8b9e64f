"""The build of the site. MkDocs makes its pages from the project's documentation and from tables of all results. In
addition, bob makes pages for each single result, and these need no other file."""

import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import chdir
from copy import deepcopy
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

from jinja2 import PackageLoader

from bob import documents
from bob.answer.document import to_json
from bob.apm.export.claims import groups
from bob.apm.export.prose import page as model_page
from bob.apm.model import Model
from bob.claim.verdict import Verdict
from bob.errors import MalformedError, MissingProgramError, StoreError
from bob.report.columns import columns_of
from bob.report.comparison.compare import Kind
from bob.report.comparison.page import html_page
from bob.report.documents import to_csv, to_latex
from bob.report.saved import result_file
from bob.report.shown_way import INDEX
from bob.report.templating import html
from bob.site import sources
from bob.site.links import PageFault, faults
from bob.site.rely import Grade, answered, is_of_a_prompt_disk
from bob.site.results import KERNELS, MODELS, RESULTS, Results, compared, model_place, read, short
from bob.site.results_table import results_table

MARKER = ".bob-site"  # the file that marks a folder as a site of bob's, which a newer site may replace
_ASSETS = ("site.css", "site.js")
_SHIM = "iframe-worker.js"  # if this file exists, MkDocs' plugin `offline` loads no script from another host
_DOWNLOADS = "downloads"
_HOME = "../../"
_WHERE = (
    "[The table](table.md) has each configuration that bob tested for the rows of Table 1. [Can I rely on …?](rely.md) "
    "says what programs can rely on, by all measurements."
)
_OVERVIEW = Path("reports/README.md")
_READERS = re.compile(r"^(\w[^|\n]*):\n\n\| page \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", flags=re.MULTILINE)
_OF_SERVERS = ("404.html", "sitemap.xml", "sitemap.xml.gz")  # files that MkDocs makes for servers


@dataclass(frozen=True, slots=True)
class BuiltSite:
    """The number of pages of a site, and what is wrong with the pages."""

    pages: int
    faults: tuple[PageFault, ...]


def build(root: Path, target: Path, runs: Sequence[Path] = ()) -> BuiltSite:
    """Build the site of the project in the folder ``root``, with the results of ``runs``. If :func:`faults` finds
    nothing wrong, replace the folder ``target`` by the new site.

    Raise StoreError if ``target`` cannot be written or is not a site of bob's. Raise MalformedError if a page cannot be
    built, and MissingProgramError if MkDocs is not installed."""
    check(root, target)
    runs = [run.resolve() for run in runs]
    with tempfile.TemporaryDirectory(prefix="bob-site.") as name:
        folder = Path(name)
        with chdir(root):  # the commands on the pages are meant to run in this folder
            results = read([_nearby(run, root) for run in runs])
            found = sources.stage(Path(), folder / "docs")
            _write_results(results, found, folder / "docs")
            _write_models(results.models, folder / "docs")
            _write_pages(results, found, folder / "docs")
            _mkdocs(folder, found)
        site = folder / "site"
        for name in _OF_SERVERS:
            (site / name).unlink(missing_ok=True)
        wrong = tuple(faults(site))
        if not wrong:
            (site / MARKER).write_text("bob built this site, and may replace it by a newer one.\n")
            _replace(site, target)
        return BuiltSite(sum(1 for _page in site.rglob("*.html")), wrong)


def check(root: Path, target: Path) -> None:
    """Raise StoreError or MissingProgramError if bob cannot build a site of ``root`` into ``target``."""
    if not (root / "docs").is_dir() or not (root / "reports" / "reference").is_dir():
        raise StoreError(
            f"{root} lacks docs and reports",
            hint="bob builds the site from a checkout of the project, not from a wheel",
        )
    if target.is_dir() and any(target.iterdir()) and not (target / MARKER).exists():
        raise StoreError(f"{target} is not empty, and bob did not build it", hint="name another directory")
    try:
        import material
        import mkdocs
    except ImportError as error:
        raise MissingProgramError(
            f"the Python module {error.name} is not installed", hint="in the checkout: pip install -e '.[site]'"
        ) from None
    del material, mkdocs


def _nearby(run: Path, root: Path) -> Path:
    return run.relative_to(root.resolve()) if run.is_relative_to(root.resolve()) else run


def _replace(site: Path, target: Path) -> None:
    try:
        if target.is_dir():
            shutil.rmtree(target)
        shutil.copytree(site, target)
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror}", hint="name another directory") from error


def _write_results(results: Results, found: Sequence[Path], docs: Path) -> None:
    for reference in results.references:
        _write(docs / RESULTS / reference.name, reference.pages(_HOME))
        _link(docs, reference.name, ".*", "The table in colour, with the story of each ×")
        downloads = docs / _DOWNLOADS
        downloads.mkdir(exist_ok=True)
        document = documents.text(to_json(reference.saved.result))
        (downloads / f"{reference.name}.json").write_bytes(documents.sealed(document))
        (downloads / f"{reference.name}.csv").write_text(to_csv(reference.columns))
        (downloads / f"{reference.name}.tex").write_text(to_latex(reference.columns))
    for tested in results.programs:
        _write(docs / RESULTS / tested.name, tested.pages(f"../{_HOME}"))
        name = re.escape(tested.result.program_name)
        _link(docs, tested.name, name, "The story of each ×, and what the program did")
    alone = (one for one in compared(results.references) if one.place(found) == one.own_place)
    _write(docs, ((PurePosixPath(one.own_place), html_page(one.comparison, _HOME)) for one in alone))
    saved = [reference.saved for reference in results.references]
    every = columns_of((one.result, one.folder) for one in saved)
    together = [to_json(one.result) for one in saved]
    (docs / _DOWNLOADS / "all.json").write_text(documents.text(together))
    (docs / _DOWNLOADS / "all.csv").write_text(to_csv(every))


def _link(docs: Path, name: str, heading: str, words: str) -> None:
    """Put a link to the pages of the result ``name`` into this result's README in reports/reference. ``words`` are the
    text of the link. The link stands below the heading that matches the regular expression ``heading``."""
    page = docs / "reports/reference" / name.partition("/")[0] / "README.md"
    if page.exists():
        link = f"[{words}](../../../{RESULTS}/{name}/{INDEX})"
        text = re.sub(rf"^#+ {heading}$", rf"\g<0>\n\n{link}", page.read_text(), count=1, flags=re.MULTILINE)
        page.write_text(text)


def _write_models(models: Iterable[Model], docs: Path) -> None:
    """Write a page for each model. In the README of the models, replace each link to a model's JSON by a link to this
    page."""
    readme = docs / MODELS / "README.md"
    for model in models:
        document = f"{model.name}.json"
        shutil.copyfile(Path(MODELS) / document, readme.with_name(document))
        (docs / model_place(model)).write_text(model_page(model, home=f"../{_HOME}", document=document))
        readme.write_text(readme.read_text().replace(f"({document})", f"({model.name}.html)"))


def _write(folder: Path, pages: Iterable[tuple[PurePosixPath, str]]) -> None:
    for place, text in pages:
        file = folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _write_pages(results: Results, found: Sequence[Path], docs: Path) -> None:
    one_of_each = [
        (reference.name, [(kind, f"{_DOWNLOADS}/{reference.name}.{end}") for kind, end in _KINDS])
        for reference in results.references
    ]
    everything = [(kind, f"{_DOWNLOADS}/all.{end}") for kind, end in _KINDS[:2]]
    templates = html().overlay(loader=PackageLoader("bob.site"))
    (docs / "table.md").write_text(
        templates.get_template("table.md.j2").render(
            table=results_table(results.rows),
            verdicts=list(Verdict),
            downloads=[("everything", everything), *one_of_each],
            compared=[(one, one.place(found)) for one in compared(results.references)],
            differing=(Kind.NEWLY_FAILS, Kind.NO_LONGER_FAILS),
            has_kernels=KERNELS in found,
        )
    )
    kernels = dict.fromkeys(short(kernel) for model in results.models for kernel in model.source.get("kernels", ()))
    counts = sorted({int(model.source.get("workloads", 0)) for model in results.models})
    (docs / "rely.md").write_text(
        templates.get_template("rely.md.j2").render(
            groups=[
                (group.title, group.about, [answered(one, results) for one in group.idiom if one.id])
                for group in groups()
            ],
            words=list(Grade),
            models=f"{len(results.models)} configurations on Linux {', '.join(kernels)}",
            models_page=f"{MODELS}/README.md",
            model_workloads=", ".join(map(str, counts)),
            finer=any(row.is_finer for row in results.rows),
            another_run=results.models_are_of_another_run,
            at_once=any(map(is_of_a_prompt_disk, results.models)),
        )
    )
    first = docs / "README.md"
    heading, _, rest = first.read_text().partition("\n")
    first.write_text(f"{heading}\n\n{_WHERE}\n{rest}")
    for name in _ASSETS:
        (docs / "assets").mkdir(exist_ok=True)
        text = files("bob.site").joinpath("templates", name).read_text()
        (docs / "assets" / (_SHIM if name.endswith(".js") else name)).write_text(text)


_KINDS = (("CSV", "csv"), ("JSON", "json"), ("LaTeX", "tex"))


class _Warnings(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def _mkdocs(folder: Path, found: Sequence[Path]) -> None:
    """Run MkDocs on ``folder``. Raise MalformedError if it fails or warns."""
    os.environ["NO_MKDOCS_2_WARNING"] = "1"  # a warning of the theme about a version of MkDocs that bob does not use
    from mkdocs.commands.build import build as build_with_mkdocs
    from mkdocs.config import load_config
    from mkdocs.exceptions import MkDocsException

    file = folder / "mkdocs.yml"
    file.write_text(json.dumps({**_SETTINGS, "nav": list(_navigation(found))}))  # JSON is valid YAML
    # A copy, since MkDocs empties the objects that it gets.
    extensions = [*deepcopy(_EXTENSIONS), {"toc": {"permalink": True, "slugify": sources.slug}}]
    warnings, logger = _Warnings(), logging.getLogger("mkdocs")
    logger.addHandler(warnings)
    try:
        config: Any = load_config(str(file), markdown_extensions=extensions)
        config.plugins.on_startup(command="build", dirty=False)
        build_with_mkdocs(config)
        config.plugins.on_shutdown()
    except MkDocsException as error:
        raise MalformedError(f"MkDocs cannot build the site: {error}", hint="see docs/results.md") from error
    finally:
        logger.removeHandler(warnings)
    if warnings.said:
        raise MalformedError(f"MkDocs warns: {warnings.said[0]}", hint="correct the page")


_SETTINGS: dict[str, Any] = {
    "site_name": "bob, the Block Order Breaker",
    "site_description": "Which persistence properties a file system has, found out on real kernels",
    "docs_dir": "docs",
    "site_dir": "site",
    "use_directory_urls": False,
    "theme": {
        "name": "material",
        "font": False,
        "language": "en",
        "icon": {"logo": "material/harddisk"},
        "features": [
            *("navigation.tabs", "navigation.sections", "navigation.top"),
            *("search.highlight", "toc.follow", "content.code.copy"),
        ],
        "palette": [
            {
                "media": f"(prefers-color-scheme: {mode})",
                "scheme": scheme,
                "primary": "blue-grey",
                "accent": "deep-orange",
                "toggle": {"icon": icon, "name": name},
            }
            for mode, scheme, icon, name in (
                ("light", "default", "material/weather-night", "Dark"),
                ("dark", "slate", "material/weather-sunny", "Light"),
            )
        ],
    },
    "plugins": ["search", "offline"],
    "extra": {"polyfills": [f"assets/{_SHIM}"], "generator": True},
    "extra_css": ["assets/site.css"],
    "validation": {
        "nav": {"omitted_files": "ignore", "not_found": "warn"},
        "links": {"not_found": "warn", "anchors": "warn", "absolute_links": "warn", "unrecognized_links": "warn"},
    },
}
_EXTENSIONS = (
    *("admonition", "attr_list", "tables", "pymdownx.superfences", "pymdownx.escapeall"),
    {"pymdownx.highlight": {"anchor_linenums": False}},
)


def _navigation(found: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yield the groups of pages in the site's navigation. Home and the results come first. README.md has one table of
    pages for each kind of reader, and each of these tables becomes a group, in the same order."""
    first = Path("README.md").read_text() if Path("README.md").exists() else ""
    readers = {
        title: [page for page in re.findall(r"\]\(((?:docs/)?[\w-]+\.md)\)", rows) if Path(page) in found]
        for title, rows in _READERS.findall(first)
    }
    named = {page for pages in readers.values() for page in pages}
    rest = [page.as_posix() for page in found if page.parent.name in ("", "docs") and page.as_posix() not in named]
    *guides, (last, pages) = readers.items() if readers else [("Documentation", [])]
    yield {"Home": "README.md"}
    yield {"Results": list(_results(found))}
    if guides:
        yield {"Guides": [{title: pages} for title, pages in guides]}
    yield {last: [*pages, *(page for page in rest if page != "README.md")]}


def _results(found: Sequence[Path]) -> Iterator[dict[str, Any]]:
    reports = [page for page in found if page.parts[0] == "reports"]
    tables = [page for page in reports if page == KERNELS or result_file(page.parent).is_file()]
    others = [page.as_posix() for page in reports if page not in tables and page.parent != Path("reports")]
    yield {"The table": "table.md"}
    yield {"Can I rely on …?": "rely.md"}
    if _OVERVIEW in reports:
        yield {"All results": _OVERVIEW.as_posix()}
    if tables:
        yield {"File systems": [page.as_posix() for page in tables]}
    if others:
        yield {"Programs and models": others}
