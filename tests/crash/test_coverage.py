"""How many crash states there are: totals claim no more than each part."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bob.crash.coverage import States, total

COUNT = st.one_of(st.integers(0, 100), st.integers(2**53 - 2, 2**53 + 2), st.integers(0, 2**300))
LEVEL = st.sampled_from([None, "writes", "sectors"])
STATES = st.builds(States, COUNT, COUNT, COUNT, LEVEL, COUNT, st.none() | COUNT, COUNT, COUNT)


@given(st.lists(STATES, max_size=5))
def test_totals(parts: list[States]) -> None:
    whole = total(parts)
    assert whole.explored == sum(part.explored for part in parts)
    assert whole.legal_writes == sum(part.legal_writes for part in parts)
    assert whole.unmountable == sum(part.unmountable for part in parts)
    assert whole.unmountable_writes == sum(part.unmountable_writes for part in parts)
    told = [part.explored_writes for part in parts if part.explored_writes is not None]
    assert whole.explored_writes == (sum(told) if len(told) == len(parts) else None)
    assert whole.legal_sectors == sum(part.legal_sectors for part in parts)
    order = [None, "writes", "sectors"]
    assert whole.exhaustive == (min((part.exhaustive for part in parts), key=order.index) if parts else None)
