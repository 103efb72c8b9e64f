"""HTML pages, parsed: every element of one that is well formed, and text of others that looks like HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input", "col", "wbr"}
NASTY = "</p></style><script>alert(\"1\")</script> & 'quoted' <img src=x onerror=y> {{ 7 * 7 }} {% endif %}"


Attributes = dict[str, str | None]


@dataclass
class Element:
    """A tag with what it has, and the text in it."""

    tag: str
    attributes: Attributes
    parent: Element | None = None
    text: str = ""

    def up(self, tag: str) -> Element:
        """The next element above of this tag."""
        above = self.parent
        while above is not None and above.tag != tag:
            above = above.parent
        assert above is not None, tag
        return above


@dataclass
class Page(HTMLParser):
    """Every element of a page that is well formed."""

    elements: list[Element] = field(default_factory=list)
    open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _value in attrs}) == len(attrs), attrs
        element = Element(tag, dict(attrs), self.open[-1] if self.open else None)
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """The elements of this tag that have these attributes."""
        wanted = attributes.items()
        return [one for one in self.elements if one.tag == tag and all(one.attributes.get(k) == v for k, v in wanted)]

    def with_class(self, tag: str, name: str) -> list[Element]:
        """The elements of this tag and class."""
        return [one for one in self.all(tag) if name in (one.attributes.get("class") or "").split()]

    def by_id(self, name: str) -> Element:
        """The element of this id."""
        [found] = [one for one in self.elements if one.attributes.get("id") == name]
        return found


def parse(text: str) -> Page:
    """The page ``text``, which is well formed."""
    found = Page()
    found.feed(text)
    found.close()
    assert found.open == []
    return found
