"""The request of a probe. run.json has it, so that a run can be judged again or resumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bob.catalogue.probe_files import Probe
from bob.catalogue.sets import RowSet, asked_probes
from bob.claim.property.declaration import PropertyDocument
from bob.claim.property.vocabulary import row_of_today
from bob.crash.device import DeviceModel, DeviceModelDocument
from bob.observe.effort import Effort
from bob.program.program import Pace
from bob.schema import Number, adapt, decode, encode, field, mistakes_in, older
from bob.subject import DEFAULT_AUDIT, DEFAULT_BUDGET, Subject
from bob.subject.subject import ConfigurationDocument
from bob.trace.recording import Completion
from bob.workload.plain import WorkloadDocument

DEFAULT_IMAGE = "debian-bookworm"
DEFAULT_COMPLETION = Completion.YOUNGEST_FIRST  # docs/facts.md, A disk that takes its time
DEFAULT_MODEL = DeviceModel(completion=DEFAULT_COMPLETION)


class CheckPlace(StrEnum):
    """Where a program's checker looks at trees of models. AUTO: on the host, if it can, else in guests."""

    AUTO = "auto"
    HOST = "host"
    GUEST = "guest"


@dataclass(frozen=True, slots=True)
class Host:
    """Where guests run: ``connect`` is a libvirt URI (None: bob's own), ``jobs`` the number of parallel guests (None:
    as many as fit). With the address of a Dask ``scheduler`` they run on its workers; ``jobs`` then counts for each
    parcel (None: one). ``checks`` may spare guests some of their work."""

    connect: str | None = None
    jobs: int | None = None
    scheduler: str | None = None
    checks: CheckPlace = CheckPlace.AUTO


ANYWHERE = Host()


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A configuration, properties, and how much to explore. ``properties`` are shipped ones among ``rows``, ``probes``
    the user's own; without either, all of ``rows``. ``budget`` is in mounts per workload, ``audit`` the share of
    predictions that more mounts check. bob also crashes the recovery of ``recovery_crashes`` crash states. ``by_cause``
    also lists findings by cause; ``pace`` is for the recording of a program."""

    configuration: Subject
    properties: tuple[str, ...] = ()
    image: str = DEFAULT_IMAGE
    host: Host = ANYWHERE
    budget: int = DEFAULT_BUDGET
    seed: int = 1
    model: DeviceModel = DEFAULT_MODEL
    audit: float = DEFAULT_AUDIT
    recovery_crashes: int = 0
    probes: tuple[Probe, ...] = ()
    rows: RowSet = RowSet.TABLE1
    by_cause: bool = False
    pace: Pace = Pace.UNDISTURBED

    @property
    def effort(self) -> Effort:
        return Effort(self.budget, self.seed, self.audit)

    @property
    def asked(self) -> tuple[Probe, ...]:
        """The requested probes. Raise UsageError for an unknown name."""
        return asked_probes(self.properties, self.probes, self.rows)

    def check(self) -> None:
        """Raise UsageError for an unknown property."""
        asked_probes(self.properties, self.probes, self.rows)


class ProbeDocument(PropertyDocument, frozen=True):
    """A whole probe of the user's, because its file may be gone when the run is resumed."""

    row: int
    workloads: tuple[WorkloadDocument, ...]

    @classmethod
    def of_probe(cls, probe: Probe) -> ProbeDocument:
        workloads = tuple(map(WorkloadDocument.of, probe.workloads))
        return adapt(cls, PropertyDocument.of(probe.property), row=probe.row, workloads=workloads)

    @property
    def probe(self) -> Probe:
        """The probe. Raise UsageError for a mistake."""
        with mistakes_in("run.json", "see docs/extend.md"):
            return Probe(self.row, self.declared, tuple(one.workload for one in self.workloads))


class RequestDocument(ConfigurationDocument, frozen=True, kw_only=True):
    """A request without its ``Host``."""

    properties: tuple[str, ...]
    image: str
    budget: int
    seed: int
    write_cache: str
    atomic_write_bytes: int
    completion: Completion = field(default_factory=older(Completion.PROMPT))
    audit: Number = field(default_factory=older(DEFAULT_AUDIT))
    recovery_crashes: int = field(default_factory=older(0))
    rows: RowSet = field(default_factory=older(RowSet.TABLE1))
    probes: tuple[ProbeDocument, ...] = field(default_factory=older(()))
    by_cause: bool = False
    pace: Pace = Pace.UNDISTURBED

    @classmethod
    def of_request(cls, request: ProbeRequest) -> RequestDocument:
        parts = ConfigurationDocument.of(request.configuration), DeviceModelDocument.of(request.model)
        of_parts = {name: getattr(part, name) for part in parts for name in part.__struct_fields__}
        return adapt(cls, request, **of_parts, probes=tuple(map(ProbeDocument.of_probe, request.probes)))

    def request(self, host: Host = ANYWHERE) -> ProbeRequest:
        """Return the request, for guests on ``host``. Raise UsageError if a later version of bob wrote it."""
        return adapt(
            ProbeRequest,
            self,
            configuration=self.configuration,
            properties=tuple(map(row_of_today, self.properties)),
            host=host,
            model=adapt(DeviceModelDocument, self).model,
            probes=tuple(one.probe for one in self.probes),
        )


def request_to_json(request: ProbeRequest) -> dict[str, Any]:
    plain: dict[str, Any] = encode(RequestDocument.of_request(request))
    return plain


def request_from_json(plain: Mapping[str, Any], host: Host = ANYWHERE) -> ProbeRequest:
    """Return the request in plain JSON. Raise ShapeError if it is incomplete, UsageError if a later bob wrote it."""
    return decode(RequestDocument, plain).request(host)
