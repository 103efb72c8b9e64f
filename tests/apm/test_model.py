"""The document of a model, the models that others wrote, and those that are kept in reports/models."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis.strategies import frozensets, sampled_from
from inline_snapshot import snapshot

from bob.apm.builtin import builtin, names
from bob.apm.clauses import (
    UNLESS_SYNCED,
    Clause,
    Durable,
    InTurn,
    Ordered,
    clause_of,
    closed,
    every_clause,
    matching,
    with_weaker,
    without_exception,
)
from bob.apm.compare import differences
from bob.apm.derive import held_out, was_derived_of
from bob.apm.model import ClauseFinding, ClauseStatus, Model, Refutation, from_json, load, save, to_json
from bob.apm.named import named_model
from bob.apm.published import from_published
from bob.apm.what_if import NAMED, lines, what_if
from bob.claim.property.of_property import OfProperty
from bob.crash.state import CrashState
from bob.errors import MalformedError, UsageError
from bob.report.published import osdi14
from bob.schema import LATER
from bob.subject import configuration, load_set
from bob.witness.document import read
from bob.workload.kinds import ChangeKind, Relation
from wording import text_with

from .cases import workload

SAFE_RENAME = Ordered(ChangeKind.APPEND, ChangeKind.RENAME_OVER, Relation.SAME_FILE)
STATE = CrashState(3, (4, 5), ((7, ((0, 2),)),))


def test_a_model_is_written_and_read_again(tmp_path: Path) -> None:
    refutation = Refutation("r", "w", "natural", "000-w", STATE, "this is there, that is not", 2, 1, witness="w.json")
    clauses = every_clause()
    findings = (
        ClauseFinding(clauses[0], ClauseStatus.EXHAUSTIVE, promised=True, workloads=3, states=2**90),
        ClauseFinding(clauses[1], ClauseStatus.SAMPLED, promised=False, workloads=1, states=7, reason="why not"),
        ClauseFinding(clauses[2], ClauseStatus.REFUTED, promised=False, workloads=1, states=7, refutation=refutation),
    )
    model = Model("m", "about", findings, {"run": "r"})
    save(model, tmp_path / "apm" / "m.json")
    assert load(tmp_path / "apm" / "m.json") == model
    assert model.finding(clauses[9]) == ClauseFinding(clauses[9], ClauseStatus.ASSUMED, promised=False)


def test_a_model_is_of_the_file_system_and_the_kernel_that_it_was_derived_of() -> None:
    ordered, writeback = (named_model(f"ext4-{mode}") for mode in ("ordered", "writeback"))
    [kernel] = ordered.source["kernels"]
    assert was_derived_of(ordered, configuration("ext4", mount_options="data=ordered"), kernel)
    assert was_derived_of(ordered, configuration("ext4"), kernel), "data=ordered is the default"
    assert was_derived_of(writeback, configuration("ext4", mount_options="data=writeback"), kernel)
    for other in (
        configuration("ext4", mount_options="data=writeback"),
        configuration("ext3", mount_options="data=ordered"),
        configuration("ext4", "-O ^has_journal"),
        configuration("ext4", mount_options="data=ordered,noatime"),
    ):
        assert not was_derived_of(ordered, other, kernel)
    assert was_derived_of(ordered, configuration("ext4"), "6.1.0-57-amd64"), "a newer package of the same kernel"
    assert not was_derived_of(ordered, configuration("ext4"), "6.1.0-57-mine")
    assert not was_derived_of(ordered, configuration("ext4"), "6.12.0")
    assert not was_derived_of(builtin("ext4-o"), configuration("ext4"), kernel)


@pytest.mark.parametrize("wrong", [{}, {"schema": "bob.apm/1"}, {"schema": "bob.result/1"}])
def test_what_is_no_model_is_refused_in_one_line(wrong: dict[str, object]) -> None:
    with pytest.raises(MalformedError):
        from_json(wrong)
    with pytest.raises(MalformedError) as later:
        from_json({**to_json(builtin("ext4-o")), "schema": "bob.apm/2"})
    assert (later.value.message, later.value.hint) == ("not a model: its schema is 'bob.apm/2'", LATER)


def test_a_clause_that_bob_does_not_know_is_named() -> None:
    document = to_json(builtin("ext4-o"))
    document["clauses"][0]["clause"] = "ordered chaos"
    with pytest.raises(MalformedError) as refused:
        from_json(json.loads(json.dumps(document)))
    assert str(refused.value) == snapshot("unknown clause 'ordered chaos'")


@pytest.mark.parametrize(
    "name",
    [
        "durable", "durable ", "durable return", "durable retrun data", "durable  return data", "durable return  data",
        "durable return data data", "durable o-sync-wirte data", "durable O-SYNC data", "durable fsync-file new-entry",
        "durable fsync-file everything", "durable fsync-directory new-entries", "durable fsync-file dat",
        "whole append sector", "return data", "durable return\ndata", "",
    ],
)  # fmt: skip
def test_a_misspelt_clause_is_refused_in_a_line(name: str) -> None:
    document = to_json(builtin("ext4-o"))
    document["clauses"][-1]["clause"] = name
    with pytest.raises(MalformedError, match="unknown clause") as caught:
        from_json(document)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("name", [None, 5, ["durable", "return", "data"], {}])
def test_what_is_no_text_is_no_clause(name: object) -> None:
    document = to_json(builtin("ext4-o"))
    document["clauses"][-1]["clause"] = name
    with pytest.raises(MalformedError, match="damaged") as caught:
        from_json(document)
    assert "\n" not in caught.value.message


def test_a_reason_is_text() -> None:
    document = to_json(builtin("ext4-o"))
    document["clauses"][-1]["reason"] = 5
    with pytest.raises(MalformedError) as refused:
        from_json(document)
    assert text_with(str(refused.value), 5) == snapshot(
        "this model is damaged: clauses[252].reason: expected str | null, got 5"
    )


@pytest.mark.parametrize("seed", range(20))
def test_what_does_the_same_is_held_out_together(seed: int) -> None:
    """Of thirty lists of operations each ends in three ways; a third of the lists is held out, whole."""
    lists = [(number, workload(f"create /f{number}", setup)) for number in range(15) for setup in ("", "mkdir /d")]
    every = [replace(one, name=f"{number}-{end}") for number, one in lists for end in range(3)]
    every = [replace(one, name=f"{one.name}{'d' * bool(one.setup)}") for one in every]
    out = held_out(every, seed)
    alike: dict[object, set[str]] = {}
    for one in every:
        alike.setdefault((one.setup, one.operations), set()).add(one.title)
    assert len(out) == 30 and all(titles <= out or titles.isdisjoint(out) for titles in alike.values())
    assert held_out(every[::-1], seed) == out


def test_a_model_of_before_is_that_of_today() -> None:
    model = builtin("ext3-j")
    promised = Model("m", "", tuple(replace(one, promised=True) for one in model.findings))
    document = to_json(promised)
    today = json.dumps(document)
    older = today.replace("durable o-sync ", "durable o-sync-write ").replace(
        "durable o-dsync ", "durable o-dsync-write "
    )
    older = older.replace("durable returned ", "durable return ")
    assert older.count("durable o-sync-write ") == older.count("durable return ") == 11
    assert from_json(json.loads(older)) == from_json(document) == promised


def test_a_clause_in_two_spellings_is_refused() -> None:
    document = to_json(builtin("ext4-o"))
    one = {**document["clauses"][-1], "clause": "durable returned data"}
    document["clauses"] = [
        *document["clauses"],
        one,
        {**one, "clause": "durable return data", "promised": not one["promised"]},
    ]
    with pytest.raises(MalformedError) as refused:
        from_json(document)
    assert text_with(str(refused.value), "durable returned data") == snapshot(
        "the clause 'durable returned data' occurs twice"
    )


def test_the_built_in_models_are_as_the_paper_orders_them() -> None:
    promised = {name: builtin(name).promised for name in names()}
    assert promised["btrfs"] < promised["ext4-o"] < promised["ext3-j"]
    assert promised["ext3-w"] < promised["ext3-j"]
    assert promised["ext3-o"] < promised["ext3-j"]
    assert SAFE_RENAME in promised["ext4-o"]
    with pytest.raises(UsageError, match="ext5"):
        builtin("ext5")


def test_two_models_differ_by_clauses_each_with_a_workload_that_shows_it() -> None:
    found = list(differences(builtin("ext4-o"), builtin("btrfs")))
    assert {apart.stronger.name for apart in found} == {"ext4-o"}
    assert {type(apart.clause) for apart in found} == {Ordered}
    shown = [apart for apart in found if apart.tree is not None]
    assert len(shown) > len(found) / 2
    assert all(len(apart.workload.operations) == 2 for apart in shown if apart.workload is not None)
    assert not list(differences(builtin("ext4-o"), builtin("ext4-o")))


def test_a_published_column_is_a_model_of_what_was_not_found() -> None:
    writeback, journal = (from_published(name, osdi14()).promised for name in ("ext3-writeback", "ext3-datajournal"))
    assert writeback < journal
    with pytest.raises(UsageError) as refused:
        from_published("zfs", osdi14())
    assert str(refused.value) == snapshot("the published table lacks a column 'zfs'")


# The models that are kept in reports/models: whole, and as sound as their page says


MODELS = Path(__file__).resolve().parents[2] / "reports" / "models"
SETS = sorted(path for path in MODELS.glob("*-linux-*") if path.is_dir())


@pytest.mark.parametrize("folder", SETS, ids=lambda path: path.name)
def test_there_is_a_model_of_each_configuration_and_none_forbids_what_was_seen(folder: Path) -> None:
    names = [made.name for made in load_set(folder.name.partition("-linux-")[0]).configurations]
    assert sorted(names) == sorted(path.stem for path in folder.glob("*.json"))
    rows = {line.split("]")[0][3:]: line for line in (folder / "README.md").read_text().splitlines() if "](" in line}
    for name in names:
        model = load(folder / f"{name}.json")
        assert model.name == name
        cells = [cell.strip() for cell in rows[name].split("|")[2:]]
        assert int(cells[0]) == len(model.promised)
        assert int(cells[1].replace(",", "")) == model.source["refuting"]
        assert cells[2].startswith("0 of ") and cells[3].startswith("0 of ")


def test_every_witness_of_a_refuted_clause_is_there() -> None:
    for path in MODELS.glob("*/*.json"):
        for finding in load(path).findings:
            if finding.refutation is not None and finding.refutation.witness is not None:
                witness = read(path.parent / finding.refutation.witness)
                assert isinstance(witness.claim, OfProperty)
                assert witness.claim.resolved.meaning == finding.clause.words


@given(frozensets(sampled_from(every_clause()), max_size=60))
@settings(max_examples=40, deadline=None)
def test_clauses_on_few_lines_are_those_that_are_read_from_them(clauses: frozenset[Clause]) -> None:
    assert {clause for line in lines(clauses) for clause in matching(line)} == clauses
    orders = frozenset(replace(one, unless_synced=True) for one in clauses if isinstance(one, Ordered))
    read = [line.removesuffix(UNLESS_SYNCED) for line in lines(orders) if line.endswith(UNLESS_SYNCED)]
    assert len(read) == len(lines(orders))
    assert {one for line in read for one in matching(line)} == frozenset(map(without_exception, orders))


def test_what_belongs_together_is_one_line() -> None:
    assert lines(matching("ordered any append|zero same-file")) == ["ordered any append|zero same-file"]
    assert lines(matching("durable fsync-file other-*")) == [
        "durable fsync-file other-overwrites|other-appends|other-names|other-attributes"
    ]
    assert matching("Ordered APPEND rename-over same-file") == (SAFE_RENAME,)
    assert matching("ordered append rename* any") == tuple(
        Ordered(ChangeKind.APPEND, rename, how)
        for rename in (ChangeKind.RENAME, ChangeKind.RENAME_OVER)
        for how in Relation
    )
    for slip in ("ordered append rename", "", "ordered append rename foo"):
        with pytest.raises(ValueError, match=f"^no clause matches '{slip}'$"):
            matching(slip)


def test_a_model_is_changed_by_clauses_one_after_the_other_and_says_why(tmp_path: Path) -> None:
    found = what_if(builtin("ext4-o"), ["-ordered append any same-file", "+ordered append rename-over same-file"], "x")
    assert found.before.promised - found.gone | found.new == found.after.promised
    assert [clause.name for clause in found.gone] == ["ordered append rename same-file"]
    assert not found.new
    save(found.after, tmp_path / "x.json")
    again = load(tmp_path / "x.json")
    assert (again.promised, again.name, again.origin) == (found.after.promised, "x", "what-if")
    gone = found.after.finding(*found.gone)
    assert (
        text_with(gone.reason, "same-file") == snapshot("what if: -ordered append any same-file") and not gone.promised
    )


def test_a_derived_model_that_was_changed_is_of_no_file_system_any_more() -> None:
    """What a disk shows beside it contradicts the change, and no kernel."""
    ordered = named_model("ext4-ordered")
    changed = what_if(ordered, ["+everything in order"], "x").after
    assert was_derived_of(ordered, configuration("ext4"), ordered.source["kernels"][0])
    assert not was_derived_of(changed, configuration("ext4"), ordered.source["kernels"][0])
    assert changed.promised == closed(ordered.promised | {*matching("ordered any any any")})


def test_a_change_in_plain_words_has_an_opposite() -> None:
    for words in NAMED:
        for model in (builtin("ext3-j"), builtin("btrfs")):
            try:
                there = what_if(model, [words], "there").after
                assert what_if(there, [f"-{words}"], "back").after.promised <= model.promised
            except UsageError as error:
                assert "changes nothing" in error.message, words


def test_a_sync_that_overtakes_takes_the_order_of_what_it_persists() -> None:
    found = what_if(builtin("ext3-j"), ["fsync persists only its file"], "ext3-fast")
    assert found.new == found.weaker
    # The clauses of what no call asks for say less than the orders that are gone.
    gone = found.gone - frozenset(map(without_exception, found.new))
    assert all(isinstance(one, Durable | InTurn) for one in gone)
    assert "ordered append create same-file" in {clause.name for clause in found.after.promised}
    assert found.after.promised < with_weaker(builtin("ext3-j").promised), "a weaker model"
    shown = next(differences(builtin("ext3-j"), found.after))
    assert (shown.stronger.name, shown.weaker.name) == ("ext3-j", "ext3-fast")
    assert shown.operations == "write /e/c 0 512; write /d/a 0 512; fsync /d/a"
    back = what_if(found.after, ["-fsync persists only its file"], "back").after
    assert back.promised == builtin("ext3-j").promised
    assert from_json(json.loads(json.dumps(to_json(found.after)))).promised == found.after.promised
    assert clause_of("ordered append create other-directory unless-synced") in found.after.promised


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        (
            "fsync persist only its file",
            snapshot("invalid change 'fsync persist only its file'; expected +CLAUSE, -CLAUSE or a named change"),
            snapshot("did you mean 'fsync persists only its file'?"),
        ),
        (
            "ordered append any any",
            snapshot("invalid change 'ordered append any any'; expected +CLAUSE, -CLAUSE or a named change"),
            snapshot(
                "named changes: fsync persists only its file, safe rename, safe file flush, atomic contents, atomic appends, directory operations in order, everything in order"
            ),
        ),
        (
            "-ordered append renam same-file",
            snapshot("no clause matches 'ordered append renam same-file'"),
            snapshot("did you mean 'ordered append rename same-file'?"),
        ),
        (
            "+nothing",
            snapshot("no clause matches 'nothing'"),
            snapshot("for example +ordered append rename-over same-file, -durable fsync-file any, -whole append any"),
        ),
        (
            "-",
            snapshot("no clause matches ''"),
            snapshot("for example +ordered append rename-over same-file, -durable fsync-file any, -whole append any"),
        ),
        (
            "+safe rename",
            snapshot("'+safe rename' changes nothing: ext4-o promises that already"),
            snapshot("bob apm show ext4-o"),
        ),
        (
            "-ordered append create any",
            snapshot("'-ordered append create any' changes nothing: ext4-o does not promise that"),
            snapshot("bob apm show ext4-o"),
        ),
    ],
)
def test_a_change_that_is_none_is_a_line_and_a_hint(said: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        what_if(builtin("ext4-o"), [said], "x")
    assert str(refused.value) == message
    assert str(refused.value.hint) == hint


@pytest.mark.parametrize("wrong", ['{"kernels": 5}', '{"kernels": "6.1"}', '{"kernels": [5]}', '{"configuration": 5}'])
def test_what_a_model_is_from_is_of_its_types(wrong: str) -> None:
    document = to_json(named_model("ext4-ordered"))
    with pytest.raises(MalformedError):
        from_json({**document, "source": {**document["source"], **json.loads(wrong)}})


def test_a_model_of_a_file_system_that_this_bob_does_not_know_is_of_none_here() -> None:
    model = named_model("ext4-ordered")
    [kernel] = model.source["kernels"]
    for of in ({}, {**model.source["configuration"], "fs": "newfs"}):
        other = replace(model, source={**model.source, "configuration": of})
        assert not was_derived_of(other, configuration("ext4"), kernel)
