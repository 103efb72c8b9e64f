"""What was found is in a witness, and a reference says its evidence anew from that: no guest is needed."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import samples_of_runs as samples
from bob.answer.document import to_json
from bob.answer.result import Environment, Result, Run
from bob.cli.main import run
from bob.cli.replay import keep_found
from bob.crash.device import DeviceModel, DeviceModelDocument
from bob.crash.state import CrashState
from bob.documents import opened
from bob.observe.observation import Node, Observation, OutcomeTable
from bob.run.replay import WitnessReplay
from bob.schema import decode, encode
from bob.witness import bundle
from bob.witness.document import read
from bob.witness.tree_document import FoundDocument
from bob.workload.pattern import contents, stale
from witness.test_witness import LOST, filled

CONTENTS = st.one_of(
    st.binary(max_size=40),
    st.builds(contents, st.integers(1, 300), st.integers(0, 9000), st.integers(0, 3000)),
    st.integers(0, 2000).map(bytes),
    st.integers(0, 2000).map(stale),
)
NODES = st.builds(
    Node,
    st.sampled_from(["file", "directory", "symlink", "other", "unreadable"]),
    st.integers(0, 2**40),
    st.integers(1, 9),
    st.integers(0, 2**40),
    CONTENTS,
    st.text(max_size=9),
    st.dictionaries(st.text(max_size=9), st.binary(max_size=40), max_size=2),
    st.none() | st.text(max_size=9),
    st.none() | st.integers(0, 0o777),
    st.none() | st.integers(0, 9),
    st.none() | st.integers(0, 9),
    st.none() | st.integers(0, 2**60),
)


@given(
    st.builds(
        Observation,
        st.booleans(),
        st.none() | st.text(max_size=9),
        st.none() | st.dictionaries(st.text(max_size=9), NODES, max_size=4),
        st.booleans(),
    )
)
def test_what_was_found_reads_as_it_was(found: Observation) -> None:
    document = json.loads(json.dumps(encode(FoundDocument.of(found, "6.1.0"))))
    assert decode(FoundDocument, document).observation == found
    assert document["kernel"] == "6.1.0"


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    """A reference with two ×, whose evidence is that of another bob, and a state that does not mount."""
    folder = tmp_path / "reference"
    torn = CrashState(0, (1,), ((2, ((0, 1),)),))
    made, keep = filled(
        (LOST, 2),
        (torn, 3),
        (CrashState(0, (2,)), 4),
        found=[samples.OUT_OF_ORDER, samples.TORN, samples.UNMOUNTABLE],
    )
    about = Run("x", "then", "later", "0.1", 1, 10)
    environment = Environment(**samples.ENVIRONMENT)
    device = DeviceModelDocument.of(DeviceModel())
    result = to_json(Result(about, environment, device, (made.result(made.cells()),)))
    for cell in result["subjects"][0]["answers"]:
        for way in cell.get("ways", ()):
            way["evidence"] = "as it was said once"
    witnesses = folder / "witnesses"
    witnesses.mkdir(parents=True)
    for name, document in keep.items():
        changed = document if name == "unmountable" else {**document, "evidence": "as it was said once"}
        (witnesses / f"{name}.json").write_text(json.dumps(changed))
    bundle.pack(witnesses)
    (folder / "result.json.xz").write_bytes(lzma.compress(json.dumps(result).encode()))
    return folder


def evidence(reference: Path) -> dict[str, str]:
    document = opened(lzma.decompress((reference / "result.json.xz").read_bytes()))
    cells = document["subjects"][0]["answers"]
    return {cell["claim"]["name"]: cell["ways"][0]["evidence"] for cell in cells if cell.get("ways")}


def test_a_reference_says_its_evidence_anew(reference: Path) -> None:
    refusal = read(reference / "witnesses" / "unmountable.json").evidence
    assert set(evidence(reference).values()) == {"as it was said once"}
    assert run(["judge", "--quiet", str(reference)]) == 3  # some rows were not probed
    said = evidence(reference)
    assert set(said) == {"single-sector-overwrite", "overwrite-any"}
    for name, words in said.items():
        again = read(reference / "witnesses" / f"{name}.json")
        assert again.found is not None
        assert again.evidence == words != "as it was said once"
    assert read(reference / "witnesses" / "unmountable.json").evidence == refusal


def test_a_reference_whose_witness_breaks_nothing_by_this_bob_is_refused_and_stays(
    reference: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = reference / "witnesses" / "overwrite-any.json"
    whole = OutcomeTable([samples.ALL], [samples.INITIAL, samples.OVERWRITTEN]).observation(0)
    bundle.save({path: {**bundle.load(path), "found": encode(FoundDocument.of(whole, "6.1.0"))}})
    before = (reference / "result.json.xz").read_bytes()
    assert run(["judge", "--quiet", str(reference)]) == 8
    assert "overwrite-any" in capsys.readouterr().err
    assert (reference / "result.json.xz").read_bytes() == before


def test_an_older_witness_keeps_what_a_replay_finds_and_one_that_does_not_show_stays(reference: Path) -> None:
    shows, not_again = (
        reference / "witnesses" / f"{name}.json" for name in ("overwrite-any", "single-sector-overwrite")
    )
    found = read(shows).found
    assert found is not None
    older = {path: {k: v for k, v in bundle.load(path).items() if k != "found"} for path in (shows, not_again)}
    bundle.save(older)
    assert read(shows).found is None
    one = WitnessReplay(str(shows), "6.1.0-57", "6.1.0-56", 1, 1, (), "said anew", found)
    keep_found([reference], [one, replace(one, witness=str(not_again), confirmed=0)])
    assert (read(shows).found, read(shows).evidence) == (found, "said anew")
    assert bundle.load(shows)["found"]["kernel"] == "6.1.0-57"
    assert bundle.load(not_again) == older[not_again]
    assert evidence(reference)["overwrite-any"] == "said anew"
