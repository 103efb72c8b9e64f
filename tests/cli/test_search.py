"""bob search: what it asks for, and what it refuses before anything is started."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from bob.catalogue.request import ProbeRequest
from bob.claim.verdict import Verdict
from bob.schema import encode
from bob.search.bounds import load
from bob.search.space import Part
from bob.search.spaces import search, search_in
from bob.search.within import Within
from wording import text_with

from .stand_in import Bob, Work, result


def test_every_workload_within_the_bounds_is_asked(bob: Bob, work: Work) -> None:
    bob("search", "--fs", "btrfs", "--mount-opts", "flushoncommit", "--budget", 30)
    [(asked, request, out)] = work.asked
    assert isinstance(request, ProbeRequest) and out is None
    assert (request.configuration.fs.name, request.configuration.mount_options) == ("btrfs", "flushoncommit")
    assert request.budget == 30
    assert asked == search("small") and asked.length == 1


def test_bounds_of_ones_own(bob: Bob, work: Work) -> None:
    Path("mine.toml").write_text(
        'about = "one file"\nsetup = ["create /f"]\nfiles = ["/f"]\noperations = ["append FILE 512"]\n'
        'calls = ["fsync FILE"]\npromises = ["fsync-file.size"]\n'
    )
    bob("search", "--fs", "ext4", "--bounds", "mine.toml", "--ops", 2)
    [(asked, _request, _out)] = work.asked
    Path("mine.toml").unlink()
    again = search_in(json.loads(json.dumps(encode(asked))))
    names = [workload.name for workload in again.workloads(again.space())]
    assert names == ["append /f 512; fsync /f", "append /f 512; append /f 512; fsync /f"]


def test_a_part_of_drawn_workloads_that_ask_for_a_property(bob: Bob, work: Work) -> None:
    bob("search", "--fs", "xfs", "--property", "append-any", "--ops", 2, "--sample", 5, "--seed", 3, "--shard", "2/3")
    [(asked, _request, _out)] = work.asked
    assert asked == search(None, ("append-any",), 2, Part(2, 3, 5, 3))
    assert asked.name == "shapes" and len([*asked.workloads(asked.space())]) == 5


def test_for_so_many_seconds(bob: Bob, work: Work) -> None:
    bob("search", "--fs", "ext4", "--ops", 3, "--seconds", 600, "--seed", 7)
    [(asked, _request, _out)] = work.asked
    assert asked == search("small", (), 3, Part(seed=7), 600)
    drawn = [one.name for one in islice(asked.workloads(asked.space()), 20)]
    assert drawn == [one.name for one in islice(Within(load("small")).drawn(3, 7), 20)]


def test_a_property_is_searched_for_with_longer_workloads_for_ten_minutes(bob: Bob, work: Work) -> None:
    bob("search", "--fs", "xfs", "--property", "append-any", "--property", "directory-op")
    bob("search", "--fs", "xfs", "--property", "all", "--seconds", 60, "--ops", 2)
    two, every = (asked for asked, _request, _out in work.asked)
    assert (two.name, two.props, two.length, two.seconds) == ("shapes", ("append-any", "directory-op"), 3, 600)
    assert (len(every.props), every.length, every.seconds) == (13, 2, 60)
    assert search_in(json.loads(json.dumps(encode(two)))) == two
    older = {**encode(every), "prop": "append-any"}
    older.pop("props")
    assert search_in(older).props == ("append-any",)


def test_counting_starts_nothing(bob: Bob, work: Work) -> None:
    ended = bob("search", "--ops", 1, "--count")
    made = [*Within(load("small")).every(1)]
    assert (ended.code, ended.out) == (0, f"1 operation: {len(made)} workloads\n")
    assert work.asked == []
    ended = bob("search", "--bounds", "ace", "--count")
    assert text_with(ended.out, 1, 300, 328) == snapshot("1 operation: 300 workloads (ACE counts 328)\n")


@pytest.mark.parametrize(("verdict", "code"), [(Verdict.FAILS, 1), (Verdict.HOLDS, 0), (Verdict.UNKNOWN, 3)])
def test_exit_codes(bob: Bob, work: Work, verdict: Verdict, code: int) -> None:
    [column] = result().subjects
    cells = tuple(replace(cell, verdict=verdict) for cell in column.answers)
    work.result = replace(result(), subjects=(replace(column, answers=cells),))
    assert bob("search", "--fs", "ext4").code == code


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            (),
            snapshot("""\
bob: missing option '--fs'
hint: bob search --help
"""),
        ),
        (
            ("--fs", "ext4", "--bounds", "smal"),
            snapshot("""\
bob: unknown bounds 'smal'
hint: did you mean 'small'?
"""),
        ),
        (
            ("--fs", "ext4", "--bounds", "ac"),
            snapshot("""\
bob: unknown bounds 'ac'
hint: did you mean 'ace'?
"""),
        ),
        (
            ("--bounds", "ace", "--property", "append-any"),
            snapshot("""\
bob: the bounds ace test promises of calls, not the property append-any
hint: use --property with shapes, small or your own bounds
"""),
        ),
        (
            ("--fs", "ext4", "--ops", "5"),
            snapshot("""\
bob: invalid value for '--ops': 5 is not in the range 1<=x<=4
hint: bob search --help
"""),
        ),
        (
            ("--fs", "ext4", "--ops", "3"),
            snapshot("""\
bob: there are too many workloads of 3 operations to try all
hint: draw some of them with --sample N or --seconds N
"""),
        ),
        (
            ("--fs", "ext4", "--shard", "3/2"),
            snapshot("""\
bob: invalid --shard '3/2'; expected K/N
hint: for example 1/4: the first of four parts
"""),
        ),
        (
            ("--fs", "ext4", "--shard", "0/2"),
            snapshot("""\
bob: invalid --shard '0/2'; expected K/N
hint: for example 1/4: the first of four parts
"""),
        ),
        (
            ("--fs", "ext4", "--property", "append-all"),
            snapshot("""\
bob: unknown property 'append-all'
hint: did you mean 'append-any'?
"""),
        ),
        (
            ("--fs", "ext4", "--sample", "3", "--seconds", "5"),
            snapshot("""\
bob: --sample cannot be used with --seconds
hint: leave one out
"""),
        ),
        (
            ("--fs", "ext4", "--resume", "."),
            snapshot("""\
bob: --fs cannot be used with --resume
hint: RUN keeps the options that it was started with; for others, start a new run
"""),
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(bob: Bob, work: Work, words: tuple[str, ...], said: str) -> None:
    ended = bob("search", *words)
    assert ended.code == 2 and ended.err == said, ended.err
    assert work.asked == []


def test_a_search_is_gone_on_with(bob: Bob, work: Work) -> None:
    Path("run").mkdir()
    Path("run/run.json").write_text("{}")
    bob("search", "--resume", "run")
    [(run, _host)] = work.asked
    assert run == Path("run")


WORKLOAD = """
def setup(fs):
    fs.write("/f", 0, 100)

def workload(fs, choose):
    fs.append("/f", choose([100, 4096]))
    if choose(2):
        fs.create("/f")
    fs(choose(["fsync /f", "sync"]))
"""


def test_a_python_file_makes_the_workloads(bob: Bob, work: Work) -> None:
    Path("mine.py").write_text(WORKLOAD)
    bob("search", "--fs", "ext4", "--workload", "mine.py", "--shard", "1/2")
    [(asked, _request, _out)] = work.asked
    Path("mine.py").unlink()
    again = search_in(json.loads(json.dumps(encode(asked))))
    assert [one.name for one in again.workloads(again.space())] == [
        "append /f 100; fsync /f",
        "append /f 4096; fsync /f",
    ]


def test_counting_the_workloads_of_a_python_file(bob: Bob, work: Work) -> None:
    Path("mine.py").write_text(WORKLOAD)
    ended = bob("search", "--workload", "mine.py", "--count")
    assert text_with(" ".join(ended.out.split()), 4, 6, 2, "mine.py", 8, "/f") == snapshot(
        "4 workloads 6 sequences of choices 2 ended at a call that a file system refuses; the first: mine.py, line 8: create /f: /f exists already 2 tested nothing: their calls promise nothing about the operations before"
    )
    assert bob("search", "--workload", "mine.py", "--count", "--sample", 3).out == "3 workloads\n"
    assert bob("search", "--workload", "mine.py", "--count", "--seconds", 3).out.startswith("4 workloads\n")
    assert work.asked == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--bounds", "small"),
            snapshot("""\
bob: --bounds cannot be used with --workload
hint: the Python file defines the workloads and their promises
"""),
        ),
        (
            ("--ops", "1"),
            snapshot("""\
bob: --ops cannot be used with --workload
hint: the Python file defines the workloads and their promises
"""),
        ),
        (
            ("--property", "append-any"),
            snapshot("""\
bob: --property cannot be used with --workload
hint: the Python file defines the workloads and their promises
"""),
        ),
        (
            ("--workload", "none.py"),
            snapshot("""\
bob: invalid value for '--workload': File 'none.py' does not exist
hint: bob search --help
"""),
        ),
        (
            ("--workload", "wrong.py"),
            snapshot("""\
bob: wrong.py, line 2: unknown call fs.apend
hint: did you mean 'append'?
"""),
        ),
        (
            ("--resume", "."),
            snapshot("""\
bob: --workload cannot be used with --resume
hint: RUN keeps the options that it was started with; for others, start a new run
"""),
        ),
    ],
)
def test_a_python_file_says_what_its_workloads_are(bob: Bob, work: Work, words: tuple[str, ...], said: str) -> None:
    Path("mine.py").write_text(WORKLOAD)
    Path("wrong.py").write_text("def workload(fs, choose):\n    fs.apend('/f', 100)")
    fs = () if "--resume" in words else ("--fs", "ext4")
    mine = () if "--workload" in words else ("--workload", "mine.py")
    ended = bob("search", *fs, *mine, *words)
    assert ended.code == 2 and ended.err == said, ended.err
    assert work.asked == []
