"""Results of every kind, drawn."""

from __future__ import annotations

from hypothesis import strategies as st

from bob.agent.loss import Loss
from bob.agent.loss import LossCause as HowLost
from bob.answer.answer import Answer, ByRecording, CallWords, ClaimWords, Cross, ReliedOn, Way
from bob.answer.result import (
    Allowed,
    AskedProgram,
    Cause,
    Checks,
    Environment,
    Finding,
    Missed,
    Result,
    Run,
    SubjectResult,
)
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.crash.device import DeviceModel, DeviceModelDocument
from bob.observe.unknown_torn import TornCause
from bob.program.answer import Consequence
from bob.protocol.contrast import Explanation, Reliance
from bob.protocol.diagram import DiagramStep, Protocol, StepKind
from bob.trace.recording import Completion
from bob.workload.language import parse
from bob.workload.operations import At, Finish, Workload
from bob.workload.plain import WorkloadDocument

TEXT = st.text(max_size=8)
COUNT = st.one_of(st.integers(0, 50), st.integers(0, 2**90), st.just(2**12321 - 2**7))
STATES = st.builds(
    States,
    COUNT,
    COUNT,
    COUNT,
    st.sampled_from([None, "writes", "sectors"]),
    COUNT,
    st.none() | COUNT,
    COUNT,
    COUNT,
)
EXPLANATIONS = st.builds(
    Explanation,
    st.sampled_from(Reliance),
    *[st.lists(st.integers(0, 9), max_size=2).map(tuple)] * 2,
    st.lists(TEXT, max_size=1).map(tuple),
)
RELIED_ON = st.builds(
    ReliedOn,
    EXPLANATIONS,
    TEXT,
    st.lists(st.builds(CallWords, st.integers(0, 9), TEXT, st.lists(TEXT, max_size=2).map(tuple)), max_size=2).map(
        tuple
    ),
    st.integers(0, 9),
    TEXT,
)
WAYS = st.builds(
    Way,
    TEXT,
    COUNT,
    st.none() | TEXT,
    st.integers(0, 2),
    st.lists(COUNT, max_size=2).map(tuple),
    st.none() | st.sampled_from(Consequence),
    st.binary(max_size=6).map(lambda told: told.decode("latin-1")),
    st.integers(0, 9),
    st.lists(RELIED_ON, max_size=1).map(tuple),
    TEXT,
    st.dictionaries(TEXT, st.sampled_from(Cross), max_size=2),
)
_RECORDINGS = st.builds(
    ByRecording,
    TEXT,
    TEXT,
    st.sampled_from(Verdict),
    STATES,
    COUNT,
    st.none() | TEXT,
    st.booleans(),
    st.booleans(),
    st.none() | st.builds(Loss, st.sampled_from(HowLost), TEXT, TEXT),
    st.none() | st.sampled_from(TornCause),
)
CLAIMS = st.builds(
    ClaimWords, st.sampled_from(["property", "expectation", "checker", "unmountable", "trouble"]), TEXT, TEXT, TEXT
)
ANSWERS = st.builds(
    Answer,
    CLAIMS,
    st.sampled_from(Verdict),
    STATES,
    st.lists(WAYS, max_size=2).map(tuple),
    st.lists(_RECORDINGS, max_size=3).map(tuple),
    st.none() | TEXT,
)
_BESIDE = st.builds(Answer, CLAIMS, st.just(Verdict.FAILS), STATES, st.lists(WAYS, min_size=1, max_size=2).map(tuple))
_FINDINGS = st.builds(
    Finding,
    st.builds(Cause, TEXT, TEXT, TEXT, TEXT, TEXT, st.lists(TEXT, max_size=1).map(tuple)),
    TEXT,
    *[st.lists(TEXT, max_size=2).map(tuple)] * 2,
    st.integers(0, 9),
    TEXT,
    TEXT,
    st.integers(0, 3),
    TEXT,
    st.none() | TEXT,
)
_MODELS = st.builds(
    Allowed,
    TEXT,
    st.integers(0, 9),
    st.integers(0, 99),
    COUNT,
    st.booleans(),
    st.none() | COUNT,
    st.booleans(),
    st.lists(st.builds(Missed, TEXT, TEXT, st.booleans(), st.lists(TEXT, max_size=1).map(tuple)), max_size=1).map(
        tuple
    ),
)
SUBJECTS = st.builds(
    SubjectResult,
    *[TEXT] * 5,
    st.lists(ANSWERS, max_size=3).map(tuple),
    st.lists(_BESIDE, max_size=1).map(tuple),
    TEXT,
    st.lists(_FINDINGS, max_size=1).map(tuple),
    COUNT,
    COUNT,
    st.none() | st.builds(Checks, *[st.integers(0, 9)] * 3),
    st.none() | _MODELS,
    st.lists(TEXT, max_size=2).map(tuple),
)
_WORKLOADS = st.builds(
    lambda at: WorkloadDocument.of(
        Workload("w", parse("mkdir /d"), parse("create /a; fsync /a"), Finish("natural", natural=True), at)
    ),
    st.sampled_from(At),
)
_STEPS = st.builds(
    DiagramStep, st.integers(0, 9), st.sampled_from(StepKind), TEXT, TEXT, TEXT, TEXT, TEXT, st.integers(1, 3)
)
RESULTS = st.builds(
    Result,
    st.builds(Run, TEXT, TEXT, TEXT, TEXT, COUNT, COUNT, st.none() | TEXT),
    st.builds(Environment, *[TEXT] * 7),
    st.builds(lambda one: DeviceModelDocument.of(DeviceModel(completion=one)), st.sampled_from(Completion)),
    st.lists(SUBJECTS, max_size=2).map(tuple),
    st.none() | st.builds(AskedProgram, TEXT, TEXT, TEXT, st.lists(TEXT, max_size=2).map(tuple)),
    st.none() | _WORKLOADS,
    st.lists(st.builds(Protocol, TEXT, st.lists(_STEPS, max_size=2).map(tuple)), max_size=1).map(tuple),
)
