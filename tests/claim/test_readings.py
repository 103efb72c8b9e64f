"""Each outcome is read once, also if bob judges a workload while it still explores it."""

from __future__ import annotations

import pytest

import samples_of_runs as samples
from bob.catalogue.probe_files import shipped_probes
from bob.claim.property.judged_case import JudgedCase, evidence_states
from bob.claim.property.presence import Oracle
from bob.claim.property.readings import OutcomeReadings
from bob.crash.state import CrashState
from bob.observe.observation import Observation

PROPERTIES = tuple(probe.property for probe in shipped_probes())
FOUND = (samples.NOTHING, samples.UNMOUNTABLE, samples.OUT_OF_ORDER, samples.TORN, samples.ALL)


def test_a_later_judgement_reads_only_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Observation] = []
    plain = Oracle.read
    monkeypatch.setattr(Oracle, "read", lambda oracle, seen: read.append(seen) or plain(oracle, seen))
    case = samples.case()
    points = (CrashState(0), CrashState(21), CrashState(22), CrashState(23), case.complete)
    states = [(state, outcome) for outcome, state in enumerate(points)]
    first, every = (samples.observed(*states[:count], found=FOUND[:count]) for count in (3, 5))
    readings = OutcomeReadings.of(case)
    shown = evidence_states(PROPERTIES, JudgedCase.of(case, first, readings))
    assert shown, "this is not an empty test"
    assert len(read) == 2, "the state that does not mount has nothing to read"

    shared = JudgedCase.of(case, every, readings)
    assert len(read) == 4
    alone = JudgedCase.of(case, every)
    assert len(read) == 8
    judged = [bench.judge(prop) for bench in (shared, alone) for prop in PROPERTIES]
    assert judged[: len(PROPERTIES)] == judged[len(PROPERTIES) :]
    assert any(said and said.evidence for said in judged)
