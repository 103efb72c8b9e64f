"""A user's request. It has the configuration that bob should test (such as a file system with its options), and the
properties. run.json contains the request, so that bob can judge or resume the run later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bob.catalogue.probe_files import Probe
from bob.catalogue.sets import RowSet, asked_probes
from bob.claim.property.declaration import PropertyDocument
from bob.claim.property.vocabulary import row_of_today
from bob.crash.cuts import CutKind
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
    """The place where the checker of a program runs. The checker is a command that says whether the program accepts a
    tree of files. It runs on the trees that a model of a file system allows after a crash. AUTO is the host if the host
    can run the checker, otherwise guests."""

    AUTO = "auto"
    HOST = "host"
    GUEST = "guest"


@dataclass(frozen=True, slots=True)
class Host:
    """The place where guests run. ``connect`` is a libvirt URI (None: libvirt runs inside bob, without a daemon), and
    ``jobs`` is the number of parallel guests (None: as many as fit).

    If ``scheduler`` is set, it is the address of a Dask scheduler, and guests run on the machines of its cluster. bob
    then divides the run into parts for these machines, and ``jobs`` is the number of guests for each part (None: one).
    ``checks`` says whether a program's checker runs in guests or on the host."""

    connect: str | None = None
    jobs: int | None = None
    scheduler: str | None = None
    checks: CheckPlace = CheckPlace.AUTO


ANYWHERE = Host()


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A user's request: a configuration, the properties to test on it, and how many crash states bob explores.

    ``rows`` is a set of shipped properties. ``properties`` are names of properties in this set, and ``probes`` are the
    user's own probes. If both are empty, the request is for all properties of the set. ``budget`` is the number of
    mounts that bob may use for each workload. bob predicts the outcomes of some crash states (what a mount would show).
    To check the predictions, it mounts a part of the predicted states all the same; ``audit`` is this part (0 to 1). If
    ``recovery_crashes`` is not 0, bob chooses this many crash states, and also tests crashes during their recovery.
    ``recovery_depth`` says how many crashes in a row interrupt recovery. With 2, bob also chooses as many of the states
    that these crashes leave, and crashes the recovery of those. If ``by_cause`` is True, the result also lists
    findings: groups of violations that have the same cause. ``pace`` says how fast a program under test runs while bob
    records it. If ``only_durable`` is True, bob tries only crash states that lack every write that was not durable when
    the crash came. ``cut`` says which moments of a cluster's nodes belong together. If
    ``by_rules`` is True, bob leaves out what the cluster's rules set aside."""

    configuration: Subject
    properties: tuple[str, ...] = ()
    image: str = DEFAULT_IMAGE
    host: Host = ANYWHERE
    budget: int = DEFAULT_BUDGET
    seed: int = 1
    model: DeviceModel = DEFAULT_MODEL
    audit: float = DEFAULT_AUDIT
    recovery_crashes: int = 0
    recovery_depth: int = 1
    probes: tuple[Probe, ...] = ()
    rows: RowSet = RowSet.TABLE1
    by_cause: bool = False
    pace: Pace = Pace.UNDISTURBED
    only_durable: bool = False
    cut: CutKind = CutKind.ANY
    by_rules: bool = True

    @property
    def effort(self) -> Effort:
        return Effort(self.budget, self.seed, self.audit, only_durable=self.only_durable)

    @property
    def asked(self) -> tuple[Probe, ...]:
        """The requested probes. Raise UsageError for an unknown name."""
        return asked_probes(self.properties, self.probes, self.rows, on_layers=bool(self.configuration.layers))

    def check(self) -> None:
        """Raise UsageError for an unknown property."""
        _ = self.asked


class ProbeDocument(PropertyDocument, frozen=True):
    """A probe of the user as run.json stores it. It contains the whole probe, since the probe's file may be gone when
    the run is resumed."""

    row: int
    workloads: tuple[WorkloadDocument, ...]

    @classmethod
    def of_probe(cls, probe: Probe) -> ProbeDocument:
        workloads = tuple(map(WorkloadDocument.of, probe.workloads))
        return adapt(cls, PropertyDocument.of(probe.property), row=probe.row, workloads=workloads)

    @property
    def probe(self) -> Probe:
        """The probe that this document describes. Raise UsageError for a mistake in the document."""
        with mistakes_in("run.json", "see docs/extend.md"):
            return Probe(self.row, self.declared, tuple(one.workload for one in self.workloads))


class RequestDocument(ConfigurationDocument, frozen=True, kw_only=True):
    """A request as run.json stores it. The request's ``Host`` is not stored."""

    properties: tuple[str, ...]
    image: str
    budget: int
    seed: int
    write_cache: str
    atomic_write_bytes: int
    completion: Completion = field(default_factory=older(Completion.PROMPT))
    audit: Number = field(default_factory=older(DEFAULT_AUDIT))
    recovery_crashes: int = field(default_factory=older(0))
    recovery_depth: int = 1
    rows: RowSet = field(default_factory=older(RowSet.TABLE1))
    probes: tuple[ProbeDocument, ...] = field(default_factory=older(()))
    by_cause: bool = False
    pace: Pace = Pace.UNDISTURBED
    only_durable: bool = False
    cut: CutKind = CutKind.ANY
    by_rules: bool = True

    @classmethod
    def of_request(cls, request: ProbeRequest) -> RequestDocument:
        parts = ConfigurationDocument.of(request.configuration), DeviceModelDocument.of(request.model)
        of_parts = {name: getattr(part, name) for part in parts for name in part.__struct_fields__}
        return adapt(cls, request, **of_parts, probes=tuple(map(ProbeDocument.of_probe, request.probes)))

    def request(self, host: Host = ANYWHERE) -> ProbeRequest:
        """Return the request that this document describes, with ``host`` as its ``Host``. Raise UsageError if a later
        version of bob wrote the document."""
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
    """Return the request that the decoded JSON ``plain`` describes. Raise ShapeError if the JSON is incomplete, and
    UsageError if a later version of bob wrote it."""
    return decode(RequestDocument, plain).request(host)
