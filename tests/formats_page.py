"""docs/formats.md is half made: fields and their types are those of bob's documents, what they mean is written by hand.

``python tests/formats_page.py`` writes the page anew. In it stand tables of the fields of a type, each after a line
``<!-- fields of MODULE.TYPE -->``, and after ``<!-- documents -->`` tables of documents, a row each, whose last cell but
one has the fields. A type is told by its JSON Schema. The last cell of a row, what it means, is kept as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from itertools import chain, groupby
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

from msgspec import Struct

import bob
from bob.catalogue.request import ProbeDocument, RequestDocument
from bob.program.program import ProgramDocument
from bob.schema import described
from bob.store.run_documents import BaseDocument, ObservedDocument, RecordedDocument, RefusedWorkload
from bob.witness.document import CrashDocument
from bob.witness.recipes import DataRecipe
from bob.witness.tree_document import FoundDocument

PAGE = Path(__file__).parents[1] / "docs" / "formats.md"
PARTS: Mapping[str, type] = {
    "request": RequestDocument,
    "probe": ProbeDocument,
    "program": ProgramDocument,
    "crash": CrashDocument,
    "found": FoundDocument,
    "recipe": DataRecipe,
    "bases/NAME.json": BaseDocument,
    "recorded.json": RecordedDocument,
    "refused.json": RefusedWorkload,
    "observed.json": ObservedDocument,
}
"""What the rows of tables of documents are about, but for those that begin with a schema or another tag."""
BY_HAND = {
    "ByRecording": "#answers",
    "ConfigurationDocument": "#parts-of-documents",
    "JudgeDeclaration": "extend.md#of-judge",
    "NodeDocument": "#observedjson",
}
"""Where types are described that have no table."""

_FIELDS = re.compile(r"(?<=<!-- fields of )([\w.]+) -->\n(.*?)(?=\n\n|\n\Z)", re.DOTALL)
_DOCUMENTS = re.compile(r"(?<=<!-- documents -->\n)(.*?)(?=\n\n|\n\Z)", re.DOTALL)

Kinds = Mapping[str, type]
Links = Mapping[str, str]
"""By the name of a type the place where it is described."""


def rewritten(page: str) -> str:
    """``page`` with all tables as types are now."""
    kinds = {**PARTS, **tagged()}
    links = {**links_in(page, kinds), **BY_HAND}
    page = _FIELDS.sub(lambda found: f"{found[1]} -->\n" + fields_of(named(found[1]), found[2], links), page)
    return _DOCUMENTS.sub(lambda found: documents(found[1], kinds, links), page)


def by_hand(page: str) -> str:
    """Return ``page`` without the tables that this program writes."""
    return _DOCUMENTS.sub("", _FIELDS.sub("", page))


def tagged() -> dict[str, type]:
    """The types of documents that say what they are, by what they say: their schema, above all."""
    for found in walk_packages(bob.__path__, "bob."):
        if not found.name.startswith(("bob.agent.inside.", "bob.__main__")):
            import_module(found.name)
    known: dict[str, type] = {}
    for kind in below(Struct):
        if (tag := kind.__struct_config__.tag) is not None:  # type: ignore[attr-defined]
            known.setdefault(tag, kind)
    return known


def below(kind: type) -> Iterator[type]:
    return chain.from_iterable((one, *below(one)) for one in kind.__subclasses__())


def links_in(page: str, kinds: Kinds) -> dict[str, str]:
    """The types that have a table, or a row of one, by their names, with the headings above that."""
    links = {}
    for section in re.split(r"^#+ ", page, flags=re.MULTILINE):
        anchor = "#" + re.sub(r"[^\w\- ]", "", section.partition("\n")[0].lower()).replace(" ", "-")
        links |= {name.rpartition(".")[2]: anchor for name, _table in _FIELDS.findall(section)}
        rows = chain.from_iterable(map(rows_of, _DOCUMENTS.findall(section)))
        links |= {kinds[key].__name__: anchor for first, *_cells in rows if (key := key_of(first)) in kinds}
    return links


def named(name: str) -> type:
    module, _, kind = name.rpartition(".")
    found: type = getattr(import_module(module), kind)
    return found


def fields_of(kind: type, table: str, links: Links) -> str:
    """The table of the fields of ``kind``; ``table`` is the one before. Fields with one meaning may share a row."""
    known = [(re.findall(r"`(\w+)`", first), last) for first, *_type, last in rows_of(table)]
    meaning = {name: (number, last) for number, (names, last) in enumerate(known) for name in names}
    rows = ["| field | type | meaning |", "|---|---|---|"]
    typed = ((name, said, meaning.get(name, (name, ""))) for name, said in fields_in(kind, links))
    for (said, (_number, last)), some in groupby(typed, lambda one: (one[1], one[2])):
        rows.append(row(", ".join(f"`{name}`" for name, *_rest in some), said, last))
    return "\n".join(rows)


def documents(table: str, kinds: Kinds, links: Links) -> str:
    """A table of documents; ``table`` is the one before. A row about something without a type stays as it is."""
    rows = table.splitlines()[:2]
    for *cells, told, more in rows_of(table):
        kind = kinds.get(key_of(cells[0]))
        rows.append(row(*cells, told if kind is None else inside(fields_in(kind, links)), more))
    return "\n".join(rows)


def fields_in(kind: type, links: Links) -> Iterator[tuple[str, str]]:
    """The name and the type, in words, of each field of ``kind``, but for its tag."""
    document = described(kind)
    known = document["$defs"]
    for name, one, said in properties(known[kind.__name__], partial(words, known=known, links=links)):
        if len(one.get("enum", ())) != 1:
            yield name, said


def properties(table: Mapping[str, Any], said: Callable[[Any], str]) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """The name of each field of a table, its JSON Schema, and that in words, with what it is where it is missing."""
    for name, one in table["properties"].items():
        kind, default = said(one), one.get("default")
        if name not in table.get("required", ()):
            default = ", ".join(map(str, default)) if isinstance(default, list | tuple) else default
            ending = f"[{str(default).lower()}]" if default and not isinstance(default, dict) else "?"
            kind = f"{kind.removesuffix(' or null')} {ending}"  # null is not written
        yield name, one, kind


def inside(fields: Iterator[tuple[str, str]]) -> str:
    """Fields with their types as a list; neighbours of one type are together, and text is not said."""
    together = (
        (said, ", ".join(f"`{name}`" for name, _said in some)) for said, some in groupby(fields, lambda one: one[1])
    )
    return "; ".join(f"{names}: {said}".removesuffix(": text").replace(": text ?", " ?") for said, names in together)


def words(one: Mapping[str, Any], known: Mapping[str, Any], links: Links) -> str:
    """A JSON Schema in words; ``known`` are those that it refers to."""
    said = partial(words, known=known, links=links)
    match one:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            short = re.sub(r"(?<=.)([A-Z])", r" \1", re.sub(r"Document$|Declaration$", "", name)).lower()
            return f"[{short}]({links[name]})" if name in links else said(known[name])
        case {"discriminator": {"propertyName": str(tag)}}:
            place = said(one["anyOf"][0]).rpartition("](")[2]
            return f"[{tag}]({place}"
        case {"anyOf": list(several)}:
            each = list(dict.fromkeys(map(said, several)))
            return " or ".join(each if "number" not in each else [one for one in each if one != "integer"])
        case {"enum": list(values)}:
            return " or ".join(f"`{value}`" for value in values if value)
        case {"type": ["integer", "string"]}:
            return "[count](#counts)"
        case {"type": "array", "prefixItems": list(places)}:
            return f"[{', '.join(map(said, places))}]"
        case {"type": "array", "items": dict(inner)}:
            return f"[{said(inner)} ...]"
        case {"type": "object", "properties": _}:
            return f"{{{inside((name, kind) for name, _one, kind in properties(one, said))}}}"
        case {"type": "object", "additionalProperties": dict(inner)}:
            return f"by name: {said(inner)}"
        case {"contentEncoding": "base64"}:
            return "Base64"
        case {"type": str(kind)}:
            return {"string": "text", "boolean": "true or false", "object": "a table"}.get(kind, kind)
    return "anything"


def rows_of(table: str) -> list[list[str]]:
    """The cells of the rows of a table, without its head."""
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines()[2:]]


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def key_of(cell: str) -> str:
    """What the first cell of a row names first."""
    return cell.split("`")[1] if "`" in cell else ""


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
