"""``bob apm`` on the command line; what needs a run is in tests/e2e/test_finer_rows.py."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from bob.answer.result import Allowed, AskedProgram, Checks, Result
from bob.apm.builtin import names
from bob.apm.model import Model, to_json
from bob.apm.named import named_model, named_models
from bob.catalogue.request import ProbeRequest, request_to_json
from bob.claim.verdict import Verdict
from bob.cli.main import run as run_bob
from bob.errors import Exit, RecordingError, UsageError
from bob.program.answer import Consequence
from bob.program.folder import shipped_programs
from bob.program.program import ProgramDocument
from bob.program.sets import load_program_set, program_set_names
from bob.report.vulnerability_tables import published
from bob.schema import encode
from bob.store.files import read_document, write_document
from bob.store.matrix_directory import MatrixDirectory
from bob.store.run_directory import RunDirectory
from bob.subject import configuration
from samples_of_programs import by_model, of_program, way
from wording import line_with, text_with

from .stand_in import Bob, Work


def test_states_are_listed_as_trees(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bob(["apm", "states", "ext4-o", "--setup", "write /f 0 8K", "write /g 0 4K; rename /g /f"]) == 0
    said = capsys.readouterr().out
    assert text_with(said.splitlines()[0], 4, 12, "micro-operations") == snapshot(
        "4 crash states of 12 micro-operations"
    )
    assert line_with(said, "/f", "4,096", 1) == snapshot("/f  4,096 B: operation 1 (4,096 B)")


def test_states_that_differ_in_contents_alone_are_told_together(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ["apm", "states", "ext3-w", "--setup", "write /f 0 4K", "write /f 0 1K; create /g"]
    assert run_bob([*asked, "--json", str(tmp_path / "s.json")]) == 0
    said = capsys.readouterr().out
    states = json.loads((tmp_path / "s.json").read_text())["states"]
    contents = len({state[0] for state in states})
    assert len(states) == 2 * contents > 4
    assert text_with(said.splitlines()[0], len(states)) == snapshot(
        "8 crash states of 3 micro-operations, with 2 sets of names and sizes"
    ) and line_with(said, 2, "names") == snapshot(
        "8 crash states of 3 micro-operations, with 2 sets of names and sizes"
    )
    assert line_with(said, 1, contents) == snapshot("1: 4 crash states that differ in contents")
    assert line_with(said, "/f", "4,096").startswith("/f  4,096 B: ")
    assert said.count(f"; or {contents - 1} other contents\n") == 2 and said.count("/g  0 B\n") == 1
    assert len(said.splitlines()) == 1 + 2 + 3


def test_states_as_json_have_what_each_micro_operation_needs(tmp_path: Path) -> None:
    asked = ["apm", "states", "ext3-j", "create /a; mkdir /b", "--json", str(tmp_path / "s.json")]
    assert run_bob(asked) == 0
    document = json.loads((tmp_path / "s.json").read_text())
    assert document["dependencies"] == [[], [0]]
    assert document["complete"]
    assert document["states"] == [["(nothing)"], ["/a  0 B"], ["/a  0 B", "/b/"]]


def test_more_states_than_the_limit_are_not_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bob(["apm", "states", "btrfs", "create /a; create /b; create /c", "--limit", "3"]) == 3
    assert text_with(capsys.readouterr().out.splitlines()[0], 3) == snapshot(
        "more than 3 crash states of 3 micro-operations"
    )


def test_models_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bob(["apm", "compare", "ext4-o", "ext4-o"]) == 0
    assert run_bob(["apm", "compare", "ext4-o", "btrfs"]) == 1
    said = capsys.readouterr().out
    assert line_with(said, "ext4-o", "promises") == snapshot("ext4-o promises, btrfs does not (131):")
    assert "may leave" in said


def test_a_design_that_does_not_exist_is_a_model_that_all_commands_take(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_bob(["apm", "what-if", "ext3-j", "fsync persists only its file"]) == 0
    said = capsys.readouterr().out
    assert text_with(said.splitlines()[0], "apm/ext3-j-what-if.json", "ext3-j") == snapshot(
        "apm/ext3-j-what-if.json: what if: ext3-j, but fsync persists only its file"
    )
    assert line_with(said, 450) == snapshot("promised only for changes that no sync persists (450 clauses):")
    assert "ordered any any same-directory|other-directory unless-synced" in said
    for command in ("show", "states", "export"):
        more = {"states": ["create /a"], "export": ["ext3-j", "ext3-o", "--svg", "m.svg"]}
        assert run_bob(["apm", command, "apm/ext3-j-what-if.json", *more.get(command, [])]) == 0
    said = capsys.readouterr().out
    assert line_with(said, "overtake") == snapshot("### What a sync may overtake") and "- what if: ext3-j" in said
    assert "ext3-j-what-if weaker than ext3-j" in (tmp_path / "m.svg").read_text()
    named_models(["./apm/ext3-j-what-if.json"])


def test_without_graphviz_a_page_has_no_picture_and_a_picture_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, picture = tmp_path / "page.html", tmp_path / "m.svg"
    assert run_bob(["apm", "export", "ext4-o", "btrfs", "--html", str(page)]) == 0
    assert 'class="bob-lattice"' in page.read_text() and capsys.readouterr().err == ""
    page.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_bob(["apm", "export", "ext4-o", "btrfs", "--html", str(page)]) == 0
    assert "Beside other models" not in page.read_text()
    assert "apt-get install graphviz" in " ".join(capsys.readouterr().err.split())
    assert run_bob(["apm", "export", "ext4-o", "btrfs", "--svg", str(picture)]) == Exit.MISSING_PROGRAM
    assert (
        text_with(capsys.readouterr().err, "apt-get install graphviz")
        == snapshot("""\
bob: bob needs Graphviz to draw models, and dot is missing
hint: install it: apt-get install graphviz
""")
        and not picture.exists()
    )


def test_a_clause_may_begin_with_a_minus_and_the_answer_may_be_json(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    changes = ["-safe rename", "+ordered append unlink any", "-whole append any"]
    assert run_bob(["apm", "what-if", "ext4-o", *changes, "--out", str(tmp_path / "x.json"), "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["changes"] == changes and document["programs"] == []
    assert document["gone"] == ["ordered append rename same-file", "ordered append rename-over same-file",
                                "whole append block"]  # fmt: skip
    assert len(document["new"]) == 3
    assert named_model(str(tmp_path / "x.json")).name == "x"


@pytest.mark.parametrize("arguments", [["derive"], ["check", "ext4-o"]])
def test_the_run_of_a_quick_question_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = RunDirectory.create(tmp_path / "run", {"id": "x", "expectations": ["exists /a"], "workloads": []})
    assert run_bob(["apm", *arguments, str(run.path)]) == 9
    said = capsys.readouterr().err
    assert text_with(said.replace(str(tmp_path), "TMP"), "TMP/run") == snapshot("""\
bob: TMP/run is a run of bob try, not of bob probe
hint: nothing in it is finished; bob runs remove TMP/run removes it, and the same command starts again
""")


def test_what_is_to_refute_has_to_be_of_a_configuration_of_the_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("ext4", "xfs"):
        asked = request_to_json(ProbeRequest(configuration(name)))
        RunDirectory.create(tmp_path / name, {"id": name, "request": asked, "workloads": [], "finished": "today"})
    assert run_bob(["apm", "derive", "--refuting", str(tmp_path / "xfs"), str(tmp_path / "ext4")]) == Exit.USAGE
    assert text_with(capsys.readouterr().err, "ext4") == snapshot("""\
bob: --refuting has xfs, but RUN has ext4
hint: give a run of the same configuration with other workloads (bob probe --probe)
""")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["states", "ext5", "create /a"],
            snapshot("""\
bob: unknown model 'ext5'
hint: did you mean 'ext2'?
"""),
        ),
        (
            ["states", "ext4-o", "creat /a"],
            snapshot("""\
bob: unknown operation 'creat' in 'creat /a'
  creat /a
  ^^^^^^^^
hint: did you mean 'create'?
"""),
        ),
        (
            ["states", "ext4-o", "unlink /a"],
            snapshot("""\
bob: workload states: 'unlink /a': /a does not exist
hint: see its setup
"""),
        ),
        (
            ["what-if", "ext4-o", "-safe renam"],
            snapshot("""\
bob: no clause matches 'safe renam'
hint: did you mean 'safe rename'?
"""),
        ),
        (
            ["what-if", "ext4-o", "-safe rename", "+safe rename"],
            snapshot("""\
bob: together, these leave ext4-o as it was
hint: bob apm show ext4-o
"""),
        ),
        (
            ["what-if", "ext4-o", "-safe rename", "--app", "sqlite-rolback"],
            snapshot("""\
bob: unknown program 'sqlite-rolback'
hint: did you mean 'sqlite-rollback'?
"""),
        ),
        (
            ["check", "ext4-o", "."],
            snapshot("""\
bob: . is not a run directory
hint: it lacks run.json; bob probe --out DIR makes a run directory
"""),
        ),
        (
            ["derive", "."],
            snapshot("""\
bob: . is not a run directory
hint: it lacks run.json; bob probe --out DIR makes a run directory
"""),
        ),
        (
            ["show", "/etc/hosts"],
            snapshot("""\
bob: /etc/hosts is not a model: Extra data: line 1 column 6 (char 5)
hint: `bob apm derive` writes models
"""),
        ),
    ],
)
def test_mistakes_are_one_line_and_a_hint(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_bob(["apm", *arguments]) in (2, 8, 9)
    said = capsys.readouterr().err
    assert said == says
    assert "hint:" in said
    assert "Traceback" not in said


def test_a_model_is_named_as_built_in_as_a_file_or_as_one_that_is_shipped(tmp_path: Path) -> None:
    assert named_model("btrfs").source == {"builtin": "btrfs"}
    shipped = named_model("ext4-ordered")
    assert shipped.promised and "builtin" not in shipped.source
    (tmp_path / "mine.json").write_text(json.dumps({**to_json(shipped), "name": "mine"}))
    assert named_model(str(tmp_path / "mine.json")).promised == shipped.promised
    with pytest.raises(UsageError) as refused:
        named_model("ext4-order")
    assert text_with(str(refused.value), "ext4-order") == snapshot("unknown model 'ext4-order'")
    assert "ext4-ordered" in (refused.value.hint or "")


def test_all_models_are_each_built_in_one_and_each_shipped_one_once() -> None:
    found = named_models(["all"])
    built = [one for one in found if "builtin" in one.source]
    assert [one.name for one in built] == ["btrfs (built-in)" if name == "btrfs" else name for name in names()]
    assert "btrfs (derived)" in [one.name for one in found if one not in built]
    assert len({one.name for one in found}) == len(found)
    assert len(found) - len(built) == 16
    assert named_models(["ext4-o", "ext4-o"]) == [named_model("ext4-o")]


def test_a_change_is_held_against_programs_and_what_it_adds_is_told(bob: Bob, work: Work) -> None:
    asked = ("apm", "what-if", "ext4-o", "-safe rename", "--quiet")
    ended = bob(*asked, "--app", "gdbm", "--app", "lmdb", "--app", "gdbm")
    assert ended.code == 1
    assert [asked[0].name for asked in work.asked] == ["gdbm", "lmdb"]
    assert line_with(ended.out, "gdbm", 0, "ext4-o", 1, "ext4-o-what-if") == snapshot(
        "gdbm: 0 vulnerabilities by ext4-o, 1 vulnerability by ext4-o-what-if"
    )
    assert line_with(ended.out, "added") == snapshot("""\
added: a file is gone
added: a file is gone\
""")
    answer = bob(*asked, "--out", "x.json", "--app", "gdbm", "--json", "-")
    assert (answer.code, answer.err) == (0, "")
    document = json.loads(answer.out)
    assert document["programs"] == [
        {"program": "gdbm", "safety": ["safe", "safe"], "reason": None, "all": [True, True],
         "added": [], "mended": [], "kept": []}
    ]  # fmt: skip


def answered(program: Any, out: Path, models: Sequence[Model], lost: Sequence[str] = ()) -> Result:
    """A finished run in ``out`` by ``models``, one of which finds a vulnerability."""
    gone = way(Consequence.CORRUPT, "a file is gone", 2, 2, step="prefix")
    subjects = [
        by_model(
            model.name, Verdict.FAILS if model.name == "ext4-writeback" else Verdict.HOLDS,
            (gone,) if model.name == "ext4-writeback" else (),
            Allowed(model.about, 4, 9, 30, is_all=model.name == "ccfs"), Checks(0, 10, 10),
        )
        for model in models
    ]  # fmt: skip
    result = of_program(program.name, program.about, *subjects)
    result = replace(
        result,
        run=replace(result.run, id="x"),
        program=AskedProgram(program.name, program.about, program.digest, program.must_fail),
    )
    run = RunDirectory.create(
        out, {"id": "x", "bob": "0", "started": "2026", "program": encode(ProgramDocument.of(program))}
    )
    run.save_result(result)
    if program.name not in lost:
        run.note(finished="2026")
    return result


def test_an_experiment_stands_beside_what_was_published_and_is_not_done_twice(
    bob: Bob, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def try_program(program: Any, _requests: Any, out: Path, _progress: Any, models: Any, *, explores: bool) -> Any:
        assert not explores
        done.append(program.name)
        if program.name == "leveldb":
            raise RecordingError("its recording is not to be believed")
        return answered(program, out, models, lost=["hg-commit"]), out

    monkeypatch.setattr("bob.run.model_change.try_program", try_program)
    asked = ("reproduce", "ccfs", "--app", "git-commit", "--app", "hg-commit", "--app", "leveldb", "--budget", "7")
    ended = bob(*asked)
    assert (ended.code, done) == (3, ["leveldb", "git-commit", "hg-commit"])
    rows = [line.split() for line in ended.out.splitlines()]
    assert ["git-commit", "1", "0", "0", "0", "0"] in rows
    assert ["FAST'17", "–", "2", "–", "–", "0"] in rows and ["reproduced", "1", "0", "0", "0", "0"] in rows
    assert line_with(ended.out, "git-commit", "ext4-ordered", 30) == snapshot(
        "git-commit, ext4-ordered: 30 crash states tried, not all that it allows"
    )
    assert line_with(ended.out, "git-commit", 30, "ccfs") == snapshot(
        "git-commit, ccfs: 30 crash states tried, all that it allows"
    )
    assert line_with(ended.out, "recording") == snapshot("leveldb: ? its recording is not to be believed")
    assert "git-commit: 2 of 3" in ended.err
    document = json.loads(bob(*asked, "--quiet", "--json", "-").out)
    assert (document["schema"], document["experiment"]) == ("bob.reproduce/1", "ccfs")
    assert done[3:] == ["leveldb", "hg-commit"], "git-commit was finished"
    assert document["failed"] == {"leveldb": snapshot("its recording is not to be believed")}
    assert document["tables"][0]["rows"][0] == ["git-commit", "1", "0", "0", "0", "0"]
    shown = bob("show", "bob-runs/reproduce-ccfs/git-commit", "bob-runs/reproduce-ccfs/hg-commit")
    assert shown.code == 1 and line_with(shown.out, "system") == snapshot("Vulnerabilities by file system")
    changed = bob("reproduce", "ccfs", "--budget", "8")
    assert (changed.code, changed.err.splitlines()[0]) == (
        2, snapshot("bob: bob-runs/reproduce-ccfs was made with --budget 7, not 8")
    )  # fmt: skip
    wrong = bob("reproduce", "ccfs", "--app", "gdbm")
    assert wrong.code == 2 and text_with(wrong.err, "gdbm") == snapshot("""\
bob: unknown program 'gdbm'
hint: ccfs has leveldb, sqlite-rollback, git-commit, hg-commit, zookeeper
""")
    Path("other").mkdir()
    Path("other/file").touch()
    assert bob("reproduce", "ccfs", "--out", "other").err == snapshot("""\
bob: --out: other is not empty
hint: name a new directory: each run has its own
""")


def test_a_program_that_was_changed_is_tried_again(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def try_program(program: Any, _requests: Any, out: Path, _progress: Any, models: Any, *, explores: bool) -> Any:
        done.append(program.name)
        return answered(program, out, models), out

    monkeypatch.setattr("bob.run.model_change.try_program", try_program)
    asked = ("reproduce", "ccfs", "--app", "git-commit", "--quiet")
    assert bob(*asked).code == bob(*asked).code == 0
    file = Path("bob-runs/reproduce-ccfs/git-commit/result.json")
    document = read_document(file)
    write_document(file, {**document, "program": {**document["program"], "digest": "0" * 16}})
    assert bob(*asked).code == 0 and done == ["git-commit"] * 2


def test_what_takes_several_lines_stays_below_its_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bob(["apm", "compare", "ext4-o", "xfs"]) == 1
    lines = capsys.readouterr().out.splitlines()
    headings = [line for line in lines if not line.startswith("  ")]
    assert [heading.split(" (")[0] for heading in headings] == snapshot(
        ["ext4-o promises, xfs does not", "xfs promises, ext4-o does not"]
    )
    assert max(map(len, lines)) <= 80


def test_clauses_that_begin_alike_are_compared_together(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run_bob(["apm", "compare", "ext4-o", "btrfs", "--json", str(tmp_path / "c.json")]) == 1
    said = capsys.readouterr().out
    apart = json.loads((tmp_path / "c.json").read_text())["differences"]
    assert len(apart) > 100, "each is in the document"
    assert len(said.splitlines()) < 2 * len(apart)
    flat = " ".join(said.split())
    for one in apart:
        ends = one["meaning"].split(" before a later ")[-1].split(" has returned, ")[-1]
        assert ends in flat, one["meaning"]


@pytest.mark.parametrize("name", program_set_names())
def test_a_set_has_programs_models_and_published_counts_that_bob_ships(name: str) -> None:
    made = load_program_set(name)
    assert set(made.programs) <= set(shipped_programs()) and made.programs
    assert {one.name for one in named_models(made.models)} == set(made.models)
    for which in made.published.values():
        assert set(published(which)) & set(made.programs)


def test_a_set_of_ones_own_needs_no_published_counts(bob: Bob, work: Work) -> None:
    Path("mine.toml").write_text('title = "Mine"\nprograms = ["lmdb"]\nmodels = ["ext4-o", "btrfs"]\n')
    ended = bob("reproduce", "mine.toml", "--quiet")
    assert (ended.code, ended.err) == (0, "") and [asked[0].name for asked in work.asked] == ["lmdb"]
    assert ended.out.startswith("Mine\n") and Path("bob-runs/reproduce-mine").is_dir()
    wrong = bob("reproduce", "mine", "--quiet")
    assert wrong.code == 2 and text_with(wrong.err, "mine") == snapshot("""\
bob: unknown set of programs 'mine'
hint: bob has ccfs; or name a TOML file
""")


def test_a_run_that_was_stopped_makes_no_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked = {"request": request_to_json(ProbeRequest(configuration("ext4"))), "workloads": []}
    RunDirectory.create(tmp_path / "probe", {"id": "x", **asked})
    MatrixDirectory.create(tmp_path / "matrix", {"id": "x"}, ["ext4"])
    RunDirectory.create(tmp_path / "matrix" / "ext4", {"id": "x", **asked})
    for run, part in (("probe", "probe"), ("matrix", "matrix/ext4")):
        assert run_bob(["apm", "derive", str(tmp_path / run)]) == Exit.STORE
        said = capsys.readouterr().err.replace(str(tmp_path), "TMP")
        assert said == f"bob: TMP/{part} was stopped before its end\nhint: bob {run} --resume TMP/{run} continues it\n"
