"""Why torn states are unknown: the block at which a state leaves what bob knows, and its kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import samples_of_runs as samples
from bob.blocks.naming import BlockKind, BlockName
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan
from bob.observe import unknown_torn as module
from bob.observe.predict import Gap, ReadNode, ReadTree
from bob.observe.unknown_torn import SAMPLED, CauseCount, TornCause, causes_of_unknown, new_places
from bob.trace.base import Base
from bob.trace.model import DeviceWrite
from bob.workload.pattern import FIRST_SETUP_NUMBER, contents
from crash.traces import at, trace_of

SECTORS = 32
OLD, SPARE, TWICE, OTHER = 0, 8, 16, 24
"""A block of each sort: with data before, without, written twice, and of no data. All have four sectors."""
KINDS = (BlockKind.DATA, BlockKind.DATA, BlockKind.DATA, BlockKind.DATA, BlockKind.METADATA)


def plan() -> Plan:
    image = bytearray(b"m" * SECTORS * 512)
    image[OLD * 512 : (OLD + 4) * 512] = contents(FIRST_SETUP_NUMBER, 0, 2048)
    writes = [
        (OLD, contents(1, 0, 2048)),
        (SPARE, contents(2, 0, 2048)),
        (TWICE, contents(3, 0, 2048)),
        (TWICE, contents(4, 0, 2048)),
        (OTHER, b"n" * 2048),
    ]
    traced = [DeviceWrite(n, sector, data, at(2 + 2 * n), at(3 + 2 * n)) for n, (sector, data) in enumerate(writes)]
    base = Base("b", SECTORS * 512, samples.packed([(0, bytes(image))]), "", "")
    return Plan(trace_of(traced, [], 1, 20, (SECTORS,)), base, DeviceModel())


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> list[BlockKind]:
    said = [*KINDS]
    monkeypatch.setattr(module, "names", lambda *_: [BlockName(kind, "", "") for kind in said])
    return said


def causes(
    read: Sequence[int], *, outcome: int = 0, mixture: TornCause | None = None, mounted: bool = True
) -> tuple[CauseCount, ...]:
    """What is said if recovery reads the blocks ``read``, and bob knows only what it does with nothing written."""
    made, known = plan(), ReadTree()
    [first, _last] = made.controls
    places = [np.flatnonzero((made.composer.sectors >= one) & (made.composer.sectors < one + 4)) for one in read]
    known.add(made.composer.contents(first), places, outcome)
    found = causes_of_unknown(made, samples.CONFIGURATION, known, 1, lambda _: mixture, lambda _: mounted, 0)
    assert found == causes_of_unknown(made, samples.CONFIGURATION, known, 1, lambda _: mixture, lambda _: mounted, 0)
    return found


@pytest.mark.parametrize(
    ("block", "cause"),
    [
        (OLD, TornCause.OVERWRITTEN),
        (SPARE, TornCause.APPENDED),
        (TWICE, TornCause.SEVERAL_WRITES),
        (OTHER, TornCause.METADATA),
    ],
)
def test_the_block_that_is_new_to_bob_decides(block: int, cause: TornCause) -> None:
    [(found, states)] = causes([block])
    assert found is cause
    assert SAMPLED * 3 // 4 < states <= SAMPLED


def test_a_journal_is_one_whatever_it_has(kinds: list[BlockKind]) -> None:
    kinds[0] = BlockKind.JOURNAL
    assert [one.cause for one in causes([OLD])] == [TornCause.JOURNAL]


def test_the_first_read_that_is_new_counts_and_the_most_frequent_cause_comes_first() -> None:
    found = causes([OTHER, OLD])
    assert [one.cause for one in found] == [TornCause.METADATA, TornCause.OVERWRITTEN]
    assert found[0].states > 10 * found[1].states
    assert sum(one.states for one in found) <= SAMPLED


@pytest.mark.parametrize("cause", [TornCause.MIXED, TornCause.BUDGET])
def test_mixtures_come_before_blocks(cause: TornCause) -> None:
    assert [one.cause for one in causes([OLD], mixture=cause)] == [cause]


def test_states_that_do_not_mount_are_known_but_not_explored() -> None:
    assert [one.cause for one in causes([], mounted=False)] == [TornCause.UNMOUNTABLE]
    assert causes([], mounted=True) == ()


def test_what_recovery_forgets_is_not_all_counted() -> None:
    made, known = plan(), ReadTree()
    known.add(made.composer.contents(made.controls[0]), [], 0)
    known.forgets = True
    legal = made.nothing_explored().legal_torn

    def uncounted(counted: int) -> list[CauseCount]:
        return [*causes_of_unknown(made, samples.CONFIGURATION, known, 1, lambda _: None, lambda _: True, counted)]

    [none] = uncounted(0)
    [some] = uncounted(legal // 4)
    assert (none.cause, some.cause) == (TornCause.UNCOUNTED, TornCause.UNCOUNTED)
    assert none.states - some.states == SAMPLED // 4
    assert uncounted(legal) == []


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=4, max_size=4), max_size=5),
    st.lists(st.integers(0, 2), min_size=4, max_size=4),
)
def test_new_places_are_those_that_differ_from_the_most_alike_content(known: list[list[int]], here: list[int]) -> None:
    def packed(content: list[int]) -> bytes:
        return np.array(content, dtype=np.int32).tobytes()

    places = np.array([3, 5, 7, 9])
    node = ReadNode(places, {packed(content): ReadNode() for content in known})
    found = new_places(Gap(node, packed(here))).tolist()
    differing = [
        [int(place) for place, one, other in zip(places, content, here, strict=True) if one != other]
        for content in known
    ]
    if known:
        assert found in differing
        assert len(found) == min(map(len, differing))
    else:
        assert found == places.tolist()


def test_where_nothing_was_read_yet_no_place_is_new() -> None:
    assert new_places(Gap(ReadNode(), b"")).tolist() == []
