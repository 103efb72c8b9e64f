"""Documents whose fields are of the wrong type are refused, whichever the field: any text would be taken for true."""

from __future__ import annotations

import copy
import json
import lzma
from collections.abc import Callable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from bob import counts
from bob.answer.document import from_json as result_from_json
from bob.answer.document import to_json as result_to_json
from bob.apm import model
from bob.documents import opened
from bob.errors import MalformedError
from wording import text_with

ROOT = Path(__file__).parents[1]
WRONG: dict[type, tuple[Any, ...]] = {
    bool: ("no", "", 0, 1, []),
    int: ("3x", True, 1.5, []),
    str: (5, True, ["a"], {}),
    list: ("no", 3, {"0": 1}),
    dict: ("no", 3, []),
}
OF_A_MODEL = {
    "meaning",  # it is made anew
    "source",  # for people
}


def of(path: str) -> Any:
    packed = (ROOT / path).read_bytes()
    return opened(lzma.decompress(packed) if path.endswith(".xz") else packed)


def small_model() -> Any:
    document = of("reports/models/osdi14-linux-6.1/ext4-ordered.json")
    clauses = document["clauses"]
    promised = next(one for one in clauses if one["promised"] and not one.get("reason"))
    refuted = next(one for one in clauses if one.get("refuted_by"))
    doubted = next(one for one in clauses if one.get("reason"))
    return {**document, "clauses": [promised, refuted, doubted]}


def small_result() -> Any:
    document = of("tests/answer/osdi14-1.json.xz")
    column = next(one for one in document["configurations"] if one["troubles"] or one["unmountable"]["states"])
    cells = [{**cell, "workloads": cell["workloads"][:1]} for cell in column["properties"][:2]]
    for cell in cells:
        for row in cell["workloads"]:
            row["states"] = column["states"][row["states"]]
    alone = {name: value for name, value in column.items() if name != "states"}
    return {**document, "configurations": [{**alone, "properties": cells}]}


def small_programs() -> Any:
    every = of("tests/answer/models-1.json.xz")["programs"]
    return next(one for one in every if one["models"] and one["configurations"] and one["configurations"][0]["notes"])


def of_today(document: Any) -> Any:
    """The same result as a document of today."""
    return json.loads(json.dumps(result_to_json(result_from_json(document))))


def places(value: Any, free: Set[str], path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Each field of a document that is not ``free``."""
    if path:
        yield path
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in free:
                yield from places(inner, free, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from places(inner, free, (*path, number))


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    document = copy.deepcopy(document)
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("document", "free", "read"),
    [
        (small_model(), OF_A_MODEL, model.from_json),
        (small_result(), set(), result_from_json),
        (of_today(small_result()), set(), result_from_json),
        (small_programs(), set(), result_from_json),
        (of_today(small_programs()), set(), result_from_json),
    ],
    ids=["a model", "a result of before", "a result", "programs of before", "programs"],
)
def test_a_field_of_another_type_is_refused(document: Any, free: Set[str], read: Callable[[Any], Any]) -> None:
    read(document)
    taken = []
    for path in places(document, free):
        value: Any = document
        for key in path:
            value = value[key]
        for wrong in WRONG.get(type(value), ()):
            if wrong == 5 and (str(value).isdecimal() or "^" in str(value)):
                continue  # a count may be a number, too
            try:
                read(changed(document, path, wrong))
            except MalformedError:
                continue
            taken.append((path, value, wrong))
    assert "\n".join(map(str, taken)) == ""


def test_no_is_no_promise() -> None:
    document = small_model()
    document["clauses"][0]["promised"] = "no"
    with pytest.raises(MalformedError) as refused:
        model.from_json(document)
    assert text_with(str(refused.value), "no") == snapshot(
        "this model is damaged: clauses[0].promised: expected bool, got 'no'"
    )


@pytest.mark.parametrize("text", [True, 3.7, "3.7", "1_000", " 3", "", "3 "])
def test_what_is_no_count(text: Any) -> None:
    with pytest.raises(ValueError, match="is not a count"):
        counts.read(text)
