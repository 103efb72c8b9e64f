"""One answer to one question: a property that is asked alone is judged on what the whole table judges it on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bob.catalogue.probe_files import Probe
from bob.catalogue.sets import Rows, probes_of
from bob.claim.property.rules import Property, questions
from bob.request import ProbeRequest
from bob.run.prober import asked_workloads, distinct, recorded_as
from bob.subject import configuration
from bob.subject.file_system import file_systems
from bob.workload.language import parse
from bob.workload.operations import At, Finish, Workload
from bob.workload.simulation import simulate


def judged_on(prop: Property, workloads: list[Workload]) -> list[Workload]:
    """The workloads on which a property is judged where these are recorded, whatever they are called."""
    return [replace(workload, name="") for workload in workloads if questions(prop, simulate(workload)[0])]


@pytest.mark.parametrize("fs", sorted({"ext4", *(name for name, fs in file_systems().items() if fs.lacks)}))
@pytest.mark.parametrize("rows", [Rows.TABLE1, Rows.UNITS])
def test_a_property_is_judged_alone_on_what_it_is_judged_on_in_the_table(fs: str, rows: Rows) -> None:
    made = configuration(fs)
    every = asked_workloads(ProbeRequest(made, rows=rows))
    for probe in probes_of(rows):
        alone = asked_workloads(ProbeRequest(made, (probe.property.name,), rows=rows))
        assert set(judged_on(probe.property, alone)) == set(judged_on(probe.property, every))
        assert len(alone) == len(judged_on(probe.property, alone)), "and nothing is recorded that nobody asks for"


def test_directory_operations_are_asked_for_by_other_probes_too() -> None:
    """What was wrong: a dozen workloads of its own said holds where the table had ×."""
    [probe] = [probe for probe in probes_of(Rows.TABLE1) if probe.property.name == "directory-op"]
    alone = asked_workloads(ProbeRequest(configuration("btrfs"), ("directory-op",)))
    assert len(alone) > 2 * len(probe.workloads)


def test_the_whole_table_has_all_workloads_in_the_order_of_its_probes() -> None:
    every = asked_workloads(ProbeRequest(configuration("ext4")))
    assert every == distinct(workload for probe in probes_of(Rows.TABLE1) for workload in probe.workloads)
    alone = asked_workloads(ProbeRequest(configuration("ext4"), ("append-any",)))
    assert len(alone) == len(set(alone))
    assert set(alone) <= set(every)


def test_the_workloads_of_a_propertys_own_probe_come_first() -> None:
    [probe] = [probe for probe in probes_of(Rows.TABLE1) if probe.property.name == "overwrite-any"]
    alone = asked_workloads(ProbeRequest(configuration("ext4"), ("overwrite-any",)))
    assert [recorded_as(one) for one in alone[: len(probe.workloads)]] == [recorded_as(one) for one in probe.workloads]
    assert len(alone) > len(probe.workloads)


def test_a_probe_of_ones_own_brings_its_workloads_and_no_others() -> None:
    [shipped] = [probe for probe in probes_of(Rows.TABLE1) if probe.property.name == "append-append-same-file"]
    mine = Workload("mine", parse("create /a"), parse("write /a 0 4K; append /a 4K"), Finish("natural", natural=True))
    assert mine.at is At.ANY
    own = Probe(99, replace(shipped.property, name="my-appends"), (mine,))
    request = ProbeRequest(configuration("ext4"), probes=(own,))
    assert asked_workloads(request) == [mine]
    beside = asked_workloads(replace(request, properties=(shipped.property.name,)))
    assert beside[-1] == mine
    assert beside[:-1] == asked_workloads(ProbeRequest(configuration("ext4"), (shipped.property.name,)))
