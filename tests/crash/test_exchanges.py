"""Of the tuples that an exchange of like nodes turns into each other, one stays: against all permutations."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from bob.crash.exchanges import Exchanges
from bob.crash.tuples import Chosen

NODES, TREES = 4, 3
TUPLES = st.lists(st.tuples(*[st.integers(0, TREES - 1)] * NODES, st.integers(0, 1)), unique=True)
FILES = st.lists(st.permutations(["a", "b", "c"]) | st.just(["a", "b", "d"]), min_size=NODES, max_size=NODES)
ALIKE = st.sampled_from([(), ((1, 2),), ((1, 2, 3),), ((0, 3), (1, 2))])


def exchanged(chosen: Chosen, files: list[list[str]], alike: tuple[tuple[int, ...], ...]) -> set[Chosen]:
    """By brute force: each tuple whose nodes have the files of ``chosen`` after some exchange of like nodes."""
    found = set()
    for order in permutations(range(NODES)):
        if any(to != at and not any({to, at} <= {*group} for group in alike) for at, to in enumerate(order)):
            continue
        wanted = [files[to][chosen[to]] for to in order]
        if all(one in files[at] for at, one in enumerate(wanted)):
            found.add((*(files[at].index(one) for at, one in enumerate(wanted)), chosen[-1]))
    return found


@given(TUPLES, FILES, ALIKE)
def test_one_of_the_tuples_that_like_nodes_can_exchange_stays(
    tuples: list[Chosen], files: list[list[str]], alike: tuple[tuple[int, ...], ...]
) -> None:
    kept = list(Exchanges(alike, files).distinct(tuples))
    expected: list[Chosen] = []
    for one in tuples:
        if not exchanged(one, files, alike) & {*expected}:
            expected.append(one)
    assert kept == expected
    assert alike or kept == tuples
