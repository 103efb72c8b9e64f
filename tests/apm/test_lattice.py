"""Which model is weaker than which: the order, reduced, and the picture of it."""

from __future__ import annotations

from itertools import combinations
from random import Random
from xml.etree import ElementTree as Xml

from bob.apm.builtin import builtin, names
from bob.apm.clauses import every_clause
from bob.apm.export.lattice import boxes, lattice, stronger, told
from tests.apm.cases import EVERYTHING, NOTHING, model, without_order

ONE, TWO, *_REST = every_clause()
SVG = "{http://www.w3.org/2000/svg}"


def test_a_model_is_tied_to_the_next_stronger_ones_only() -> None:
    chain = [model(NOTHING, "none"), model({ONE}, "one"), model({TWO}, "two"), model({ONE, TWO}, "both")]
    found = boxes([*chain, model(EVERYTHING, "all")])
    tied = {found[at].names[0]: sorted(found[one].names[0] for one in others) for at, others in stronger(found).items()}
    assert tied == {"none": ["one", "two"], "one": ["both"], "two": ["both"], "both": ["all"], "all": []}


def test_models_that_promise_the_same_share_a_box() -> None:
    found = boxes([model({ONE}, "b"), model({ONE}, "a"), model({TWO}, "c")])
    assert sorted(box.names for box in found) == [("a", "b"), ("c",)]
    assert "none is weaker" in told(found, stronger(found))


def test_the_papers_models_are_in_their_order() -> None:
    found = boxes(builtin(name) for name in names())
    said = told(found, stronger(found))
    for tie in ("btrfs weaker than ext4-o", "ext4-o weaker than ext3-o", "ext3-o weaker than ext3-j"):
        assert tie in said


def test_every_model_is_drawn_once_and_no_box_over_another() -> None:
    for seed in range(8):
        rng, sets = Random(seed), [NOTHING]
        for _ in range(16):
            sets.append(rng.choice(sets) | frozenset(rng.sample(every_clause(), rng.choice([0, 5, 50]))))
        picture = Xml.fromstring(lattice([model(one, f"model-{number}") for number, one in enumerate(sets)]))
        said = [element.text or "" for element in picture.iter(f"{SVG}text")]
        assert sorted(one for one in said if one.startswith("model-")) == sorted(f"model-{n}" for n in range(17))
        places = [[float(one.attrib[side]) for side in ("x", "y", "width", "height")] for one in _rects(picture)]
        assert not [two for two in combinations(places, 2) if _overlap(*two)]
        width, height = (float(picture.attrib[side]) for side in ("width", "height"))
        assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in places)
        found = boxes([model(one, "x") for one in sets])
        assert len(list(picture.iter(f"{SVG}path"))) == sum(map(len, stronger(found).values()))


def test_it_can_be_drawn_of_one_model_and_of_models_without_an_order() -> None:
    for models in ([model(NOTHING)], [model({ONE}, "one"), model({TWO}, "two")], [model(without_order(), "<&>")]):
        said = {element.text for element in Xml.fromstring(lattice(models)).iter(f"{SVG}text")}
        assert {one.name for one in models} <= said


def _rects(picture: Xml.Element) -> list[Xml.Element]:
    return list(picture.iter(f"{SVG}rect"))


def _overlap(one: list[float], other: list[float]) -> bool:
    x, y, width, height = one
    left, top, wide, high = other
    return x < left + wide and left < x + width and y < top + high and top < y + height
