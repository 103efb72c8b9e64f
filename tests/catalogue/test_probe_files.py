"""Probe files: those that are shipped ask what Table 1 asks, and a mistake in one is one line that names the file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from bob.catalogue.probe_files import (
    check_own,
    layer_probes,
    load,
    load_rows,
    parse_finish,
    probe_names,
    shipped_probes,
)
from bob.catalogue.request import ProbeRequest, request_from_json, request_to_json
from bob.catalogue.sets import RowSet, asked_probes, probes_of
from bob.catalogue.workloads import asked_workloads, distinct
from bob.claim.idempotence import IDEMPOTENT
from bob.claim.property.declaration import PropertyDocument
from bob.claim.property.rules import Property, Rule, questions
from bob.claim.property.subjects import Span
from bob.claim.property.vocabulary import Call
from bob.errors import UsageError
from bob.schema import decode, encode
from bob.subject import configuration
from bob.workload import operations as ops
from bob.workload.kinds import ChangeKind
from bob.workload.language import parse
from bob.workload.operations import At, Workload
from bob.workload.simulation import simulate
from wording import text_with

TABLE_1 = (
    "single-sector-overwrite",
    "single-sector-append",
    "single-block-overwrite",
    "single-block-append",
    "multi-block-append",
    "multi-block-prefix-append",
    "directory-op",
    "overwrite-any",
    "append-rename-any",
    "trunc-append-any",
    "append-append-same-file",
    "append-any",
    "directory-op-any",
)
PROBES = shipped_probes()
NAMES = pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.property.name)


def test_the_shipped_probes_are_the_rows_of_table_1_and_others_below_it() -> None:
    assert probe_names()[:14] == (*TABLE_1, "collateral")
    assert [probe.row for probe in PROBES] == list(range(1, len(PROBES) + 1))
    assert [probe.property.family for probe in PROBES[:13]] == ["atomicity"] * 7 + ["ordering"] * 6


@NAMES
def test_every_property_is_tried_with_every_kind_of_finish(probe) -> None:  # type: ignore[no-untyped-def]
    finishes = [workload.finish for workload in probe.workloads]
    assert any(finish.natural for finish in finishes)
    for kind in (ops.Fsync, ops.Sync):
        assert any(isinstance(operation, kind) for finish in finishes for operation in finish.operations), kind


@NAMES
def test_every_workload_asks_for_its_property(probe) -> None:  # type: ignore[no-untyped-def]
    for workload in probe.workloads:
        assert questions(probe.property, simulate(workload)[0]), workload.name


@NAMES
def test_rules_and_families_agree(probe) -> None:  # type: ignore[no-untyped-def]
    assert (probe.property.rule is Rule.ORDERED) == (probe.property.family == "ordering")


def test_names_are_chosen_in_the_order_of_the_table() -> None:
    chosen = shipped_probes(("append-any", "directory-op"))
    assert [probe.property.name for probe in chosen] == ["directory-op", "append-any"]
    with pytest.raises(UsageError) as refused:
        shipped_probes(("append",))
    assert text_with(str(refused.value), "append") == snapshot("unknown property 'append'")


GOOD = {
    "name": "one",
    "family": "atomicity",
    "meaning": "it is so",
    "judge": {"rule": "atomic", "subject": "append", "spans": ["sector"]},
    "workloads": [{"name": "w", "tree": "small", "operations": ["append /d/s 60"], "finish": ["natural", "sync"]}],
}


def written(path: Path, document: dict[str, object]) -> Path:
    """``document`` as TOML: its top level, then [judge], then [[workloads]]."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in document.items() if key not in ("judge", "workloads")]
    if isinstance(judge := document.get("judge"), dict):
        lines += ["[judge]", *(f"{key} = {json.dumps(value)}" for key, value in judge.items())]
    elif "judge" in document:
        lines.insert(0, f"judge = {json.dumps(judge)}")
    if isinstance(workloads := document.get("workloads"), list):
        for workload in workloads:
            lines += ["[[workloads]]", *(f"{key} = {json.dumps(value)}" for key, value in workload.items())]
    elif "workloads" in document:
        lines.insert(0, f"workloads = {json.dumps(workloads)}")
    file = path / "mine.toml"
    file.write_text("\n".join(lines))
    return file


def test_a_good_probe(tmp_path: Path) -> None:
    probe = load(written(tmp_path, GOOD))
    assert probe.row == 1000
    assert [workload.finish.name for workload in probe.workloads] == ["natural", "sync"]


def without(key: str) -> dict[str, object]:
    return {name: value for name, value in GOOD.items() if name != key}


def judged(**more: object) -> dict[str, object]:
    return {**GOOD, "judge": {**GOOD["judge"], **more}}  # type: ignore[dict-item]


def there_and_back(prop: Property) -> Property:
    return decode(PropertyDocument, json.loads(json.dumps(encode(PropertyDocument.of(prop))))).declared


def working(**more: object) -> dict[str, object]:
    workload = {**GOOD["workloads"][0], **more}  # type: ignore[index]
    return {**GOOD, "workloads": [{name: value for name, value in workload.items() if value is not None}]}


@pytest.mark.parametrize(
    ("document", "says"),
    [
        *((without(key), f"'{key}' is missing") for key in GOOD),
        *((working(**{key: None}), f"'{key}' is missing") for key in ("name", "operations", "finish")),
        ({**GOOD, "judge": {"rule": "atomic"}}, "'subject' is missing"),
        ({**GOOD, "judge": {"subject": "append"}}, "'rule' is missing"),
        ({**GOOD, "span": ["sector"]}, "unknown key 'span'"),
        (judged(span=["sector"]), "unknown key 'span'"),
        (working(finsh=["sync"]), "unknown key 'finsh'"),
        (judged(rule="sometimes"), "invalid value 'sometimes'; expected one of atomic, prefix, ordered"),
        (judged(subject="appends"), "invalid value 'appends'; expected one of overwrite, append, "),
        (judged(subject=5), "judge.subject: invalid value 5; expected one of overwrite, append, "),
        (judged(spans=["page"]), "invalid value 'page'; expected one of sector, block, blocks"),
        (judged(spans="sector"), "judge.spans: expected array, got 'sector'"),
        (judged(later="sometime"), "invalid value 'sometime'; expected one of any, append-same-file"),
        (judged(rule="prefix", subject="overwrite"), "the rule 'prefix' is only for appends"),
        (judged(subject="directory"), "no workload has an operation that the property is about"),
        ({**GOOD, "judge": "atomic"}, "judge: expected object, got 'atomic'"),
        ({**GOOD, "workloads": 5}, "workloads: expected array, got 5"),
        ({**GOOD, "workloads": []}, "'workloads' is missing"),
        ({**GOOD, "row": "first"}, "row: expected int, got 'first'"),
        ({**GOOD, "name": ""}, "name: '' is not one line of text"),
        ({**GOOD, "meaning": "one\ntwo"}, "meaning: 'one\\ntwo' is not one line of text"),
        ({**GOOD, "name": "../one"}, "invalid property name '../one'"),
        ({**GOOD, "name": "unmountable"}, "bob reserves the name 'unmountable'"),
        (judged(then_renamed=True), "only the rule 'ordered' can have"),
        (judged(kinds=["appends"]), "invalid value 'appends'; expected one of overwrite, append, truncate-down, "),
        (judged(kinds="append"), "judge.kinds: expected array, got 'append'"),
        (judged(later_kinds=["append"]), "only the rule 'ordered' can have"),
        (judged(relations=["same-file"]), "only the rules 'ordered' and 'durable' can have 'relations'"),
        (judged(rule="ordered", relations=["file"]), "invalid value 'file'; expected one of same-file, "),
        (judged(call="fsync-file"), "the rule 'durable' needs a 'call', and no other rule takes one"),
        (judged(rule="durable"), "the rule 'durable' needs a 'call'"),
        (judged(rule="durable", call="fsync"), "invalid value 'fsync'; expected one of fsync-file, "),
        (judged(rule="durable", call="sync", kinds=["append"]), "takes neither 'subject' nor 'spans'"),
        ({**GOOD, "judge": {"rule": "durable", "call": "sync", "kinds": ["append"]}}, "no workload has an operation"),
        (working(at="later"), "invalid value 'later'; expected one of end, any"),
        (working(first="mkdir /x"), "workloads[0].first: expected array, got 'mkdir /x'"),
        (working(first=["mkdir"]), "'mkdir' has too many or too few words"),
        (judged(rule="ordered", then_renamed="yes"), "judge.then_renamed: expected bool, got 'yes'"),
        (working(tree="tiny"), "unknown tree 'tiny'"),
        (working(setup=["mkdir /d"]), "a tree or a setup, not both"),
        (working(operations=["appendd /d/s 60"]), "unknown operation 'appendd' in 'appendd /d/s 60'"),
        (working(operations=["append /d/s"]), "'append /d/s' has too many or too few words"),
        (working(operations=["append /gone/s 60"]), "'append /gone/s 60': /gone does not exist"),
        (working(operations="append /d/s 60"), "operations: expected array, got 'append /d/s 60'"),
        (working(operations=[5]), "operations[0]: expected str, got 5"),
        (working(operations=[]), "operations must not be empty"),
        (working(later=["mkdir"]), "'mkdir' has too many or too few words"),
        (working(finish="natural"), "finish: expected array, got 'natural'"),
        (working(finish=["naturally"]), "unknown operation 'naturally'"),
        (working(finish=["natural soon"]), "invalid finish 'natural soon'"),
        (working(finish=["natural -1"]), "invalid finish 'natural -1'"),
        (working(finish=["natural inf"]), "invalid finish 'natural inf'"),
        (working(finish=["fsync"]), "'fsync' has too many or too few words"),
        (working(finish=["fsync /gone"]), "/gone does not exist"),
        (working(finish=["mkdir /x"]), "invalid finish 'mkdir /x'"),
        (working(finish=["fdatasync"]), "'fdatasync' has too many or too few words"),
        (
            working(operations=["append /d/s 60", "create /d/f{9..8}"]),
            "9 is larger than 8; write the smaller number first",
        ),
        (working(setup=["mkdir /d", "create /d/f{1..300}"], tree=None), "too many operations"),
        (working(finish=[""]), "finish[0]: '' is not one line of text"),
        (working(operations=["append /d/s 60", "sync"], finish=["fsync later"]), "'sync' leaves no file to sync"),
    ],
)
def test_mistakes_name_the_file(tmp_path: Path, document: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(written(tmp_path, document))
    assert caught.value.message.startswith("mine.toml: ")
    assert says in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint


def test_a_durable_property_and_all_combinations(tmp_path: Path) -> None:
    judge = {"rule": "durable", "call": "fsync-file", "kinds": ["append"], "relations": ["same-file"]}
    workload = {
        "name": "any",
        "setup": ["mkdir /d", "create /d/f"],
        "first": ["append /d/f 10", "append /d/f 20; mkdir /d/x"],
        "operations": ["setxattr /d/f user.x 4"],
        "later": ["fsync /d/f", "sync"],
        "finish": ["natural", "natural 2.5"],
        "at": "end",
    }
    made = load(written(tmp_path, {**GOOD, "judge": judge, "workloads": [workload]}))
    assert (made.property.call, made.property.kinds) == (Call.FSYNC_FILE, (ChangeKind.APPEND,))
    assert [workload.title for workload in made.workloads[3:5]] == snapshot(
        ["any: append /d/f 10: sync (natural 2.5)", "any: append /d/f 20; mkdir /d/x: fsync /d/f (natural)"]
    )
    assert len(made.workloads) == 8
    assert {workload.at for workload in made.workloads} == {At.END}
    assert made.workloads[4].operations == parse("append /d/f 20; mkdir /d/x; setxattr /d/f user.x 4; fsync /d/f")


SYNCED = """
rows = [
    { name = "every", family = "f", meaning = "m", judge = { rule = "durable", call = "sync", kinds = ["create", "unlink"] } },
    { name = "new", family = "f", meaning = "m", judge = { rule = "durable", call = "fsync-file", kinds = ["create"] } },
]
[[workloads]]
name = "w"
setup = ["mkdir /d", "create /d/f"]
pairs = ["create /d/n", "unlink /d/f", "append /d/f 10"]
operations = []
later = ["sync", "fsync /d/n"]
finish = ["natural"]
at = "end"
"""


def test_every_operation_and_every_two_in_either_order(tmp_path: Path) -> None:
    file = tmp_path / "rows.toml"
    file.write_text(SYNCED)
    every, new = load_rows(file)
    one, two = "create /d/n", "unlink /d/f"
    append = "append /d/f 10"
    both = [(one, two), (one, append), (two, one), (two, append), (append, one), (append, two)]
    asked = [parse(f"{pair}; sync") for pair in (one, two, *map("; ".join, both))]
    assert [workload.operations for workload in every.workloads] == asked, "none that a file system would refuse"
    assert {workload.operations[-1] for workload in new.workloads} == {ops.Fsync("/d/n")}
    assert all(ops.Create("/d/n") in workload.operations for workload in new.workloads)
    assert [probe.row for probe in (every, new)] == [1, 2]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"every"', '"every one"', "invalid property name"),
        ('"fsync-file"', '"syncfs"', "no workload has an operation that 'new' is about"),
        ('rule = "durable", call', 'rule = "atomic", call', "the rule 'durable' needs a 'call'"),
        ("pairs = [", "pears = [", "unknown key 'pears'"),
    ],
)
def test_mistakes_in_a_file_of_rows(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in SYNCED
    file = tmp_path / "rows.toml"
    file.write_text(SYNCED.replace(old, new))
    with pytest.raises(UsageError) as caught:
        load_rows(file)
    assert caught.value.message.startswith("rows.toml: ")
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("finish", "operations", "synced"),
    [
        ("fsync later", "write /d/a 0 10", ops.Fsync("/d/a")),
        ("fdatasync later", "mkdir /d/n; write /d/a 0 10", ops.Fsync("/d/a", data_only=True)),
        ("fdatasync later", "rename /d/a /e/a", ops.Fsync("/e/a", data_only=True)),
        ("fdatasync later", "unlink /d/a", ops.Fsync("/d", data_only=True)),
        ("fdatasync directory", "write /d/e/a 0 10", ops.Fsync("/d/e", data_only=True)),
        ("fdatasync /d/x", "write /d/a 0 10", ops.Fsync("/d/x", data_only=True)),
    ],
)
def test_what_a_finish_syncs(finish: str, operations: str, synced: ops.Operation) -> None:
    assert parse_finish(finish, parse(operations)).operations == (synced,)


def test_a_range_is_an_operation_for_each_number(tmp_path: Path) -> None:
    many = {"tree": None, "setup": ["mkdir /d", "write /d/f{08..11} 0 100"], "operations": ["append /d/f{08..09} 9"]}
    made = load(written(tmp_path, working(**many))).workloads[0]
    assert made.setup == parse("mkdir /d; " + "; ".join(f"write /d/f{one} 0 100" for one in ("08", "09", "10", "11")))
    assert made.operations == parse("append /d/f08 9; append /d/f09 9")
    braces = load(written(tmp_path, working(operations=["append /d/s 60", "create /d/{a}{1..}"])))
    assert braces.workloads[0].operations == parse("append /d/s 60; create /d/{a}{1..}")


@NAMES
def test_a_declaration_says_all_of_a_property(probe) -> None:  # type: ignore[no-untyped-def]
    assert there_and_back(probe.property) == probe.property


def test_the_property_of_recoveries_is_nobodys_own(tmp_path: Path) -> None:
    assert there_and_back(IDEMPOTENT) == IDEMPOTENT
    with pytest.raises(UsageError) as refused:
        load(written(tmp_path, {**GOOD, "name": IDEMPOTENT.name}))
    assert str(refused.value) == snapshot("mine.toml: bob reserves the name 'recovery-idempotent'")


def test_own_probes_come_after_the_shipped_ones(tmp_path: Path) -> None:
    mine = load(written(tmp_path, {**GOOD, "row": 5}))
    other = load(written(tmp_path, {**GOOD, "name": "other", "row": 2}))
    assert [probe.property.name for probe in asked_probes((), (mine, other))] == ["other", "one"]
    assert asked_probes(("append-any",), (mine,)) == (*shipped_probes(("append-any",)), mine)
    assert asked_probes((), ()) == PROBES


def test_names_of_own_probes_are_their_own(tmp_path: Path) -> None:
    mine = load(written(tmp_path, GOOD))
    check_own((mine, replace(mine, property=replace(mine.property, name="two"))))
    with pytest.raises(UsageError) as refused:
        check_own((mine, mine))
    assert text_with(str(refused.value), "one") == snapshot("two probe files are named 'one'")
    with pytest.raises(UsageError) as caught:
        check_own((load(written(tmp_path, {**GOOD, "name": "append-any"})),))
    assert text_with(str(caught.value), "append-any") == snapshot("'append-any' is a shipped property")
    assert text_with(caught.value.hint, "my-append-any") == snapshot("choose another name, for example 'my-append-any'")


def test_a_mistake_of_syntax_has_its_line(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "one"\nfamily = atomicity\n')
    with pytest.raises(UsageError) as refused:
        load(tmp_path / "mine.toml")
    assert text_with(str(refused.value), "mine.toml", 2) == snapshot("mine.toml: Invalid value (at line 2, column 10)")


@pytest.mark.parametrize("content", [b"name = ", b"\xff\xfe", b"[judge\n"])
def test_what_is_no_toml(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load(file)
    assert "mine.toml" in caught.value.message
    assert "\n" not in caught.value.message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        load(tmp_path / "mine.toml")
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot(
        "cannot read TMP/mine.toml: No such file or directory"
    )


@pytest.mark.parametrize(
    ("text", "after", "natural", "phase", "syncs"),
    [
        ("natural", "create /a", True, 0.0, ""),
        ("natural 2.5", "create /a", True, 2.5, ""),
        ("sync", "create /a", False, 0.0, "sync"),
        ("syncfs; fsync /a", "create /a", False, 0.0, "syncfs; fsync /a"),
        ("fsync later", "create /d/a", False, 0.0, "fsync /d/a"),
        ("fsync later", "rename /a /d/b", False, 0.0, "fsync /d/b"),
        ("fsync later", "link /a /d/b", False, 0.0, "fsync /d/b"),
        ("fsync later", "unlink /d/a", False, 0.0, "fsync /d"),
        ("fsync later", "append /d/a 5", False, 0.0, "fsync /d/a"),
        ("fsync directory", "create /d/a", False, 0.0, "fsync /d"),
        ("fsync directory", "create /a", False, 0.0, "fsync /"),
        ("fsync directory", "unlink /d/a", False, 0.0, "fsync /d"),
        ("fsync /d", "create /d/a", False, 0.0, "fsync /d"),
        ("fdatasync /d/a", "create /d/a", False, 0.0, "fdatasync /d/a"),
    ],
)
def test_finishes(text: str, after: str, natural: bool, phase: float, syncs: str) -> None:
    finish = parse_finish(text, parse(after))
    assert (finish.natural, finish.phase, finish.operations) == (natural, phase, parse(syncs))
    assert finish.name == (text if natural else syncs)


@pytest.mark.parametrize("text", ["fsync later", "fsync directory"])
def test_a_finish_of_nothing(text: str) -> None:
    with pytest.raises(UsageError):
        parse_finish(text, ())


# The sets of rows: their probes, and how they are asked for

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("rows", RowSet)
def test_the_probes_of_a_set(rows: RowSet) -> None:
    probes = probes_of(rows)
    names = [probe.property.name for probe in probes]
    assert len(set(names)) == len(names)
    assert [probe.row for probe in probes] == list(range(1, len(probes) + 1))
    for probe in probes:
        assert probe.workloads
        assert there_and_back(probe.property) == probe.property
    recordings = distinct(workload for probe in probes for workload in probe.workloads)
    assert f"| `{rows.value}` | {len(probes)} | {len(recordings)} |" in (DOCS / "extend.md").read_text()


@pytest.mark.parametrize("rows", [RowSet.DURABILITY, RowSet.UNITS])
def test_each_workload_asks_for_what_it_is_in(rows: RowSet) -> None:
    for probe in probes_of(rows):
        for workload in probe.workloads:
            assert questions(probe.property, simulate(workload)[0])
            assert (workload.at is At.END) == (rows is RowSet.DURABILITY)


def test_units_are_sizes_of_writes() -> None:
    spans = {probe.property.name: probe.property.spans for probe in probes_of(RowSet.UNITS)}
    assert spans["append.sector"] == (Span.SECTOR,)
    assert spans["overwrite.whole"] == (Span.BLOCKS,)
    assert spans["rename-over.whole"] == ()


def test_names_are_looked_up_in_their_set() -> None:
    [probe] = asked_probes(("sync.data",), (), RowSet.DURABILITY)
    assert probe.property.name == "sync.data"
    with pytest.raises(UsageError, match=r"'sync\.data'"):
        asked_probes(("sync.data",), ())


def test_a_request_keeps_its_rows() -> None:
    request = ProbeRequest(configuration("ext4"), ("sync.data",), rows=RowSet.DURABILITY)
    document = json.loads(json.dumps(request_to_json(request)))
    assert request_from_json(document) == request
    del document["rows"]
    assert request_from_json(document) == replace(request, rows=RowSet.TABLE1)


def test_workloads_that_differ_in_when_the_crash_comes_are_two() -> None:
    [workload, *_more] = probes_of(RowSet.DURABILITY)[0].workloads
    assert len(distinct([workload, replace(workload, at=At.ANY), workload])) == 2


# What is on layers is asked one more property


def test_what_is_on_layers_is_asked_about_its_neighbours() -> None:
    bare, stacked = ProbeRequest(configuration("ext4")), ProbeRequest(configuration("ext4", on="linear"))
    assert [probe for probe in stacked.asked if probe not in bare.asked] == list(layer_probes())
    assert [probe.property.name for probe in layer_probes()] == ["untouched"]
    more = set(asked_workloads(stacked)) - set(asked_workloads(bare))
    assert more == {workload for probe in layer_probes() for workload in probe.workloads}
    alone = replace(stacked, properties=("untouched",))
    assert set(asked_workloads(alone)) == more
    with pytest.raises(UsageError, match="'untouched'"):
        replace(bare, properties=("untouched",)).check()


@pytest.mark.parametrize("workload", layer_probes()[0].workloads[:2], ids=lambda workload: workload.finish.name)
def test_a_changed_block_has_one_that_stays_at_its_place_in_the_stripe(workload: Workload) -> None:
    """Files of one chunk, in turns: the block 64 KiB before or behind a changed one is of a file that stays."""
    files = [operation.path for operation in workload.setup if isinstance(operation, ops.Write)]
    changed = {operation.path for operation in workload.operations if isinstance(operation, ops.Write)}
    assert [path in changed for path in files] == [bool(place % 2) for place in range(len(files))]
    assert {operation.length for operation in workload.setup if isinstance(operation, ops.Write)} == {65536}
