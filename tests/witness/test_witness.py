"""Witnesses: what a column finds is written so that it can be shown again, and what is damaged is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pytest
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.catalogue.probe_files import shipped_probes
from bob.catalogue.sets import RowSet, asked_probes
from bob.claim import kinds
from bob.claim.claim import NO_PROPERTY, Claim, Context, PropertyLookup, Refusal, View
from bob.claim.expectation.expected import ExpectationClaim
from bob.claim.mounting import Mountable, Sound
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Question
from bob.claim.verdict import Verdict
from bob.crash.state import CrashState
from bob.errors import MalformedError, StoreError, UsageError
from bob.judge.column import Column
from bob.observe.observation import Observation
from bob.observe.observations import StateTrouble, TroubleKind
from bob.run.replay import lines
from bob.schema import decode
from bob.story.timeline import CrashTimeline, Fate
from bob.trace.model import SECTOR_BYTES
from bob.trace.recording import Completion
from bob.witness import document as witness
from bob.witness.document import ShownState
from bob.workload.operations import At, Workload
from claims import broken, question_of
from mediums import image_of
from wording import text_with

LOST = CrashState(1, (3,))
"""The overwrite's data is durable here; the made-up outcomes below do not care."""


def column(keep: dict[str, Mapping[str, Any]], *names: str) -> Column:
    def kept(name: str, document: Mapping[str, Any]) -> str:
        assert name not in keep
        keep[name] = json.loads(json.dumps(document))
        return f"witnesses/{name}.json"

    properties = [probe.property for probe in shipped_probes(names)]
    return Column(samples.CONFIGURATION, properties, samples.ENVIRONMENT, kept)


def filled(
    *more: tuple[CrashState, int | None], found: list[str], lost: str | None = None
) -> tuple[Column, dict[str, Any]]:
    keep: dict[str, Any] = {}
    made = column(keep)
    seen = samples.observed(
        (samples.FIRST, 0), (samples.LAST, 1), *more, found=[samples.NOTHING, samples.ALL, *found], lost=lost
    )
    made.add(samples.case(), seen)
    return made, keep


def test_a_column() -> None:
    made, keep = filled(
        (LOST, 2),
        (CrashState(0, (1,), ((2, ((0, 1),)),)), 3),
        (CrashState(0, (2,)), 4),
        found=[
            samples.OUT_OF_ORDER,
            samples.TORN,
            samples.UNMOUNTABLE,
        ],
    )
    cells = {cell.name: cell for cell in made.cells()}
    result = made.result(tuple(cells.values()))
    assert list(cells) == [probe.property.name for probe in shipped_probes()]
    verdicts = {name: cell.verdict for name, cell in cells.items()}
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.FAILS} == {
        "single-sector-overwrite",
        "overwrite-any",
    }
    assert verdicts["directory-op"] is Verdict.HOLDS
    assert verdicts["append-any"] is Verdict.UNKNOWN
    assert cells["append-any"].reason == snapshot("no workload asks for it")
    assert cells["overwrite-any"].witness == "witnesses/overwrite-any.json"
    assert cells["overwrite-any"].evidence == keep["overwrite-any"]["evidence"]
    assert set(keep) == {"single-sector-overwrite", "overwrite-any", "unmountable"}
    refused = result.unmountable
    assert refused is not None
    assert (refused.states, refused.witness) == (1, "witnesses/unmountable.json")
    assert text_with(refused.evidence, "EXT4-fs") == snapshot("Structure needs cleaning: EXT4-fs (loop): bad geometry")
    assert (result.name, result.effective_mount_options, result.notes) == (
        "ext4-ordered",
        "rw,data=ordered",
        (samples.CONFIGURATION.fs.note,),
    )


@dataclass(frozen=True, slots=True)
class Kept(Claim):
    """A made-up claim of a kind of its own: a name is there, whatever happens."""

    path: str
    kind = "kept"
    is_shown_by_the_tree = True
    no_shrinking = Refusal("a name that is not there", "it is made up")
    asks = ("What is asked for", "The name is there.")

    @property
    def name(self) -> str:
        return f"kept-{self.path[1:]}"

    @property
    def title(self) -> str:
        return f"{self.path} is not there"

    def broken(self, view: View, context: Context) -> str | None:
        del context
        tree = view.observation.tree or {}
        return None if self.path in tree else f"{len(tree)} names are"

    def sentence(self, line: CrashTimeline, context: Context, found: Observation | None) -> str:
        del found
        return f"{len(line.events)} events, {len(context.workload.operations)} operations."

    def role(self, number: int) -> str:
        return str(number)

    def to_json(self) -> dict[str, Any]:
        return {**NO_PROPERTY, "kept": self.path}

    @classmethod
    def read(cls, document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> Self | None:
        del workload, known
        return cls(document["kept"]) if "kept" in document else None


def test_a_new_kind_of_claim_takes_one_line_to_be_read_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    showing = ShownState(samples.case(), LOST, Kept("/n"), "2 names are")
    path = stored(
        tmp_path,
        witness.write(
            showing,
            environment=samples.ENVIRONMENT,
        ),
    )
    with pytest.raises(MalformedError) as refused:
        witness.read(path)
    assert text_with(str(refused.value).replace(str(tmp_path), "TMP"), "kept") == snapshot(
        "TMP/witness.json: its claim is of the kind 'kept', which this bob does not know"
    )
    monkeypatch.setattr(kinds, "KINDS", {Kept.kind: Kept.read, **kinds.KINDS})
    assert witness.read(path).claim == Kept("/n")


def test_a_refused_workload_leaves_nothing_to_hold() -> None:
    made, _keep = filled(found=[])
    assert {cell.verdict for cell in made.cells() if cell.recordings} == {Verdict.HOLDS}
    made.refuse(samples.WORKLOAD, "the recording was refused")
    refused = [cell for cell in made.cells() if cell.recordings]
    assert {(cell.verdict, cell.reason) for cell in refused} == {(Verdict.UNKNOWN, "the recording was refused")}


def test_the_witness_is_of_the_simplest_workload_and_state() -> None:
    keep: dict[str, Any] = {}
    made = column(keep, "overwrite-any")
    found = [samples.NOTHING, samples.ALL, samples.OUT_OF_ORDER]
    for states in [
        [(CrashState(0, (1, 2)), 2)],
        [(CrashState(0, (2,), ((1, ((0, 1),)),)), 2), (CrashState(0, (2,)), 2)],
    ]:
        made.add(samples.case(), samples.observed(*states, found=found))  # type: ignore[arg-type]
    made.cells()
    assert decode(CrashState, keep["overwrite-any"]["crash"]["state"]) == CrashState(0, (1, 2))


def document(name: str = "overwrite-any") -> dict[str, Any]:
    _made, keep = filled(
        (CrashState(0, (1,), ((2, ((0, 1),)),)), 2),
        (CrashState(0, (2,)), 3),
        found=[samples.OUT_OF_ORDER, samples.UNMOUNTABLE],
    )
    _made.result(_made.cells())
    return dict(keep[name])


def stored(path: Path, content: Any) -> Path:
    file = path / "witness.json"
    file.write_text(json.dumps(content))
    return file


def test_a_witness_of_what_was_not_durable_reads_back_the_same(tmp_path: Path) -> None:
    [probe] = asked_probes(("returned.entry",), (), RowSet.DURABILITY)
    workload = replace(samples.WORKLOAD, at=At.END)
    question = Question((2,), returned=2)
    claim = OfProperty(probe.property.name, question, probe.property)
    showing = witness.ShownState(samples.case(workload), LOST, claim, "it is gone")
    written = witness.write(
        showing,
        environment=samples.ENVIRONMENT,
    )
    read = witness.read(stored(tmp_path, written))
    assert (read.claim, read.workload) == (showing.claim, workload)
    gone, there = samples.observed(found=[samples.NOTHING, samples.ALL]).findings.observations()
    assert broken(read, gone) is not None
    assert broken(read, there) is None
    with pytest.raises(MalformedError) as refused:
        witness.read(stored(tmp_path, {**written, "question": {**written["question"], "returned": 3}}))
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot(
        "TMP/witness.json is damaged: its question names operations that its workload lacks"
    )


def test_a_witness_reads_back_the_same(tmp_path: Path) -> None:
    read = witness.read(stored(tmp_path, document()))
    assert read.claim.name == "overwrite-any"
    assert question_of(read.claim) == Question((1,), 2)
    assert (read.kernel, read.configuration, read.workload) == (
        samples.ENVIRONMENT["kernel"],
        samples.CONFIGURATION,
        samples.WORKLOAD,
    )
    assert image_of(read.base) == image_of(samples.BASE)
    assert read.base.name == samples.BASE.name
    assert read.inodes == (samples.BEFORE, samples.AFTER)
    image = bytearray(image_of(read.base))
    for sector, data in read.runs:
        image[sector * SECTOR_BYTES : sector * SECTOR_BYTES + len(data)] = data
    wanted = bytearray(image_of(samples.BASE))
    wanted[3 * 512 : 6 * 512] = b"b" * 1536
    wanted[8 * 512 : 9 * 512] = samples.TRACE.writes[1].data
    wanted[20 * 512 : 21 * 512] = b"j" * 512
    assert bytes(image) == bytes(wanted)


def test_what_people_read_in_it() -> None:
    line = decode(CrashTimeline, document()["crash"]["timeline"])
    assert [(one.first, one.fate, one.operations) for one in line.writes if one.fate is not Fate.DURABLE] == [
        (1, Fate.KEPT, (1,)),
        (2, Fate.TORN, ()),
    ]
    assert line.writes[-1].kept == "unit 0"
    assert line.crash == 1.5
    assert document()["device_model"] == {"write_cache": "volatile", "atomic_write_bytes": 512, "completion": "prompt"}


@pytest.mark.parametrize("completion", Completion)
def test_it_says_how_the_disk_completed_writes(tmp_path: Path, completion: Completion) -> None:
    made = {**document(), "device_model": {**document()["device_model"], "completion": completion.value}}
    assert witness.read(stored(tmp_path, made)).model.completion is completion


def test_one_that_is_older_than_the_choice_was_recorded_on_a_prompt_disk(tmp_path: Path) -> None:
    made = {**document(), "device_model": {"write_cache": "volatile", "atomic_write_bytes": 512}}
    assert witness.read(stored(tmp_path, made)).model.completion is Completion.PROMPT


def test_one_that_needs_a_disk_that_nobody_knows_is_damaged(tmp_path: Path) -> None:
    made = {**document(), "device_model": {**document()["device_model"], "completion": "never"}}
    with pytest.raises(MalformedError) as refused:
        witness.read(stored(tmp_path, made))
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot(
        "TMP/witness.json is damaged: device_model.completion: invalid value 'never'; expected one of prompt, youngest-first, oldest-first"
    )


def test_a_replay_says_whether_it_shows(tmp_path: Path) -> None:
    read = witness.read(stored(tmp_path, document()))
    seen = samples.observed(found=[samples.OUT_OF_ORDER, samples.ALL, samples.UNMOUNTABLE]).findings.observations()
    assert broken(read, seen[0]) == read.evidence
    assert broken(read, seen[1]) is None
    assert broken(read, seen[2]) is None
    assert lines(seen[0]) == (
        "mounted, 2 names",
        snapshot("/a: file, 4,096 B: initial data (4,096 B)"),
        snapshot("/n: file, 0 B: nothing"),
    )
    unmountable = witness.read(stored(tmp_path, document("unmountable")))
    assert unmountable.claim == Mountable()
    assert broken(unmountable, seen[0]) is None
    assert "does not mount" in (broken(unmountable, seen[2]) or "")


EXPECTED = "exists /n  implies\ncontent /a = new"


def test_what_is_wrong_with_states_that_mount_is_told_with_a_witness_of_the_easiest(tmp_path: Path) -> None:
    keep: dict[str, Any] = {}
    made = column(keep)
    seen = samples.observed((samples.FIRST, 0), (samples.LAST, 1), (LOST, 1), found=[samples.NOTHING, samples.ALL])
    troubles = (
        StateTrouble(2, "kernel-message", "EXT4-fs error: inode 12"),
        StateTrouble(1, "kernel-message", "EXT4-fs error: inode 7"),
        StateTrouble(1, "kernel-message", "EXT4-fs error: another"),
        StateTrouble(0, "removal", "cannot be removed: /a: Input/output error"),
    )
    seen = replace(
        seen, troubles=troubles, normal=("as ever 7", "as ever 8"), passing=("once 1", "once 2"), examined=(1,)
    )
    for workload in (samples.WORKLOAD, replace(samples.WORKLOAD, name="other")):
        made.add(samples.case(workload), seen)
    result = made.result(made.cells())
    assert [(kind, way.states, way.evidence, way.witness) for kind, way in result.troubles()] == [
        ("kernel-message", 2, "EXT4-fs error: another", "witnesses/kernel-message.json"),
        ("kernel-message", 4, "EXT4-fs error: inode 7", "witnesses/kernel-message-2.json"),
        ("removal", 2, snapshot("cannot be removed: /a: Input/output error"), "witnesses/removal.json"),
    ]
    assert (result.examined, result.examinable) == (2, 4)  # of each workload the other tree was not
    assert ["as ever" in note or "once" in note for note in result.notes if "not a finding" in note] == [True, True]
    path = tmp_path / "one.json"
    path.write_text(json.dumps(keep["kernel-message"]))
    found = witness.read(path)
    assert (found.claim, found.state) == (Sound(TroubleKind.KERNEL_MESSAGE), samples.LAST)
    assert found.title == snapshot("a crash state that mounted, but the kernel warned")
    without = {name: value for name, value in keep["removal"].items() if name != "trouble"}
    path.write_text(json.dumps(without))
    with pytest.raises(MalformedError) as refused:
        witness.read(path)
    assert text_with(str(refused.value).replace(str(tmp_path), "TMP"), "trouble") == snapshot(
        "TMP/one.json is damaged: its claim has the fields of the kind 'unmountable', but names the kind 'trouble'"
    )
    path.write_text(json.dumps({name: value for name, value in without.items() if name != "claim"}))
    assert witness.read(path).claim == Mountable()


def test_a_witness_of_an_expectation(tmp_path: Path) -> None:
    made = {
        **document("unmountable"),
        "claim": "expectation",
        "expectation": EXPECTED,
        "evidence": "/a has initial data (4,096 B)",
    }
    read = witness.read(stored(tmp_path, made))
    assert read.claim == ExpectationClaim(EXPECTED)
    assert read.title == "«exists /n implies content /a = new» does not hold"
    found = [samples.OUT_OF_ORDER, samples.ALL, samples.NOTHING, samples.UNMOUNTABLE]
    seen = samples.observed(found=found).findings.observations()
    told = [broken(read, observation) for observation in seen]
    assert told == [snapshot("/n is empty; /a has initial data (4,096 B)"), None, None, None]


def test_what_is_written_of_an_expectation() -> None:
    showing = ShownState(samples.case(), CrashState(0), ExpectationClaim("exists /n"), "evidence")
    made = witness.write(
        showing,
        environment=samples.ENVIRONMENT,
    )
    assert (made["property"], made["question"], made["expectation"]) == (None, None, "exists /n")
    assert "expectation" not in document()


@pytest.mark.parametrize("expectation", ["exists", "", "exists /x", "content /a = op2", 5, ["exists /n"]])
def test_witnesses_of_what_cannot_be_asked_are_refused(tmp_path: Path, expectation: Any) -> None:
    with pytest.raises(MalformedError):
        witness.read(stored(tmp_path, {**document("unmountable"), "expectation": expectation}))


def changed(path: str, value: Any) -> dict[str, Any]:
    made = document()
    *above, last = [int(word) if word.isdigit() else word for word in path.split(".")]
    table: Any = made
    for word in above:
        table = table[word]
    table[last] = value(table[last]) if callable(value) else value
    return made


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("data.rest", lambda text: text[: len(text) // 2]),
        ("data.rest", lambda text: text[:-8]),
        ("data.sectors", lambda sectors: sectors + 1),
        ("data.patterns", [[0, 1, 10**9, 0]]),
        ("crash.timeline", {}),
        ("crash.timeline.events", [{"event": "heard"}]),
        ("data", "?"),
        ("data", 5),
        ("runs", lambda runs: runs[:-1]),
        ("runs", lambda runs: [*runs, [5, 1]]),
        ("runs", 5),
        ("runs.0", [3]),
        ("runs.0.0", -1),
        ("runs.0.0", 62),
        ("base", None),
        ("base.image", lambda text: text[: len(text) // 2]),
        ("base.length", 512),
        ("base.name", lambda _name: None),
        ("workload", {}),
        ("workload.operations", ["write /a"]),
        ("question.required", [3]),
        ("question.required", [0]),
        ("question.later", 9),
        ("question", {}),
        ("question", {"required": [1, 2], "later": None}),
        ("question", {"required": [1], "later": None, "returned": 2}),
        ("configuration.fs", "zfs"),
        ("configuration", []),
        ("environment", {}),
        ("inodes_before", None),
        ("inodes_after", {"/a": "eleven"}),
        ("property", 5),
    ],
)  # fmt: skip
def test_damaged_witnesses_are_refused(tmp_path: Path, path: str, value: Any) -> None:
    file = stored(tmp_path, changed(path, value))
    with pytest.raises(MalformedError) as caught:
        witness.read(file)
    assert str(file) in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint


MAY_BE_MISSING = ("claim", "device_model", "crash", "probe", "status_before", "status_after", "found")


@pytest.mark.parametrize("field", [name for name in document() if name not in MAY_BE_MISSING])
def test_missing_fields_are_refused(tmp_path: Path, field: str) -> None:
    made = document()
    del made[field]
    with pytest.raises(MalformedError):
        witness.read(stored(tmp_path, made))


def test_a_property_that_is_not_shipped_is_known_from_the_witness_alone(tmp_path: Path) -> None:
    made = document()
    of_mine = {**made["probe"], "name": "mine"}
    mine = witness.read(stored(tmp_path, {**made, "property": "mine", "probe": of_mine}))
    [probe] = shipped_probes(("overwrite-any",))
    assert mine.claim == OfProperty("mine", Question((1,), 2), replace(probe.property, name="mine"))
    with pytest.raises(MalformedError) as refused:
        witness.read(stored(tmp_path, {**made, "probe": of_mine}))
    assert text_with(str(refused.value).replace(str(tmp_path), "TMP"), "mine") == snapshot(
        "TMP/witness.json is damaged: it is about the property 'overwrite-any', but declares 'mine'"
    )


def test_an_older_witness_is_of_a_shipped_property(tmp_path: Path) -> None:
    made = document()
    del made["probe"]
    [probe] = shipped_probes(("overwrite-any",))
    older = witness.read(stored(tmp_path, made)).claim
    assert isinstance(older, OfProperty) and older.resolved == probe.property
    unknown = witness.read(stored(tmp_path, {**made, "property": "mine"}))
    assert unknown.claim.asks == (snapshot("What mine asks for"), "")
    [seen] = samples.observed(found=[samples.OUT_OF_ORDER]).findings.observations()
    with pytest.raises(UsageError) as refused:
        broken(unknown, seen)
    assert text_with(str(refused.value), "mine") == snapshot("unknown property 'mine'")


@pytest.mark.parametrize("content", [[], "x", None, {}, {"schema": "bob.witness/2"}, {"schema": "bob.result/1"}])
def test_other_documents_are_refused(tmp_path: Path, content: Any) -> None:
    with pytest.raises(MalformedError, match="has schema" if isinstance(content, dict) else "is not a JSON object"):
        witness.read(stored(tmp_path, content))


def test_files_that_are_none(tmp_path: Path) -> None:
    file = stored(tmp_path, document())
    for length in range(0, file.stat().st_size, 997):
        (tmp_path / "cut.json").write_bytes(file.read_bytes()[:length])
        with pytest.raises(MalformedError, match="is not a witness"):
            witness.read(tmp_path / "cut.json")
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    with pytest.raises(MalformedError) as refused:
        witness.read(tmp_path / "binary")
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot(
        "TMP/binary is not a witness: Expecting value: line 1 column 1 (char 0)"
    )
    with pytest.raises(MalformedError) as refused:
        witness.read(tmp_path / "gone")
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot(
        "cannot read TMP/gone: No such file or directory"
    )
    with pytest.raises(MalformedError) as refused:
        witness.read(tmp_path)
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot("cannot read TMP: Is a directory")


def test_the_witnesses_of_a_run(tmp_path: Path) -> None:
    for name in ("one/witnesses/b.json", "one/witnesses/a.json", "witnesses/c.json", "other.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    within = [tmp_path / name for name in ("one/witnesses/a.json", "one/witnesses/b.json", "witnesses/c.json")]
    assert witness.files_in([tmp_path / "other.json", tmp_path]) == [tmp_path / "other.json", *within]
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError) as refused:
        witness.files_in([tmp_path / "empty"])
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot("cannot find a witness in TMP/empty")
