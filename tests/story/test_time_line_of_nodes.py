"""The time line of a cluster's crash names the node of each write and flush."""

from __future__ import annotations

import pytest

from bob.crash.device import DeviceModel
from bob.crash.legal import GrowthPoint, growth_points
from bob.crash.state import CrashState
from bob.report.story import of_node, words
from bob.story.timeline import FlushEvent, WriteEvent, timeline
from bob.trace.model import DeviceWrite, Flush
from crash.traces import at, content, trace_of


@pytest.mark.parametrize("of_nodes", [True, False])
def test_a_write_and_a_flush_say_whose_disk_it_is(*, of_nodes: bool) -> None:
    """Two nodes write to the same sector of their disks, one after the other. Without nodes nothing is said."""
    writes = [DeviceWrite(n, 0, content("ab"), at(1 + 2 * n), at(2 + 2 * n), device=n) for n in (0, 1)]
    trace = trace_of(writes, [Flush(at(6), at(7), device=1)], 0, 9, (4, 4))
    points = growth_points(trace, DeviceModel())
    line = timeline(trace, points[-1], CrashState(len(points) - 1), [("metadata", "block")] * 2, of_nodes=of_nodes)
    found = [(type(one), of_node(one)) for one in line.events if isinstance(one, WriteEvent | FlushEvent)]
    nodes = [" of node 0", " of node 1", " of node 1"] if of_nodes else ["", "", ""]
    assert found == [*zip((WriteEvent, WriteEvent, FlushEvent), nodes, strict=True)]
    assert all(of_node(one) in words(one) for one in line.writes)


def test_a_node_that_crashes_earlier_does_nothing_later() -> None:
    """Both nodes write and flush in the same way, but node 1 crashes before it flushes."""
    writes = [DeviceWrite(n, 0, content("ab"), at(1 + 2 * n), at(2 + 2 * n), device=n) for n in (0, 1)]
    trace = trace_of(writes, [Flush(at(6), at(7), device=0), Flush(at(6), at(7), device=1)], 0, 9, (4, 4))
    point = GrowthPoint(9, (0,), (1,), (), 0, 0, moments=(9, 3))
    line = timeline(trace, point, CrashState(0), [("metadata", "block")] * 2, of_nodes=True)
    flushes = [one.node for one in line.events if isinstance(one, FlushEvent)]
    assert ([(one.node, one.end is None) for one in line.writes], flushes) == ([(0, False), (1, True)], [0])
