"""Claims, held against what was seen; and shipped probes as one's own, which take less to record."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bob.catalogue.probe_files import Probe, shipped_probes
from bob.claim.claim import AfterMount, Claim
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Question
from bob.observe.observation import Observation
from bob.witness.document import Witness


@dataclass(frozen=True)
class Twice(AfterMount):
    """What is there after a crash during recovery, and where there was none."""

    without: Observation

    def undisturbed(self) -> Observation:
        return self.without


def broken(witness: Witness, observation: Observation, undisturbed: Observation | None = None) -> str | None:
    """What ``observation`` shows of the breach that ``witness`` is of."""
    view = AfterMount(observation) if undisturbed is None else Twice(observation, undisturbed)
    return witness.claim.broken(view, witness.context)


def of_property(name: str, *required: int, later: int | None = None, returned: int | None = None) -> OfProperty:
    """A shipped property, asked of these operations."""
    [probe] = shipped_probes((name,))
    return OfProperty(name, Question(required, later, returned), probe.property)


def question_of(claim: Claim) -> Question:
    """What is asked of particular operations."""
    assert isinstance(claim, OfProperty)
    return claim.question


def own(*names: str) -> tuple[Probe, ...]:
    """The shipped probes of these names, each property called my-NAME: only their own workloads are recorded."""
    return tuple(
        replace(probe, property=replace(probe.property, name=f"my-{probe.property.name}"))
        for probe in shipped_probes(names)
    )
