"""The request of a probe. It is in run.json; judging again and resuming start from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
"""The default guest image."""
DEFAULT_COMPLETION = Completion.YOUNGEST_FIRST
"""When the recorded disk reports a write as done, by default (docs/facts.md, A disk that takes its time)."""
DEFAULT_MODEL = DeviceModel(completion=DEFAULT_COMPLETION)


@dataclass(frozen=True, slots=True)
class Host:
    """Where guests run: by which libvirt (None: bob's own), and how many in parallel (None: as many as fit).

    With the address of a ``scheduler`` they run on the workers of a Dask cluster. Then ``jobs`` counts for each parcel
    of a worker, and None is one guest.
    """

    connect: str | None = None
    jobs: int | None = None
    scheduler: str | None = None


ANYWHERE = Host()


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A configuration, properties, and how deep to look.

    ``properties`` are names of shipped ones among ``rows``, ``probes`` the user's own; without either, all of ``rows``.
    ``budget`` is in mounts per workload, ``audit`` the share of predicted outcomes that more mounts check. ``model`` is
    the assumed device. The recovery of ``recovery_crashes`` crash states is crashed, too. ``by_cause``: findings are
    also listed by cause. A program is recorded at this ``pace``.
    """

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
        """The effort for each workload."""
        return Effort(self.budget, self.seed, self.audit)

    @property
    def asked(self) -> tuple[Probe, ...]:
        """The requested probes. Raises UsageError for an unknown name."""
        return asked_probes(self.properties, self.probes, self.rows)

    def check(self) -> None:
        """Raise UsageError for an unknown property."""
        asked_probes(self.properties, self.probes, self.rows)


class ProbeDocument(PropertyDocument, frozen=True):
    """A whole probe of the user's: its file may be gone when the run is resumed."""

    row: int
    workloads: tuple[WorkloadDocument, ...]

    @property
    def probe(self) -> Probe:
        """The probe. Raises UsageError for a mistake."""
        with mistakes_in("run.json", "see docs/write-a-probe.md"):
            return Probe(self.row, self.declared, tuple(one.workload for one in self.workloads))


class RequestDocument(ConfigurationDocument, frozen=True, kw_only=True):
    """The request; later runs need not know where guests ran."""

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
        """Return the document of ``request``."""
        parts = ConfigurationDocument.of(request.configuration), DeviceModelDocument.of(request.model)
        of_parts = {name: getattr(part, name) for part in parts for name in part.__struct_fields__}
        probes = tuple(
            adapt(
                ProbeDocument,
                PropertyDocument.of(one.property),
                row=one.row,
                workloads=_documents(one),
            )
            for one in request.probes
        )
        return adapt(cls, request, **of_parts, probes=probes)

    def request(self, host: Host = ANYWHERE) -> ProbeRequest:
        """Return the request, for guests on ``host``. Raises UsageError for one of a later bob."""
        return adapt(
            ProbeRequest,
            self,
            configuration=self.configuration,
            properties=tuple(map(row_of_today, self.properties)),
            host=host,
            model=adapt(DeviceModelDocument, self).model,
            probes=tuple(one.probe for one in self.probes),
        )


def _documents(probe: Probe) -> tuple[WorkloadDocument, ...]:
    return tuple(map(WorkloadDocument.of, probe.workloads))


def request_to_json(request: ProbeRequest) -> dict[str, Any]:
    """Return ``request`` as plain JSON."""
    plain: dict[str, Any] = encode(RequestDocument.of_request(request))
    return plain


def request_from_json(plain: Mapping[str, Any], host: Host = ANYWHERE) -> ProbeRequest:
    """Return the request in plain JSON, for guests on ``host``.

    Raises ShapeError for one that is not whole, UsageError for one of a later bob.
    """
    return decode(RequestDocument, plain).request(host)
