"""What searches tried, in the cells of probes: no workload twice, no other kernel, and one answer to one question."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree

import pytest

import samples_of_runs as samples
from bob.catalogue.probe_files import Probe, shipped_probes
from bob.claim.verdict import Verdict
from bob.crash.coverage import States, total
from bob.crash.device import DeviceModel
from bob.errors import MalformedError, StoreError
from bob.judge.again import told
from bob.judge.searched import beside, check, keep
from bob.report.saved import load, read_result
from bob.request import ProbeRequest, request_to_json
from bob.result import ConfigurationResult, Environment, PropertyResult, Result, Run, WorkloadResult, from_json, to_json
from bob.run.prober import start
from bob.search.space import Part, probes
from bob.search.spaces import search
from bob.store.matrix_directory import MatrixDirectory
from bob.store.run_directory import RunDirectory
from bob.store.search_directory import SearchDirectory
from bob.store.searched_file import FILE, read
from bob.subject import configuration
from bob.workload.operations import Workload
from report.witnesses import documents

CHECKOUT = Path(__file__).parents[2]
NAME = "overwrite-any"
[SHIPPED] = shipped_probes((NAME,))
ASKED = search(None, (NAME,), 2, Part(sample=8, seed=1))
WORKLOADS = [*ASKED.workloads(ASKED.space())]
REQUEST = ProbeRequest(samples.CONFIGURATION, model=DeviceModel())
HOLDS, FAILS, UNKNOWN = Verdict.HOLDS, Verdict.FAILS, Verdict.UNKNOWN
SOME = States(3, 4, 4, None, 2, 3)
ALL = States(8, 8, 8, "writes", 2, 8)


def result(request: ProbeRequest, rows: Sequence[tuple[Workload, Verdict, States]], kernel: str = "") -> Result:
    """A result with one cell, of these workloads."""
    verdicts = [verdict for _one, verdict, _states in rows]
    worst = next((one for one in (FAILS, UNKNOWN) if one in verdicts), HOLDS)
    cell = PropertyResult(
        NAME,
        "ordering",
        worst,
        total([states for _one, _verdict, states in rows]),
        tuple(WorkloadResult(one.name, one.finish.name, verdict, states) for one, verdict, states in rows),
        witness=f"witnesses/{NAME}.json" if worst is FAILS else None,
        evidence="it is gone" if worst is FAILS else None,
        reason="the guest was lost" if worst is UNKNOWN else None,
    )
    made = request.configuration
    column = ConfigurationResult(made.name, made.fs.name, made.mkfs_options, made.mount_options, "rw", (cell,))
    return Result(Run("x", "then", "now", "0.1", 1, 100), environment(kernel), request.model, (column,))


def environment(kernel: str = "") -> Environment:
    return Environment(**{**samples.ENVIRONMENT, **({"kernel": kernel} if kernel else {})})


def lay(
    folder: Path, request: ProbeRequest, rows: Sequence[tuple[Workload, Verdict, States]], kernel: str = ""
) -> Result:
    """A run directory as a probe leaves it, as far as it is looked at here."""
    run, found = start(request, folder, "x"), result(request, rows, kernel)
    run.note(environment=to_json(found)["environment"], finished="now")
    if found.configurations[0].properties[0].witness:
        run.save_witness(NAME, documents()[NAME])
    run.save_result(to_json(found))
    return found


def probed(folder: Path, numbers: Sequence[int], verdict: Verdict = HOLDS, request: ProbeRequest = REQUEST) -> Result:
    """A probe of these workloads, and no others."""
    chosen = tuple(WORKLOADS[number] for number in numbers)
    asked = replace(request, probes=(Probe(1, SHIPPED.property, chosen),))
    return lay(folder, asked, [(one, verdict, ALL) for one in chosen])


def searched(
    folder: Path,
    verdicts: Mapping[int, Verdict],
    states: States = ALL,
    request: ProbeRequest = REQUEST,
    kernel: str = "",
) -> SearchDirectory:
    """A search that tried these workloads, the first two of them in a lot of their own."""
    identity = folder.name
    about = {"id": identity, "started": "then", "bob": "0.1", "search": ASKED.to_json()}
    directory = SearchDirectory.create(folder, {**about, "request": request_to_json(request)})
    numbers, lots = [*verdicts], []
    for part in (numbers[:2], numbers[2:]):
        if part:
            lot = directory.begin(len(part))
            asked = replace(request, probes=probes(ASKED.space(), [WORKLOADS[number] for number in part]))
            rows = [(WORKLOADS[number], verdicts[number], states) for number in part]
            lots.append((lot, lay(lot, asked, rows, kernel)))
    told(directory, lots)
    return directory


def cell_of(found: Result) -> PropertyResult:
    [cell] = found.configurations[0].properties
    return cell


def test_more_is_what_no_other_tried(tmp_path: Path) -> None:
    probed(tmp_path / "run", [0, 1])
    assert cell_of(read_result(tmp_path / "run")).searched is None
    searched(tmp_path / "one", {1: HOLDS, 2: HOLDS, 3: HOLDS})
    searched(tmp_path / "two", {3: HOLDS, 4: HOLDS, 0: HOLDS}, SOME)
    cell = cell_of(read_result(tmp_path / "run"))
    assert cell.verdict is HOLDS and cell.witness is None and cell.searched is not None
    more = cell.searched
    assert (more.workloads, more.failing, more.complete) == (3, 0, 2)
    assert (more.explored_writes, more.legal_writes) == (8 + 8 + 3, 8 + 8 + 4), "of two searches the one that saw more"
    assert list(more.searches) == ["one", "two"]
    assert "those that ask for overwrite-any, 8 drawn by seed 1, budget 100, bob 0.1" in more.searches["one"]
    assert load(tmp_path / "run" / "result.json").result == read_result(tmp_path / "run")


def test_what_is_not_known_does_not_count(tmp_path: Path) -> None:
    probed(tmp_path / "run", [0])
    searched(tmp_path / "one", {1: HOLDS, 2: UNKNOWN, 3: UNKNOWN})
    more = cell_of(read_result(tmp_path / "run")).searched
    assert more is not None and more.workloads == 1
    probed(tmp_path / "lost", [0], UNKNOWN)
    cell = cell_of(read_result(tmp_path / "lost"))
    assert (cell.verdict, cell.reason) == (UNKNOWN, "the guest was lost"), "what a search saw makes nothing hold"


def test_a_search_that_is_told_again_takes_its_own_place(tmp_path: Path) -> None:
    probed(tmp_path / "run", [0])
    directory = searched(tmp_path / "one", {1: FAILS, 2: HOLDS, 3: HOLDS})
    assert cell_of(read_result(tmp_path / "run")).verdict is FAILS
    lots = [(folder, from_json(RunDirectory(folder).result())) for folder, _count in directory.lots()]
    told(directory, lots[1:])
    cell = cell_of(read_result(tmp_path / "run"))
    assert cell.searched is not None
    assert (cell.verdict, cell.searched.workloads, cell.searched.failing) == (HOLDS, 1, 0)
    told(directory, lots)
    told(directory, lots)
    cell = cell_of(read_result(tmp_path / "run"))
    assert cell.searched is not None
    assert (cell.verdict, cell.searched.workloads, cell.searched.failing) == (FAILS, 3, 1)


OTHERS = {
    "options": (replace(REQUEST, configuration=configuration("ext4", "", "data=writeback")), ""),
    "size": (replace(REQUEST, configuration=replace(samples.CONFIGURATION, device=1 << 26)), ""),
    "device": (replace(REQUEST, model=DeviceModel(atomic_write_bytes=4096)), ""),
    "kernel": (REQUEST, "6.12"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_configuration_or_kernel_is_another_question(tmp_path: Path, other: str) -> None:
    request, kernel = OTHERS[other]
    searched(tmp_path / "one", {1: FAILS, 2: FAILS, 3: FAILS}, request=request, kernel=kernel)
    alone = probed(tmp_path / "run", [0])
    assert read_result(tmp_path / "run") == alone == keep(tmp_path / "run", alone)


def test_a_property_that_is_asked_otherwise_is_another_one(tmp_path: Path) -> None:
    searched(tmp_path / "one", {1: FAILS, 2: FAILS, 3: FAILS})
    other = replace(SHIPPED.property, then_renamed=True)
    lay(tmp_path / "run", replace(REQUEST, probes=(Probe(1, other, (WORKLOADS[0],)),)), [(WORKLOADS[0], HOLDS, ALL)])
    assert cell_of(read_result(tmp_path / "run")).searched is None


def test_where_a_search_breaks_it_the_cell_fails_with_its_witness(tmp_path: Path) -> None:
    probed(tmp_path / "run", [0, 1])
    searched(tmp_path / "one", {2: HOLDS, 3: HOLDS, 4: FAILS, 5: HOLDS})
    cell = cell_of(read_result(tmp_path / "run"))
    assert (cell.verdict, cell.is_by_search) == (FAILS, True)
    assert cell.witness == f"../one/lot-002/witnesses/{NAME}.json"
    assert cell.evidence == documents()[NAME]["evidence"], "what the witness says, which may have been shrunk"
    assert cell.searched is not None and (cell.searched.workloads, cell.searched.failing) == (4, 1)
    assert cell.alone == cell_of(probed(tmp_path / "other", [0, 1]))


def test_where_the_probe_breaks_it_its_own_witness_stays(tmp_path: Path) -> None:
    own = cell_of(probed(tmp_path / "run", [0, 1], FAILS))
    searched(tmp_path / "one", {0: FAILS, 2: FAILS, 3: HOLDS})
    cell = cell_of(read_result(tmp_path / "run"))
    assert (cell.alone, cell.witness, cell.is_by_search) == (own, own.witness, False)
    assert cell.searched is not None and (cell.searched.workloads, cell.searched.failing) == (2, 1)


def test_a_workload_of_the_probe_that_a_search_saw_fail_is_not_passed_over(tmp_path: Path) -> None:
    probed(tmp_path / "run", [0, 1])
    searched(tmp_path / "one", {0: FAILS, 1: HOLDS})
    cell = cell_of(read_result(tmp_path / "run"))
    assert cell.verdict is FAILS and cell.searched is not None
    assert (cell.searched.workloads, cell.searched.failing) == (1, 1)


def test_a_run_keeps_what_it_said_wherever_it_is_moved(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    alone = probed(here / "run", [0, 1])
    directory = searched(here / "one", {2: FAILS, 3: HOLDS})
    kept = keep(here / "run", alone)
    cell = cell_of(kept)
    assert (cell.verdict, cell.witness) == (FAILS, f"witnesses/{NAME}.json")
    copytree(here / "run", there / "run")
    assert read_result(there / "run") == kept
    assert (there / "run" / str(cell.witness)).is_file()
    searched(there / "two", {4: HOLDS})
    assert cell_of(read_result(there / "run")) == cell, "what was told of a search that is not known here is not lost"
    rmtree(directory.path)
    again = cell_of(read_result(here / "run"))
    assert (again.verdict, again.witness) == (FAILS, f"witnesses/{NAME}.json"), "the search's directory may go"


def test_what_is_no_longer_so_is_no_longer_told(tmp_path: Path) -> None:
    alone = probed(tmp_path / "run", [0, 1])
    directory = searched(tmp_path / "one", {2: FAILS, 3: HOLDS})
    keep(tmp_path / "run", alone)
    (lot, _count), *_others = directory.lots()
    request = replace(REQUEST, probes=probes(ASKED.space(), WORKLOADS[2:4]))
    told(directory, [(lot, result(request, [(one, HOLDS, ALL) for one in WORKLOADS[2:4]]))])
    cell = cell_of(read_result(tmp_path / "run"))
    assert (cell.verdict, cell.witness, cell.evidence) == (HOLDS, None, None)
    assert cell.searched is not None and (cell.searched.workloads, cell.searched.failing) == (2, 0)


def test_the_columns_of_a_matrix(tmp_path: Path) -> None:
    about = {"id": "m", "started": "", "bob": "", "set": "two", "about": ""}
    matrix = MatrixDirectory.create(tmp_path / "m", about, ["ext4-ordered", "xfs"])
    xfs = replace(REQUEST, configuration=configuration("xfs"))
    one, other = matrix.folders
    alone = matrix.save_result([(one, probed(one, [0])), (other, probed(other, [0], request=xfs))])
    searched(tmp_path / "s", {1: FAILS, 2: HOLDS})
    shown = read_result(tmp_path / "m")
    assert cell_of(shown).witness == f"../s/lot-001/witnesses/{NAME}.json"
    assert shown.configurations[1] == alone.configurations[1]
    kept = keep(tmp_path / "m", alone)
    assert cell_of(kept).witness == f"ext4-ordered/witnesses/{NAME}.json"
    assert read_result(tmp_path / "m") == kept == from_json(json.loads((tmp_path / "m" / "result.json").read_text()))
    assert cell_of(read_result(one)).witness == f"witnesses/{NAME}.json"


def test_the_table_of_a_search_speaks_of_itself(tmp_path: Path) -> None:
    searched(tmp_path / "one", {0: FAILS})
    directory = searched(tmp_path / "two", {1: HOLDS, 2: HOLDS, 3: HOLDS})
    for path in (directory.path, directory.path / "lot-001"):
        found = read_result(path)
        assert cell_of(found).searched is None and cell_of(found).verdict is HOLDS
        assert keep(path, found) == found


def test_lots_on_two_kernels_are_two_answers(tmp_path: Path) -> None:
    directory = searched(tmp_path / "one", {1: HOLDS, 2: HOLDS, 3: HOLDS})
    lot, _count = directory.lots()[1]
    RunDirectory(lot).note(environment={**samples.ENVIRONMENT, "kernel": "6.12"})
    copytree(tmp_path / "one", tmp_path / "new" / "one")
    again = SearchDirectory(tmp_path / "new" / "one")
    told(again, [(folder, from_json(RunDirectory(folder).result())) for folder, _count in again.lots()])
    kernels = {(one.on.kernel, len(one.whole)) for one in read(tmp_path / "new")}
    assert kernels == {(samples.ENVIRONMENT["kernel"], 2), ("6.12", 1)}


def test_searches_that_end_at_once_lose_nothing(tmp_path: Path) -> None:
    """Each of some processes writes down its own, again and again."""
    searched(tmp_path / "one", {1: HOLDS})
    script = (
        "import sys; from dataclasses import replace; from pathlib import Path\n"
        "from bob.store.searched_file import read, update\n"
        "folder, name = Path(sys.argv[1]), sys.argv[2]; [kept] = [one for one in read(folder) if one.id == 'one']\n"
        "print('ready', flush=True); input()\n"
        "for number in range(30): update(folder, name, [replace(kept, id=name, told=str(number))])"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    writers = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT)
        for name in ("a", "b", "c")
    ]
    for writer in writers:
        assert writer.stdin is not None and writer.stdout is not None and writer.stdout.readline() == "ready\n"
    for writer in writers:
        print(file=writer.stdin, flush=True)
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert [(one.id, one.told) for one in read(tmp_path)][:3] == [("a", "29"), ("b", "29"), ("c", "29")]
    assert {path.name for path in tmp_path.iterdir()} == {"one", FILE}, "and no lock or part is left"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is damaged: "),
        ("[]", "is no table"),
        ('{"schema": "bob.result/1"}', "has not got the schema"),
        ('{"schema": "bob.searched/1"}', "'searches' is missing"),
        ('{"schema": "bob.searched/1", "searches": [{}]}', "'whole' is missing"),
        ('{"schema": "bob.searched/1", "searches": {"a": 1}}', "is damaged: "),
    ],
)
def test_a_damaged_file_is_told_in_a_line_and_left_as_it_is(tmp_path: Path, text: str, said: str) -> None:
    alone = probed(tmp_path / "run", [0])
    directory = searched(tmp_path / "one", {1: HOLDS})
    (tmp_path / FILE).write_text(text)
    for failing in (
        lambda: read_result(tmp_path / "run"),
        lambda: keep(tmp_path / "run", alone),
        lambda: check(tmp_path / "new"),
        lambda: told(directory, directory.results()),
    ):
        with pytest.raises(MalformedError, match=said) as caught:
            failing()
        assert caught.value.hint and "\n" not in caught.value.message + caught.value.hint
        assert str(tmp_path / FILE) in caught.value.message
    assert (tmp_path / FILE).read_text() == text


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(StoreError, match="cannot read"):
        check(tmp_path / "run")


def test_a_result_without_its_run_says_what_it_said(tmp_path: Path) -> None:
    alone = probed(tmp_path / "run", [0])
    searched(tmp_path / "one", {1: HOLDS, 2: HOLDS})
    (tmp_path / "run" / "run.json").unlink()
    assert read_result(tmp_path / "run") == alone
    (tmp_path / "run" / "run.json").write_text("{")
    assert beside(tmp_path / "run", alone) == alone
    (tmp_path / "mine.json").write_text(json.dumps(to_json(alone)))
    assert read_result(tmp_path / "mine.json") == alone
