"""Every document has what its type has: a document that lacks a field is refused, and the field named."""

from __future__ import annotations

import ast
import lzma
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import EnumType
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from msgspec import NODEFAULT, inspect

from bob import documents
from bob.answer.document import results_in
from bob.apm import model
from bob.crash.coverage import States
from bob.crash.state import CrashState
from bob.image.cache import Image
from bob.schema import Declaration, Document, ShapeError, decode, described, is_later, older
from bob.witness import bundle
from bob.witness.document import WitnessDocument
from formats_page import below

ROOT = Path(__file__).parents[1]
IN_A_GUEST = ROOT / "bob" / "agent" / "inside"
READERS = {"decode", "declared"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [("bob.run/2", True), ("bob.run/10", True), ("bob.run/1", False), ("bob.run/0", False), ("bob.runs/2", False)]
    + [(other, False) for other in ("bob.run/", "bob.run/x", "bob.run", "", None, 2, ["bob.run/2"])],
)
def test_a_later_version_is_told_from_an_earlier_one_and_from_another_document(found: object, expected: bool) -> None:
    assert is_later(found, "bob.run/1") == expected


def named_in_calls() -> Iterator[type]:
    """The types that bob asks :func:`decode` for, by name; of files that have a document, its module is loaded."""
    for path in sorted((ROOT / "bob").rglob("*.py")):
        if IN_A_GUEST in path.parents or "bob.schema" not in (text := path.read_text()):
            continue
        module = import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
        calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and node.args)
        names = {ast.unparse(call.args[0]) for call in calls if ast.unparse(call.func) in READERS}
        yield from (getattr(module, name) for name in names if hasattr(module, name))


def inside(kind: inspect.Type, known: dict[type, inspect.Type]) -> dict[type, inspect.Type]:
    """All types with fields that a ``kind`` has in it, itself included."""
    if isinstance(kind, inspect.StructType | inspect.DataclassType | inspect.NamedTupleType):
        if kind.cls in known:
            return known
        known[kind.cls] = kind
        parts = [field.type for field in kind.fields]
    else:
        parts = [*getattr(kind, "types", ()), *(getattr(kind, "item_types", None) or ())]
        parts += [getattr(kind, name) for name in ("item_type", "key_type", "value_type") if hasattr(kind, name)]
    for part in parts:
        inside(part, known)
    return known


def every_document() -> dict[str, inspect.StructType | inspect.DataclassType]:
    """The types of documents, and of tables within them, by name; what people write is none."""
    known: dict[type, inspect.Type] = {}
    for kind in {*named_in_calls(), *below(Document)}:
        inside(inspect.type_info(kind), known)
    # An Image is its document and the folder of that: bob reads the document alone.
    return {
        f"{cls.__module__}.{cls.__name__}": kind
        for cls, kind in known.items()
        if isinstance(kind, inspect.StructType | inspect.DataclassType) and not issubclass(cls, (Declaration, Image))
    }


DOCUMENTS = every_document()


def sample(kind: inspect.Type) -> Any:
    """Something that a ``kind`` is read from, with all of its fields."""
    match kind:
        case inspect.StructType():
            tag = {} if kind.tag_field is None else {kind.tag_field: kind.tag}
            return {**tag, **{field.encode_name: sample(field.type) for field in kind.fields}}
        case inspect.DataclassType():
            return {field.encode_name: sample(field.type) for field in kind.fields}
        case inspect.NamedTupleType():
            return [sample(field.type) for field in kind.fields]
        case inspect.TupleType():
            return [sample(one) for one in kind.item_types]
        case inspect.VarTupleType() | inspect.ListType() | inspect.SetType() | inspect.FrozenSetType():
            return [sample(kind.item_type)]
        case inspect.DictType():
            return {sample(kind.key_type): sample(kind.value_type)}
        case inspect.UnionType():
            return sample(next(one for one in kind.types if not isinstance(one, inspect.NoneType)))
        case inspect.EnumType(cls=EnumType() as words):
            return next(iter(words)).value  # type: ignore[call-overload]
        case inspect.BoolType():
            return False
        case inspect.StrType() | inspect.BytesType():
            return "text"
        case inspect.AnyType():
            return {}
        case inspect.Metadata():
            return sample(kind.type)
    return 1  # a number, or a count


def is_older(field: inspect.Field) -> bool:
    return isinstance(field.default_factory, type(older(None)))


def test_the_documents_are_found() -> None:
    names = {name.rpartition(".")[2] for name in DOCUMENTS}
    assert {"WitnessDocument", "CrashState", "States", "Loss", "Search", "Answer", "ObservedDocument"} <= names
    assert len(DOCUMENTS) > 50


@pytest.mark.parametrize("kind", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_document_without_a_field_is_refused(kind: inspect.StructType | inspect.DataclassType) -> None:
    """A Document leaves out what has its default; a dataclass is written with all of its fields."""
    whole = sample(kind)
    decode(kind.cls, whole)
    for field in kind.fields:
        lacking = {name: value for name, value in whole.items() if name != field.encode_name}
        has_default = field.default is not NODEFAULT or field.default_factory is not NODEFAULT
        if is_older(field) or (has_default and not is_dataclass(kind.cls)):
            decode(kind.cls, lacking)
            continue
        with pytest.raises(ShapeError) as refused:
            decode(kind.cls, lacking)
        assert str(refused.value) == f"{field.encode_name!r} is missing"


def test_a_field_that_a_part_lacks_is_named_with_its_place() -> None:
    whole = sample(inspect.type_info(WitnessDocument))
    assert whole["crash"]["state"].pop("torn")
    with pytest.raises(ShapeError, match=r"^crash\.state: 'torn' is missing$"):
        decode(WitnessDocument, whole)
    states = [{"point": 0, "kept": [], "torn": []}, {"point": 0, "torn": []}]
    with pytest.raises(ShapeError, match=r"^\[1\]: 'kept' is missing$"):
        decode(tuple[CrashState, ...], states)
    with pytest.raises(ShapeError, match=r"^now\[1\]: 'kept' is missing$"):
        decode(dict[str, tuple[CrashState, ...] | None], {"before": None, "now": states})


def test_what_older_documents_lack_has_its_value() -> None:
    old = {"explored": 7, "legal_writes": 8, "legal_sectors": 9, "exhaustive": None}
    assert decode(States, old) == States(7, 8, 9, None, mounted=7, explored_writes=None)


def test_a_lean_document_leaves_out_what_has_its_default() -> None:
    assert decode(CrashState, {"point": 3}, lean=True) == CrashState(3)
    with pytest.raises(ShapeError, match=r"^'point' is missing$"):
        decode(CrashState, {}, lean=True)


def test_a_json_schema_wants_what_a_document_wants() -> None:
    assert described(CrashState)["$defs"]["CrashState"]["required"] == ["point", "kept", "torn"]
    assert described(CrashState, lean=True)["$defs"]["CrashState"]["required"] == ["point"]
    known = described(WitnessDocument)["$defs"]
    assert known["CrashTimeline"]["required"] == ["crash", "left_out", "events"]
    assert known["WriteEvent"]["properties"]["decides"]["default"] is False


def test_every_committed_document_is_read() -> None:
    counts = dict.fromkeys(("witnesses", "models", "results"), 0)
    for path in sorted((ROOT / "reports").rglob("*.json*")):
        if path.parent.name == "published":
            continue
        if path.name.startswith("witnesses"):
            every = bundle.within(path.parent)
            assert all(decode(WitnessDocument, {"claim": "", **bundle.load(one)}) for one in every)
            counts["witnesses"] += len(every)
        elif "models" in path.parts:
            counts["models"] += bool(model.load(path))
        else:
            data = path.read_bytes()
            plain = documents.opened(lzma.decompress(data) if path.suffix == ".xz" else data)
            counts["results"] += len(results_in(plain))
    assert min(counts.values()) > 8, counts
