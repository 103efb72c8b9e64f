"""The workloads that bob records for a request. A *probe* is a property with workloads that test it. Each property is a
row in a table of results."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from bob.catalogue.probe_files import layer_probes
from bob.catalogue.request import ProbeRequest
from bob.catalogue.sets import RowSet, probes_of
from bob.claim.property.rules import questions
from bob.workload.lacking import without
from bob.workload.operations import Workload
from bob.workload.simulation import simulate


def asked_workloads(request: ProbeRequest) -> list[Workload]:
    """Return the workloads that bob records for ``request``, each once.

    The result has all workloads of the user's own probes, and of the requested probes for layers. Layers are block
    devices between the file system and the disks. bob also looks at the workloads of all shipped probes in the
    requested set of rows. It takes each workload that tests a requested property, even if the workload belongs to the
    probe of another property. So the workloads that judge a shipped property do not depend on the other properties in
    the request."""
    asked, lacks = request.asked, tuple(request.configuration.fs.lacks)
    apart = [probe for probe in asked if probe in request.probes or probe in layer_probes()]
    own = {probe.property.name for probe in apart}
    shipped = tuple(probe.property.name for probe in asked if probe.property.name not in own)
    brought = (workload for probe in apart for workload in probe.workloads)
    return distinct((*_asking(request.rows, shipped, lacks), *_possible(brought, lacks)))


@cache  # cached, since the columns of a matrix ask for the same workloads
def _asking(rows: RowSet, names: tuple[str, ...], lacks: tuple[str, ...]) -> tuple[Workload, ...]:
    probes = probes_of(rows)
    properties = [probe.property for probe in probes if probe.property.name in names]
    every = distinct(_possible((workload for probe in probes for workload in probe.workloads), lacks))
    if len(properties) == len(probes):
        return tuple(every)
    histories = ((workload, simulate(workload)[0]) for workload in every)
    asking = [workload for workload, history in histories if any(questions(prop, history) for prop in properties)]
    # The workloads of the properties' own probes come first, since bob keeps the first of several witnesses that are
    # alike.
    own = {recorded_as(one) for probe in probes if probe.property.name in names for one in probe.workloads}
    return tuple(sorted(asking, key=lambda workload: recorded_as(workload) not in own))


def _possible(workloads: Iterable[Workload], lacks: Sequence[str]) -> Iterator[Workload]:
    without_these = (without(workload, lacks) for workload in workloads)
    return (workload for workload in without_these if workload is not None)


def distinct(workloads: Iterable[Workload]) -> list[Workload]:
    """Return ``workloads`` in order, but without repetitions. If two workloads differ only in their names, leave out
    the later one."""
    seen: dict[object, Workload] = {}
    for workload in workloads:
        seen.setdefault(recorded_as(workload), workload)
    return list(seen.values())


def recorded_as(workload: Workload) -> object:
    """Return everything in ``workload`` that its recording depends on, as a key. Two workloads have the same key if
    they differ only in the name of the workload or of its finish (the end of the recording, such as ``sync``)."""
    finish = workload.finish
    return workload.setup, workload.operations, finish.operations, finish.natural, finish.phase, workload.at
