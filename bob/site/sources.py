"""Prepare the project's pages for MkDocs. The pages use two forms that code hosts such as GitHub accept, but MkDocs
does not: list items with a small indent, and links to folders. This module rewrites both. It also gives the verdicts in
tables the colours of the site."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md", "reports/*.md", "reports/*/*/README.md")
_FENCE = re.compile(r"^ *(`{3,}|~{3,})")
_ITEM = re.compile(r"^( *)([-*+]|\d+[.)]) +")
_LINK = re.compile(r"(\]\()([^)\s]+)(\))|^(\[[^\]]+\]: )(\S+)($)", flags=re.M)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//|#")
_CODE = re.compile(r"(^ *```.*?^ *```$|`[^`\n]+`)", flags=re.S | re.M)
_ROW = re.compile(r"^\|.*\|$", flags=re.M)
_BAR = re.compile(r"(?<!\\)\|")
_TONES = {
    re.compile(r"\+×"): "fails .changed",
    re.compile(r"-×"): "holds .changed",
    re.compile(r"\?|not promised\*: "): "unknown",  # "not promised" is a word of bob.report.programs_document
    re.compile(r"×"): "fails",
    re.compile(r"(holds|safe|·)( \(.*)?$"): "holds",
    re.compile(r"–$"): "skipped",
}  # the class for each beginning of an answer; the first pattern that fits counts


def pages(root: Path) -> list[Path]:
    """Return the paths of the project's pages, relative to ``root``."""
    return sorted({path.relative_to(root) for form in _PAGES for path in root.glob(form)})


def stage(root: Path, folder: Path) -> list[Path]:
    """Copy the pages of ``root``, and the files that they link to, into ``folder``. Return the paths of the pages in
    ``folder``."""
    found = pages(root)
    linked: set[Path] = set()
    for page in found:
        target = folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (root / page).read_text()
        linked |= {root / path for path in _linked(text, page) if (root / path).exists()}
        target.write_text(coloured(for_mkdocs(_to_folders(text, root / page))))
    for path in sorted(linked):
        if path.is_dir() and not (path / "README.md").exists():
            found.append(_listing(root, path, folder))
        elif path.is_file() and path.relative_to(root) not in found:
            target = folder / path.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    return found


def for_mkdocs(text: str) -> str:
    """Return ``text`` with the content of list items indented by four columns, since MkDocs needs this."""
    lines: list[str] = []
    items: list[int] = []
    fence, blank = "", False
    for line in text.split("\n"):
        bare = line.lstrip(" ")
        indent = len(line) - len(bare)
        if not fence and bare:
            item = _ITEM.match(line)
            if item or blank or indent >= (items[-1] if items else 0):
                while items and indent < items[-1]:
                    items.pop()
        lines.append(f"{' ' * (4 * len(items) + indent - items[-1])}{bare}" if items and bare and indent else line)
        if marked := _FENCE.match(line):
            fence = "" if fence and bare.startswith(fence) else fence or marked[1]
        elif not fence and (item := _ITEM.match(line)):
            items.append(len(item[0]))
        blank = not bare
    return "\n".join(lines)


def coloured(text: str) -> str:
    """Return ``text`` with a style class added to each table cell that has a verdict. The class gives the cell its
    colour, and is written in the syntax of MkDocs' extension attr_list."""
    fenced = re.split(r"(^ *```.*?^ *```$)", text, flags=re.S | re.M)
    return "".join(part if number % 2 else _ROW.sub(_coloured, part) for number, part in enumerate(fenced))


def _coloured(row: re.Match[str]) -> str:
    cells = _BAR.split(row[0])
    return "|".join(f"{cell}{{ .{tone} }} " if (tone := tone_of(cell)) else cell for cell in cells)


def tone_of(cell: str) -> str:
    """Return the style class for the verdict in a table's cell. If the cell has several verdicts, return the class of
    the worst. If it has no verdict, return an empty string."""
    answers = [answer.strip(" *\\~") for answer in cell.split(";")]
    tones = (tone for begins, tone in _TONES.items() if any(map(begins.match, answers)))
    return next(tones, "")


def slug(text: str, separator: str) -> str:
    """Return the anchor of the heading ``text``, in the form that code hosts such as GitHub use. ``separator`` takes
    the place of spaces."""
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", separator)


def _linked(text: str, page: Path) -> Iterator[Path]:
    for found in _LINK.finditer(_CODE.sub("", text)):
        target = found[2] or found[5]
        if not _ELSEWHERE.match(target):
            yield Path(os.path.normpath(page.parent / target.partition("#")[0]))


def _to_folders(text: str, page: Path) -> str:
    """Return ``text`` with each link to a folder replaced by a link to the folder's README.md."""

    def changed(found: re.Match[str]) -> str:
        before, target, after = found[1] or found[4], found[2] or found[5], found[3] or ""
        if not _ELSEWHERE.match(target) and (page.parent / target).is_dir():
            target = f"{target.rstrip('/')}/README.md"
        return f"{before}{target}{after}"

    return "".join(part if number % 2 else _LINK.sub(changed, part) for number, part in enumerate(_CODE.split(text)))


def _listing(root: Path, path: Path, folder: Path) -> Path:
    """Write a page that lists the files below ``path``, and copy these files. Return the path of the page."""
    page = path.relative_to(root) / "README.md"
    lines = [f"# {page.parent.as_posix()}", ""]
    for file in sorted(file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts):
        place = file.relative_to(path)
        target = folder / page.parent / f"{place}.txt"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
        lines.append(f"- [{place.as_posix()}]({place.as_posix()}.txt)")
    (folder / page).write_text("\n".join([*lines, ""]))
    return page
