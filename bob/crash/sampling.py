"""Random crash states: all legal states in a random order, or states drawn at random. The same seed gives the same
states. :mod:`bob.crash.drafts` proposes states by patterns, such as one lost write."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from random import Random

from bob.crash.drafts import Draft, SearchPoint, indexes
from bob.crash.legal import new_states
from bob.crash.state import Ranges

_ONES = re.compile("1+")
MOST_TORN_AT_ONCE = 3  # torn writes in a random state; with more, a violation would be harder to explain


def every_state(points: Sequence[SearchPoint], units: Sequence[int], rng: Random) -> Iterator[Draft]:
    """Yield every legal state once, in a random order. Write i can be torn into ``units[i]`` parts (1: not at all).
    This takes memory in proportion to the number of states."""
    ends = list(accumulate(_states(point, units) for point in points))
    order = list(range(ends[-1]))
    rng.shuffle(order)
    for number in order:
        at = bisect_right(ends, number)
        yield _state(points[at], units, number - (ends[at - 1] if at else 0))


def random_subsets(points: Sequence[SearchPoint], rng: Random) -> Iterator[Draft]:
    """Yield random subsets of the pending writes, without end. All sizes of a subset are equally likely, from none to
    all of the writes. Growth points (times when the set of possible states changes) with more pending writes are drawn
    more often, since points with few writes soon run out of new states."""
    weights = list(accumulate(len(point.writes) for point in points))
    while weights[-1]:
        [point] = rng.choices(points, cum_weights=weights)
        yield Draft(point.point, _subset(point, rng))


def random_tears(points: Sequence[SearchPoint], units: Sequence[int], rng: Random) -> Iterator[Draft]:
    """Yield random subsets of the pending writes, without end. In each, one to three writes are torn at random. Yield
    nothing if no write can be torn."""
    tearable = [(point, [index for index in point.writes if units[index] > 1]) for point in points]
    weights = list(accumulate(len(writes) for _, writes in tearable))
    while weights[-1]:
        [(point, writes)] = rng.choices(tearable, cum_weights=weights)
        kept = _subset(point, rng)
        torn = []
        for index in sorted(rng.sample(writes, rng.randint(1, min(len(writes), MOST_TORN_AT_ONCE)))):
            torn.append((index, ranges(_tear(units[index], rng))))
            kept &= ~(1 << index)
        yield Draft(point.point, kept, tuple(torn))


def ranges(bits: int) -> Ranges:
    return tuple([run.span() for run in _ONES.finditer(f"{bits:b}"[::-1])])


def _subset(point: SearchPoint, rng: Random) -> int:
    density = rng.random()
    return sum(1 << index for index in point.writes if rng.random() < density)


def _tear(units: int, rng: Random) -> int:
    every: int = (1 << units) - 1
    if rng.random() < 0.5:
        return rng.randrange(1, every)
    first, stop = sorted(rng.sample(range(units + 1), 2))
    inside = (1 << stop) - (1 << first)
    return inside if inside != every else 1 << rng.randrange(units)


def _states(point: SearchPoint, units: Sequence[int]) -> int:
    becoming = (units[index] for index in indexes(point.writes, point.becoming))
    return new_states(sum(units[index] for index in point.writes), sum(becoming))


def _state(point: SearchPoint, units: Sequence[int], number: int) -> Draft:
    """Return state number ``number`` among the states that are legal at ``point`` and not at the next point. In such a
    state, some unit of the writes ``point.becoming`` is missing. ``number`` combines two numbers, a low part and a high
    part. The low part says which units of these writes are on the medium. The high part says which units of the other
    pending writes are there."""
    first = indexes(point.writes, point.becoming)
    becoming = sum(units[index] for index in first)
    high, low = divmod(number, max((1 << becoming) - 1, 1))
    bits = high << becoming | low
    kept, torn = 0, []
    for index in (*first, *indexes(point.writes, ~point.becoming)):
        every = (1 << units[index]) - 1
        here = bits & every
        bits >>= units[index]
        if here == every:
            kept |= 1 << index
        elif here:
            torn.append((index, ranges(here)))
    return Draft(point.point, kept, tuple(sorted(torn)))
