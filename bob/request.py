"""What a probe is asked for. Pure: it is also what run.json keeps, and what judging again and resuming start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bob.catalogue.probe_files import Probe, mistakes_in
from bob.catalogue.sets import Rows, asked_probes
from bob.claim.property.declaration import declaration, declared
from bob.claim.property.vocabulary import row_of_today
from bob.crash.device import DeviceModel
from bob.errors import UsageError
from bob.fields import MISSHAPEN
from bob.observe.effort import Effort
from bob.program.pace import Pace
from bob.store.run_directory import RunDirectory, no_probe
from bob.subject import DEFAULT_AUDIT, DEFAULT_BUDGET, Configuration, configuration, declared_by, file_systems
from bob.subject.stack import Stack
from bob.trace.completion import Completion
from bob.typed import array, typed
from bob.workload.plain import workload_from_json, workload_to_json

DEFAULT_IMAGE = "debian-bookworm"
"""The default guest image."""
DEFAULT_COMPLETION = Completion.YOUNGEST_FIRST
"""When the recorded disk tells that a write is done, by default (docs/facts.md, A disk that takes its time)."""
DEFAULT_MODEL = DeviceModel(completion=DEFAULT_COMPLETION)


@dataclass(frozen=True, slots=True)
class Host:
    """Where guests run: by which libvirt (None: bob's own), and how many side by side (None: as many as fit).

    With the address of a ``scheduler`` they run on the workers of a Dask cluster; then that is meant of each parcel
    that a worker does, and of None there is one guest.
    """

    connect: str | None = None
    jobs: int | None = None
    scheduler: str | None = None


ANYWHERE = Host()


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A configuration, properties, and how deep to look.

    ``properties`` are names of shipped ones among ``rows``, ``probes`` the user's own; where there are neither, all of
    ``rows``.
    ``budget`` is in mounts per workload, ``audit`` the share of predicted outcomes that is checked by more mounts;
    ``model`` is the device that is assumed. Of
    ``recovery_crashes`` crash states the recovery is crashed, too. ``by_cause``: what is found is also told by cause. A
    program is recorded at this ``pace``.
    """

    configuration: Configuration
    properties: tuple[str, ...] = ()
    image: str = DEFAULT_IMAGE
    host: Host = ANYWHERE
    budget: int = DEFAULT_BUDGET
    seed: int = 1
    model: DeviceModel = DEFAULT_MODEL
    audit: float = DEFAULT_AUDIT
    recovery_crashes: int = 0
    probes: tuple[Probe, ...] = ()
    rows: Rows = Rows.TABLE1
    by_cause: bool = False
    pace: Pace = Pace.UNDISTURBED

    @property
    def effort(self) -> Effort:
        """How much is done for each workload."""
        return Effort(self.budget, self.seed, self.audit)

    @property
    def asked(self) -> tuple[Probe, ...]:
        """The probes that are asked for. Raises UsageError for a name that is unknown."""
        return asked_probes(self.properties, self.probes, self.rows)

    def check(self) -> None:
        """Raise UsageError for an unknown property."""
        asked_probes(self.properties, self.probes, self.rows)


def request_to_json(request: ProbeRequest) -> dict[str, Any]:
    """What was asked, as a plain document; where guests ran does not matter later."""
    return {
        **configuration_to_json(request.configuration),
        "properties": list(request.properties),
        "image": request.image,
        "budget": request.budget,
        "seed": request.seed,
        **request.model.to_json(),
        "audit": request.audit,
        "recovery_crashes": request.recovery_crashes,
        "rows": request.rows.value,
        "probes": [_probe_to_json(probe) for probe in request.probes],
        **({"by_cause": True} if request.by_cause else {}),
        **({} if request.pace is Pace.UNDISTURBED else {"pace": request.pace.value}),
    }


def request_from_json(document: Mapping[str, Any], host: Host = ANYWHERE) -> ProbeRequest:
    """The request in a plain document, for guests on ``host``.

    Raises KeyError for one that is not whole, UsageError for one of a later bob.
    """
    found = ProbeRequest(
        configuration=configuration_from_json(document),
        properties=tuple(map(row_of_today, array(document["properties"]))),
        image=document["image"],
        host=host,
        budget=document["budget"],
        seed=document["seed"],
        model=DeviceModel.from_json(document),
        audit=document.get("audit", DEFAULT_AUDIT),
        recovery_crashes=document.get("recovery_crashes", 0),
        probes=tuple(map(_probe_from_json, document.get("probes", ()))),
        rows=Rows(document.get("rows", Rows.TABLE1)),
        by_cause=document.get("by_cause", False),
        pace=Pace(document.get("pace", Pace.UNDISTURBED)),
    )
    return typed(found)


def request_of(run: RunDirectory, host: Host = ANYWHERE) -> ProbeRequest:
    """What a run was asked, to go on with it on ``host``. Raises StoreError where it does not say."""
    try:
        return request_from_json(run.about()["request"], host)
    except UsageError:
        raise no_probe(run.path, run.about()) from None
    except MISSHAPEN:
        raise no_probe(run.path, run.about()) from None


def _probe_to_json(probe: Probe) -> dict[str, Any]:
    """A probe of the user's, whole: its file may be gone when the run is gone on with."""
    workloads = [workload_to_json(workload) for workload in probe.workloads]
    return {**declaration(probe.property), "row": probe.row, "workloads": workloads}


def _probe_from_json(document: Mapping[str, Any]) -> Probe:
    with mistakes_in("run.json"):
        return Probe(document["row"], declared(document), tuple(map(workload_from_json, document["workloads"])))


def configuration_to_json(made: Configuration) -> dict[str, Any]:
    """A configuration as a plain document; its file system's name, of one of the user's own the declaration."""
    return {
        "name": made.name,
        "fs": made.fs.name,
        "mkfs_options": made.mkfs_options,
        "mount_options": made.mount_options,
        "device": made.device,
        **({"declaration": made.fs.declaration} if made.fs.declaration else {}),
        **({} if made.stack is None else {"stack": made.stack.to_json()}),
    }


def configuration_from_json(document: Mapping[str, Any]) -> Configuration:
    """The configuration in a plain document. Raises UsageError for a file system that this bob does not know."""
    own = document.get("declaration")
    fs = declared_by(document["fs"], own) if own is not None else file_systems().get(document["fs"])
    if fs is None:
        hint = "it was shipped with another version of bob, or its file was in bob's own folder"
        raise UsageError(f"this bob knows no file system {document['fs']!r}", hint=hint)
    stack = Stack.from_json(document["stack"]) if "stack" in document else None
    options = document["mkfs_options"], document["mount_options"]
    return configuration(fs, *options, document["device"], document["name"], stack)
