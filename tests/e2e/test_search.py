"""bob search on real guests: a promise that a kernel breaks is found, and none is broken where none is."""

from __future__ import annotations

import _thread
import re
import shlex
from dataclasses import replace
from itertools import islice
from pathlib import Path
from shutil import rmtree

import pytest
from inline_snapshot import snapshot

from bob.answer.answer import Answer
from bob.answer.result import Cause, Finding, SubjectResult
from bob.catalogue.probe_files import load
from bob.catalogue.request import Host, ProbeRequest
from bob.claim.verdict import Verdict
from bob.cli.main import run as bob
from bob.errors import Exit, StoreError, UsageError
from bob.judge.again import judge_again
from bob.progress import Progress, Silent
from bob.report.saved import load as load_result
from bob.run import prober
from bob.run import search as searching
from bob.run.replay import replay
from bob.schema import decode, encode
from bob.search.space import ALL, Part, probes
from bob.search.spaces import search as asked_search
from bob.search.spaces import search_of_file
from bob.store.search_directory import SearchDirectory
from bob.subject import configuration
from bob.witness import document as witness
from bob.witness.probe_file import to_probe
from bob.witness.xfstests import CacheLoss, loss, to_case
from bob.workload.language import write_one
from bob.workload.operations import Fsync, Operation, Workload, Write
from bob.workload.plain import WorkloadDocument

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("warm_guests")]
NOBODY = Silent()
BOUNDS = """
about = "an append, and two calls"
setup = ["write /f 0 8192"]
files = ["/f", "/n"]
operations = ["append FILE 4096", "create FILE"]
calls = ["fsync FILE", "sync"]
promises = ["fsync-file.size", "fsync-file.entry", "sync.size", "sync.entry"]
"""


def search(
    out: Path, fs: str, options: str = "", *, part: Part = ALL, length: int = 1, progress: Progress = NOBODY
) -> dict[str, Answer]:
    bounds = out.with_suffix(".toml")
    bounds.write_text(BOUNDS)
    request = ProbeRequest(configuration(fs, "", options), budget=60)
    result, _run = searching.search(asked_search(str(bounds), (), length, part), request, out, progress)
    [column] = result.subjects
    return cells_of(column)


def workloads(out: Path) -> list[list[str]]:
    """What each lot of the search in ``out`` tries."""
    return [[one["name"] for one in run.about()["workloads"]] for run in SearchDirectory(out).runs()]


def cells_of(column: SubjectResult) -> dict[str, Answer]:
    return {cell.name: cell for cell in column.answers}


def findings(out: Path) -> tuple[Finding, ...]:
    """What the search in ``out`` tells by cause."""
    [column] = load_result(out).result.subjects
    return column.findings


def said(cells: dict[str, Answer]) -> dict[str, set[tuple[str, Verdict]]]:
    """What each workload said of each promise."""
    return {name: {(one.name, one.verdict) for one in cell.recordings} for name, cell in cells.items()}


def test_the_first_fsync_after_a_mount_of_f2fs_waits_for_nothing(tmp_path: Path) -> None:
    """docs/findings.md; a kernel in which this is mended turns the test red, and the page untrue."""
    cells = search(tmp_path / "run", "f2fs")
    verdicts = {name: cell.verdict for name, cell in cells.items()}
    fails = {name for name, verdict in verdicts.items() if verdict is Verdict.FAILS}
    assert fails == {"fsync-file.size", "fsync-file.entry", "fsync-file.several"}
    assert verdicts["sync.size"] is verdicts["sync.entry"] is verdicts["collateral"] is Verdict.HOLDS
    witnesses = [tmp_path / "run" / str(cells[name].witness) for name in sorted(fails)]
    for shown in replay(witnesses, image=None, connect=None, times=2, progress=Silent()):
        assert (shown.confirmed, shown.times) == (2, 2)

    # All of it is one finding, which others can be given.
    [finding] = findings(tmp_path / "run")
    assert finding.cause == Cause("durable", "node block", "lost", "under-way")
    assert set(finding.rows) == fails and finding.operations == 2
    path = tmp_path / "run" / str(finding.witness)
    [again] = replay([path], image=None, connect=None, times=2, progress=Silent())
    assert again.confirmed == 2
    found = witness.read(path)
    assert found.timeline.causes, "the loss of one block decides"
    assert loss(found) is CacheLoss.ALL and "_log_writes_replay_log" in to_case(found, "900").script
    file = tmp_path / "found.toml"
    file.write_text(to_probe(found))
    request = ProbeRequest(found.configuration, probes=(load(file),), budget=30, model=found.model)
    result, _run = prober.probe(request, tmp_path / "probed", Silent())
    [cell] = result.subjects[0].answers
    assert (cell.name, cell.verdict) == (load(file).property.name, Verdict.FAILS)


PAGE = Path(__file__).parents[2] / "docs" / "findings.md"


def told(heading: str) -> list[list[str]]:
    """The questions (`bob try`) that a section of docs/findings.md asks, in words."""
    [section] = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE.read_text(), flags=re.S | re.M)
    commands = re.findall(r"^bob (try (?:.*\\\n)*.*)$", section, flags=re.M)
    return [shlex.split(command.replace("\\\n", " ")) for command in commands]


@pytest.mark.parametrize(
    ("heading", "answers"),
    [
        ("jfs: fsync of a directory writes nothing", [Exit.DIFFERENT]),
        ("jfs: no flush, after anything", [Exit.DIFFERENT]),
        ("jfs: Debian's fsck.jfs does not replay the log", [Exit.DIFFERENT]),
        ("vfat: fsck cuts a file that fsync made durable", [Exit.DIFFERENT]),
        ("vfat: sync and syncfs send no flush", [Exit.DIFFERENT]),
        ("xfs: sync sends no flush where nothing is left for its log", [Exit.DIFFERENT]),
        ("reiserfs: fsync leaves out the size that a direct write has made", [Exit.DIFFERENT]),
        ("btrfs: a file has two names after it is moved and the new directory is synced", [Exit.DIFFERENT]),
        (
            "btrfs: a file takes the place of another one without what was written since its fsync",
            [Exit.DIFFERENT],
        ),
        ("nilfs2: fsync leaves out what is in the inode alone", [Exit.DIFFERENT]),
        ("nilfs2: a checkpoint without its first part is taken for whole", [Exit.DIFFERENT]),
        ("ext4: a file that takes the place of another one is zeros", [Exit.DIFFERENT]),
        (
            "ext4 with data=writeback: another file gets the blocks of a truncated one too early",
            [Exit.DIFFERENT],
        ),
    ],
)
def test_what_the_page_of_findings_asks_is_answered_as_it_says(
    tmp_path: Path, heading: str, answers: list[Exit]
) -> None:
    """A kernel in which one of these is mended turns the test red, and the page untrue. Not asked is what was mended
    since: it may come to any kernel with its next update."""
    asked = told(heading)
    assert len(asked) == len(answers)
    for number, (words, answer) in enumerate(zip(asked, answers, strict=True)):
        quick = ["--finish", "natural", "--budget", "60", "--quiet", "--out", str(tmp_path / str(number))]
        assert bob([*words, *quick]) == answer, words


NEW, BACK = "--expect 'content /f = new'", "--setup 'write /s 0 100; write /h 0 40960' --at any"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (
            f"try --fs jfs --write-cache none --setup 'write /f 0 8192' 'write /f 0 4096; fsync /f' --at end {NEW}",
            Exit.DONE,
        ),
        (f"try --fs vfat --setup 'write /f 0 8192' 'write /f 0 4096; fsync /f' --at end {NEW}", Exit.DONE),
        (f"try --fs xfs --setup 'write /f 0 8192' 'write /f 50 60; sync' --at end {NEW}", Exit.DONE),
        (
            f"try --fs ext4 --mount-opts data=writeback {BACK} 'append /n 16384; rename /s /h; sync' "
            "--expect 'size /h < 40960 or content /h = old'",
            Exit.DIFFERENT,
        ),
    ],
)
def test_what_the_page_of_findings_says_beside_a_question_is_so(tmp_path: Path, words: str, answer: Exit) -> None:
    quick = ["--finish", "natural", "--budget", "60", "--quiet", "--out", str(tmp_path / "run")]
    assert bob([*shlex.split(words), *quick]) == answer


def test_where_nothing_is_flushed_every_promise_is_broken(tmp_path: Path) -> None:
    """A planted fault that no kernel will mend: ext4 without barriers."""
    cells = search(tmp_path / "run", "ext4", "barrier=0")
    beside = cells.pop("collateral")
    assert {cell.verdict for cell in cells.values()} == {Verdict.FAILS}
    assert beside.verdict is Verdict.HOLDS
    told = findings(tmp_path / "run")
    assert {(one.cause.rule, one.cause.fate, one.cause.flush) for one in told} == {("durable", "lost", "none")}
    assert {row for one in told for row in one.rows} == cells.keys()
    assert len(told) < len(cells)


def test_a_device_that_is_to_be_full_is_full(tmp_path: Path) -> None:
    """The kernel has no room for more than is left, and a resumed search does not measure again."""
    out = tmp_path / "run"
    request = ProbeRequest(configuration("ext4"), budget=20)
    asked = asked_search("full", part=Part(sample=3))
    result, _run = searching.search(asked, request, out, Silent())
    cells = cells_of(result.subjects[0])
    assert {cell.verdict for cell in cells.values()} == {Verdict.HOLDS}
    filler = SearchDirectory(out).about()["search"]["filler"]
    assert filler > 2**20 and f"fallocate /full 0 {filler} keep" in map(write_one, _setup_of(out))
    assert cells_of(searching.resume(out, Host(), Silent())[0].subjects[0]) == cells
    room = asked.leave + 2**20
    big = replace(request, probes=probes(asked.space(), [_appending(out, room)]))
    refused, _run = prober.probe(big, tmp_path / "big", Silent())
    reasons = {cell.reason for cell in refused.subjects[0].answers if cell.verdict is Verdict.UNKNOWN}
    assert any("No space left on device" in (reason or "") for reason in reasons)


def _setup_of(out: Path) -> tuple[Operation, ...]:
    [run] = SearchDirectory(out).runs()
    return decode(WorkloadDocument, run.about()["workloads"][0]).workload.setup


def _appending(out: Path, length: int) -> Workload:
    return Workload("big", _setup_of(out), (Write("/d/c", 4096, length), Fsync("/d/c")))


def test_where_nothing_can_be_allocated_ahead_no_device_is_filled(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot fill ext2") as refused:
        searching.search(asked_search("full"), ProbeRequest(configuration("ext2")), tmp_path / "run", Silent())
    assert "Operation not supported" in (refused.value.hint or "") and not (tmp_path / "run").exists()


def test_no_promise_is_broken_where_all_is_in_the_journal(tmp_path: Path) -> None:
    cells = search(tmp_path / "run", "ext4", "data=journal")
    assert {cell.verdict for cell in cells.values()} == {Verdict.HOLDS}
    assert {len(cell.recordings) for cell in cells.values()} == {1, 6}
    said = load_result(tmp_path / "run").result.run.search
    assert said == snapshot("workloads within the bounds run, of 1 operation")


class Interrupting(Silent):
    """Ctrl-C when a workload is done, or when a lot is."""

    def __init__(self, *, within: bool) -> None:
        self._within, self._left = within, 1

    def finished(self, workload: str, unused: int) -> None:
        if self._within and self._left:
            self._left = 0
            _thread.interrupt_main()

    def step(self, text: str) -> None:
        if not self._within and " tried, " in text:
            raise KeyboardInterrupt


@pytest.mark.parametrize("within", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_search_that_is_stopped_and_gone_on_with_finds_what_an_undisturbed_one_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within: bool
) -> None:
    monkeypatch.setattr(searching, "LOT", 4)
    whole = search(tmp_path / "whole", "f2fs")
    assert len(SearchDirectory(tmp_path / "whole").lots()) == 2
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "run", "f2fs", progress=Interrupting(within=within))
    stopped = SearchDirectory(tmp_path / "run")
    assert [count for _folder, count in stopped.lots()] == [4] and "finished" not in stopped.about()
    result, _run = searching.resume(tmp_path / "run", Host(), Silent())
    [column] = result.subjects
    assert said(cells_of(column)) == said(whole)
    assert whole["fsync-file.size"].verdict is Verdict.FAILS
    [again] = judge_again(tmp_path / "run").subjects
    assert said(cells_of(again)) == said(whole)
    assert [replace(one, witness=None) for one in again.findings] == [
        replace(one, witness=None) for one in findings(tmp_path / "whole")
    ]


@pytest.mark.long
def test_two_shards_find_what_one_search_finds(tmp_path: Path) -> None:
    whole = search(tmp_path / "whole", "f2fs")
    parts = [search(tmp_path / f"part-{number}", "f2fs", part=Part(number, 2)) for number in (1, 2)]
    together: dict[str, set[tuple[str, Verdict]]] = {}
    for part in map(said, parts):
        for name, workloads in part.items():
            together.setdefault(name, set()).update(workloads)
    assert together == said(whole)
    causes = [{one.cause for one in findings(tmp_path / name)} for name in ("whole", "part-1", "part-2")]
    assert causes[0] == causes[1] | causes[2] != set()


@pytest.mark.long
def test_what_is_found_among_drawn_workloads_is_shrunk(tmp_path: Path) -> None:
    """The smallest is an operation and the fsync; the result tells of it."""
    cells = search(tmp_path / "run", "f2fs", part=Part(sample=5, seed=1), length=3)
    failing = {name: cell for name, cell in cells.items() if cell.verdict is Verdict.FAILS}
    assert failing
    for name, cell in failing.items():
        found = witness.read(tmp_path / "run" / str(cell.witness))
        assert found.shrunk_from is not None and found.evidence == cell.evidence
        assert len(found.workload.operations) == 2, name
    for finding in findings(tmp_path / "run"):
        found = witness.read(tmp_path / "run" / str(finding.witness))
        assert found.shrunk_from is not None and found.evidence == finding.evidence
        assert finding.operations == len(found.workload.operations) == 2


@pytest.mark.long
def test_a_search_for_some_seconds_draws_until_they_have_passed(tmp_path: Path) -> None:
    request = ProbeRequest(configuration("ext4"), budget=20)
    asked = asked_search("small", (), 3, Part(seed=3), seconds=20)
    result, _run = searching.search(asked, request, tmp_path / "run", Silent())
    [column] = result.subjects
    tried = cells_of(column)["collateral"].recordings
    drawn = islice(asked.workloads(asked.space()), len(tried))
    assert {one.name for one in tried} == {one.name for one in drawn}
    assert len(tried) >= searching.FIRST_LOT
    assert "finished" in SearchDirectory(tmp_path / "run").about()


@pytest.mark.long
def test_a_search_for_properties_ends_when_they_are_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "FIRST_LOT", 2)
    request = ProbeRequest(configuration("ext4", "", "data=ordered"), budget=30)
    asked = asked_search(None, ("append-any", "overwrite-any"), 2)
    result, _run = searching.search(asked, request, tmp_path / "run", Silent())
    cells = cells_of(result.subjects[0])
    assert {name: cell.verdict for name, cell in cells.items() if name != "collateral"} == {
        "append-any": Verdict.FAILS,
        "overwrite-any": Verdict.FAILS,
    }
    assert all(witness.read(tmp_path / "run" / str(cells[name].witness)) for name in asked.props)
    directory = SearchDirectory(tmp_path / "run")
    before = directory.lots()
    searching.resume(tmp_path / "run", Host(), Silent())
    assert directory.lots() == before, "a search that is done has nothing left to do"
    tried = workloads(tmp_path / "run")
    rmtree(before[-1][0])  # as if it had been killed before its last lot was begun
    searching.resume(tmp_path / "run", Host(), Silent())
    assert workloads(tmp_path / "run") == tried, "what is still asked for depends on what is broken, not on luck"
    assert len(tried) > 1


def test_what_the_kernel_says_of_operations_that_a_file_system_lacks_is_told(tmp_path: Path) -> None:
    bounds = tmp_path / "bounds.toml"
    bounds.write_text(BOUNDS.replace('"append FILE 4096"', '"append FILE 4096", "reflink /f /n"'))
    request = ProbeRequest(configuration("ext4"), budget=10)
    result, _run = searching.search(asked_search(str(bounds)), request, tmp_path / "run", Silent())
    [note] = [note for note in result.subjects[0].notes if note.startswith("skipped")]
    assert re.fullmatch(r"skipped: reflink \(\d workloads\): the kernel says: Operation not supported", note)


LOG = """
promises = ["fsync-file.size", "sync.size"]

def setup(fs):
    fs.write("/log", 0, 8192)

def workload(fs, choose):
    for number in range(choose([1, 2])):
        fs.append("/log", 4096)
        fs(choose(["fsync /log", "sync"]))
    if fs.size("/log") > 16000:
        fs.truncate("/log", 0)
        fs.fsync("/log")
"""


def test_a_python_file_finds_what_the_first_fsync_after_a_mount_of_f2fs_loses(tmp_path: Path) -> None:
    """A second fsync waits. The first one after a sync waits for nothing, too: sync makes a checkpoint, and f2fs counts
    from 0 again (docs/findings.md)."""
    (tmp_path / "log.py").write_text(LOG)
    asked, out = search_of_file(tmp_path / "log.py"), tmp_path / "run"
    (tmp_path / "log.py").unlink()
    result, _run = searching.search(asked, ProbeRequest(configuration("f2fs"), budget=60), out, Silent())
    cells = cells_of(result.subjects[0])
    append, truncate = "append /log 4096", "truncate /log 0; fsync /log"
    assert said(cells)["fsync-file.size"] == {
        (f"{append}; fsync /log", Verdict.FAILS),
        (f"{append}; fsync /log; {append}; fsync /log", Verdict.HOLDS),
        (f"{append}; sync; {append}; fsync /log", Verdict.FAILS),
        (f"{append}; fsync /log; {append}; fsync /log; {truncate}", Verdict.HOLDS),
        (f"{append}; fsync /log; {append}; sync; {truncate}", Verdict.FAILS),
        (f"{append}; sync; {append}; fsync /log; {truncate}", Verdict.HOLDS),
        (f"{append}; sync; {append}; sync; {truncate}", Verdict.FAILS),
    }
    assert cells["sync.size"].verdict is cells["collateral"].verdict is Verdict.HOLDS
    assert len(witness.read(out / str(cells["fsync-file.size"].witness)).workload.operations) == 2
    [again] = judge_again(out).subjects
    assert said(cells_of(again)) == said(cells)
    changed = {**encode(asked), "text": LOG.replace("4096", "100")}
    SearchDirectory(out).note(search=changed)
    with pytest.raises(StoreError, match="now makes other workloads"):
        searching.resume(out, Host(), Silent())
