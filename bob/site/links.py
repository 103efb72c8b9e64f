"""The check of a site. Each link must lead to an existing file and, if it names an anchor, to an existing anchor in
this file. No page may load anything from another host."""

import html
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote

_TAG = re.compile(r"<([a-zA-Z][\w-]*)((?:\s+[^\s=>/]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>]+))?)*)\s*/?>")
_ATTRIBUTE = re.compile(r"([^\s=>/]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+)))?")
_COMMENT = re.compile(r"<!--.*?-->", flags=re.S)
_SCRIPT = re.compile(r"(<script\b[^>]*>).*?</script>", flags=re.S)
_STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
_ELSEWHERE = re.compile(r"(?i)(?:[a-z][a-z0-9+.-]*:|//)")
_HOST = re.compile(r"(?i)(?:(?:https?|wss?|ftp):)?//")
_LOADED = {"src", "srcset", "poster", "data", "background", "action", "formaction", "ping", "xlink:href"}
"""Attributes that make a browser load or send something without a click on a link."""


@dataclass(frozen=True, slots=True)
class PageFault:
    """A fault on a page. ``page`` is the page's path in the site, and ``what`` is the fault in words."""

    page: str
    what: str

    def __str__(self) -> str:
        return f"{self.page}: {self.what}"


@dataclass(frozen=True, slots=True)
class _Page:
    anchors: frozenset[str]
    links: frozenset[str]
    loads: frozenset[str]


def faults(site: Path) -> Iterator[PageFault]:
    """Yield the faults of all pages and style sheets in the folder ``site``."""
    read = cache(_read)
    for path in sorted(one for one in site.rglob("*") if one.suffix in (".css", ".html")):
        name = path.relative_to(site).as_posix()
        page = read(path)
        yield from (PageFault(name, f"loads {one} from another host") for one in sorted(page.loads) if _HOST.match(one))
        for link in sorted(page.links | page.loads) if path.suffix == ".html" else ():
            target, _, anchor = link.partition("#")
            if _ELSEWHERE.match(link):
                continue
            led = Path(os.path.normpath(path.parent / unquote(target.partition("?")[0]))) if target else path
            if not led.is_relative_to(site):
                yield PageFault(name, f"{link} leads out of the site")
            elif not led.is_file():
                yield PageFault(name, f"{link} leads to nothing")
            elif anchor and led.suffix == ".html" and unquote(anchor) not in read(led).anchors:
                yield PageFault(name, f"{link} leads to a missing anchor")


def _read(path: Path) -> _Page:
    if path.suffix == ".css":
        return _Page(frozenset(), frozenset(), frozenset(_addresses(path.read_text())))
    text = _SCRIPT.sub(r"\1</script>", _COMMENT.sub("", path.read_text()))
    anchors, links, loads = {"", "top"}, set[str](), set[str]()
    for tag, attributes in _TAG.findall(text):
        known = {
            name.lower(): html.unescape(double or single or bare)
            for name, double, single, bare in _ATTRIBUTE.findall(attributes)
        }
        anchors |= {known[name] for name in ("id", "name") if name in known}
        if "href" in known:
            (links if tag.lower() in ("a", "area") else loads).add(known["href"])
        loads |= {known[name] for name in _LOADED if name in known and name != "srcset"}
        loads |= {one.split()[0] for one in known.get("srcset", "").split(",") if one.strip()}
        loads |= _addresses(known.get("style", ""))
    for style in re.findall(r"<style\b[^>]*>(.*?)</style>", text, flags=re.S):
        loads |= _addresses(style)
    return _Page(frozenset(anchors), frozenset(links), frozenset(loads))


def _addresses(style: str) -> set[str]:
    return {one or other for one, other in _STYLE.findall(style)}
