"""A witness with too much in it becomes one with as much as the violation needs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bob.catalogue.probe_files import shipped_probes
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Question
from bob.crash.device import DeviceModel
from bob.crash.plan import writes_of_operations
from bob.progress import Silent
from bob.run.shrinker import Shrinker
from bob.subject import configuration
from bob.workload.language import parse
from bob.workload.operations import Finish

from .conftest import Inhabited
from .workloads import workload

pytestmark = pytest.mark.vm


def test_what_the_violation_does_not_need_is_left_out(recording: Inhabited) -> None:
    """ext4 does not wait for an overwrite before it commits a later create; the other operations are of no account."""
    [probe] = shipped_probes(("overwrite-any",))
    made = configuration("ext4", "", "data=ordered")
    claim = OfProperty(probe.property.name, Question((2,), 3), probe.property)
    shrinker = Shrinker(recording.agent, made, DeviceModel(), claim, 40)
    finish = Finish("fsync /d/new", parse("fsync /d/new"))
    much = replace(
        workload("mkdir /d/x; write /d/a 4096 4096; create /d/new; mkdir /d/y", finish),
        setup=parse("mkdir /d; mkdir /e; write /e/b 0 8192; write /d/a 0 16384; create /e/c"),
    )
    first = shrinker.showing(much)
    assert first is not None
    small = shrinker.smaller_setup(shrinker.fewer_operations(first, Silent()), Silent())
    small = shrinker.nearer(small)
    assert small.case.workload.operations == parse("write /d/a 4096 4096; create /d/new")
    assert small.case.workload.setup == parse("mkdir /d; write /d/a 0 16384")
    assert small.size.departure <= first.size.departure
    assert small.claim.operations == (1, 2)
    # What it hangs on is the data that was sent and is not there, and nothing else: here nothing of it was sent yet.
    pending = small.case.plan.points[small.state.point].pending
    data = writes_of_operations(small.case.plan.trace)[0].intersection(pending)
    assert small.causes == ()
    assert set(shrinker.explained(small).causes) == data - {*small.state.kept}
