"""Which names can be there, against performing every set of operations one by one."""

from __future__ import annotations

from random import Random

import pytest

from bob.claim.property.possible import Group, groups
from bob.claim.property.sightings import Places
from bob.errors import BobError
from bob.workload.history import History
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload
from bob.workload.simulation import simulate

from .executed import executed

SETUP = "create /a; create /b; mkdir /d; create /d/a; mkdir /e; link /b /e/b"
FILES = ("/a", "/b", "/c", "/d/a", "/d/b", "/e/b")
FOLDERS = ("/d", "/e", "/f", "/d/f")


def history_of(operations: list[str]) -> History:
    finish = Finish("natural", natural=True)
    return simulate(Workload("made up", parse(SETUP), parse("; ".join(operations)), finish))[0]


def random_history(rng: Random, length: int) -> History:
    """Operations on a few names, each of which can be performed after the ones before it."""
    operations: list[str] = []
    history = None
    while len(operations) < length:
        one, other = rng.sample(FILES, 2)
        folder, place = rng.sample(FOLDERS, 2)
        choices = [f"create {one}", f"unlink {one}", f"rename {one} {other}", f"rename {one} {other}"]
        choices += [f"rename {one} {folder}", f"rename {folder} {one}", f"create {folder}"]
        choices += [f"link {one} {other}", f"mkdir {folder}", f"rmdir {folder}", f"rename {folder} {place}"]
        choices += [
            f"rename {one} {other} exchange",
            f"rename {folder} {place} exchange",
            f"rename {one} {folder} exchange",
        ]
        choices += [f"rename {one} {other} noreplace", f"rename {folder} {place} noreplace"]
        try:
            history = history_of([*operations, operation := rng.choice(choices)])
        except BobError:
            continue
        operations.append(operation)
    assert history is not None
    return history


def left_by_sets(history: History, group: Group) -> set[tuple[int | None, ...]]:
    """What is at the places of ``group`` after each set of operations that can have happened."""
    numbers = range(1, len(history.operations) + 1)
    every = ([n for n in numbers if mask >> n - 1 & 1] for mask in range(1 << len(numbers)))
    return {
        tuple(places.get(place) for place in group.places)
        for there in every
        if (places := executed(history, there)) is not None
    }


@pytest.mark.parametrize("seed", range(0, 400, 100))
def test_a_group_knows_just_what_sets_of_operations_leave(seed: int) -> None:
    exact = 0
    for number in range(seed, seed + 100):
        rng = Random(number)
        history = random_history(rng, rng.randint(2, 6))
        for group in groups(history, Places(history)):
            assert group._states is not None
            left, told = left_by_sets(history, group), set(group._states)
            assert left <= told, (number, group.numbers, history.operations)
            if len(group.numbers) == len(history.operations):
                exact += 1
                assert left == told, (number, history.operations)
    assert exact > 20
