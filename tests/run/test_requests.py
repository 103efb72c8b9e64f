"""One answer to one question: a property that is asked alone is judged on what the whole table judges it on.

And the questions themselves, as Python asks them: what they are made into, what is refused and how, and that a call
which is interrupted says so. No guest is started here.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from inline_snapshot import snapshot

import bob
import bob.run.prober
import bob.run.programs
from bob.catalogue.probe_files import Probe, load_rows
from bob.catalogue.request import ProbeRequest
from bob.catalogue.sets import RowSet, probes_of
from bob.catalogue.workloads import asked_workloads, distinct, recorded_as
from bob.claim.property.rules import Property, questions
from bob.errors import UsageError
from bob.program.folder import named
from bob.progress import Silent
from bob.run import interrupts
from bob.run.interrupts import no_guest_left, telling_where
from bob.run.option_table import Questions
from bob.run.requests import TABLE_1, with_rows_of
from bob.subject import configuration, load_set
from bob.subject.file_system import file_systems
from bob.workload.history import History
from bob.workload.language import parse
from bob.workload.operations import At, Finish, Workload
from bob.workload.simulation import simulate
from wording import text_with


@cache
def history_of(workload: Workload) -> History:
    """Each property asks it of the same workloads."""
    return simulate(workload)[0]


def judged_on(prop: Property, workloads: list[Workload]) -> list[Workload]:
    """The workloads on which a property is judged where these are recorded, whatever they are called."""
    nameless = (replace(workload, name="") for workload in workloads)
    return [workload for workload in nameless if questions(prop, history_of(workload))]


@pytest.mark.parametrize("fs", sorted({"ext4", *(name for name, fs in file_systems().items() if fs.lacks)}))
@pytest.mark.parametrize("rows", [RowSet.TABLE1, RowSet.UNITS])
def test_a_property_is_judged_alone_on_what_it_is_judged_on_in_the_table(fs: str, rows: RowSet) -> None:
    made = configuration(fs)
    every = asked_workloads(ProbeRequest(made, rows=rows))
    for probe in probes_of(rows):
        alone = asked_workloads(ProbeRequest(made, (probe.property.name,), rows=rows))
        judged = judged_on(probe.property, alone)
        assert set(judged) == set(judged_on(probe.property, every))
        assert len(alone) == len(judged), "and nothing is recorded that nobody asks for"


def test_directory_operations_are_asked_for_by_other_probes_too() -> None:
    """What was wrong: a dozen workloads of its own said holds where the table had ×."""
    [probe] = [probe for probe in probes_of(RowSet.TABLE1) if probe.property.name == "directory-op"]
    alone = asked_workloads(ProbeRequest(configuration("btrfs"), ("directory-op",)))
    assert len(alone) > 2 * len(probe.workloads)


def test_the_whole_table_has_all_workloads_in_the_order_of_its_probes() -> None:
    every = asked_workloads(ProbeRequest(configuration("ext4")))
    assert every == distinct(workload for probe in probes_of(RowSet.TABLE1) for workload in probe.workloads)
    alone = asked_workloads(ProbeRequest(configuration("ext4"), ("append-any",)))
    assert len(alone) == len(set(alone))
    assert set(alone) <= set(every)


def test_the_workloads_of_a_propertys_own_probe_come_first() -> None:
    [probe] = [probe for probe in probes_of(RowSet.TABLE1) if probe.property.name == "overwrite-any"]
    alone = asked_workloads(ProbeRequest(configuration("ext4"), ("overwrite-any",)))
    assert [recorded_as(one) for one in alone[: len(probe.workloads)]] == [recorded_as(one) for one in probe.workloads]
    assert len(alone) > len(probe.workloads)


def test_a_probe_of_ones_own_brings_its_workloads_and_no_others() -> None:
    [shipped] = [probe for probe in probes_of(RowSet.TABLE1) if probe.property.name == "append-append-same-file"]
    mine = Workload("mine", parse("create /a"), parse("write /a 0 4K; append /a 4K"), Finish("natural", natural=True))
    assert mine.at is At.ANY
    own = Probe(99, replace(shipped.property, name="my-appends"), (mine,))
    request = ProbeRequest(configuration("ext4"), probes=(own,))
    assert asked_workloads(request) == [mine]
    beside = asked_workloads(replace(request, properties=(shipped.property.name,)))
    assert beside[-1] == mine
    assert beside[:-1] == asked_workloads(ProbeRequest(configuration("ext4"), (shipped.property.name,)))


# Ctrl-C


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[None]]:
    """Filled each time all guests are killed."""
    killed: list[None] = []
    monkeypatch.setattr(interrupts, "_kill_guests", lambda: killed.append(None))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield killed
    signal.signal(signal.SIGINT, before)


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_ctrl_c_ends_the_block_and_the_guests_that_are_left(killed: list[None]) -> None:
    with pytest.raises(KeyboardInterrupt), no_guest_left():
        try:
            press()
        finally:
            press()  # within the second, while what was begun ends: it is the same one
            assert killed == []
    assert len(killed) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_later_one_ends_the_guests_at_once_and_the_block_goes_on_ending(
    killed: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupts, "_SAME", 0.0)
    ended = False
    with pytest.raises(KeyboardInterrupt), no_guest_left():
        try:
            press()
        finally:
            press()
            assert len(killed) == 1
            ended = True
    assert ended


def test_an_interrupt_that_c_code_has_swallowed_is_one_still(killed: list[None]) -> None:
    with pytest.raises(KeyboardInterrupt), no_guest_left():
        try:
            press()
        except KeyboardInterrupt:
            raise TypeError("cannot compare") from None
    with pytest.raises(TypeError), no_guest_left():
        raise TypeError


def test_guests_of_another_call_are_left_alone(killed: list[None]) -> None:
    begun, ends = threading.Event(), threading.Event()

    def other() -> None:
        with no_guest_left():
            begun.set()
            ends.wait()

    thread = threading.Thread(target=other)
    thread.start()
    begun.wait()
    try:
        with pytest.raises(UsageError), no_guest_left():
            raise UsageError("it cannot be")
    finally:
        ends.set()
        thread.join()
    assert killed == []


def test_a_handler_of_ones_own_stays(killed: list[None]) -> None:
    pressed: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: pressed.append(number))
    with no_guest_left():
        press()
    assert (pressed, killed) == ([signal.SIGINT], [])


def test_an_interrupt_says_how_to_go_on_where_a_run_was_begun(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    (runs / "older").mkdir(parents=True)
    (runs / "older" / "run.json").touch()
    with pytest.raises(KeyboardInterrupt) as nothing, telling_where(None, runs):
        raise KeyboardInterrupt
    assert getattr(nothing.value, "__notes__", []) == []
    with pytest.raises(KeyboardInterrupt) as begun, telling_where(None, runs):
        (runs / "new").mkdir()
        (runs / "new" / "run.json").touch()
        raise KeyboardInterrupt
    assert begun.value.__notes__ == [f"bob keeps what is finished; bob.resume('{runs / 'new'}') continues"]


def test_two_file_systems_of_one_name_are_no_two_answers(tmp_path: Path) -> None:
    declared = (Path(bob.__file__).parent / "subject" / "file-systems" / "ext4.toml").read_text()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.toml").write_text(declared)
    asked = [ProbeRequest(configuration(str(tmp_path / folder / "mine.toml"))) for folder in ("a", "b")]
    with pytest.raises(UsageError) as refused:
        bob.run.programs.preflight(named("replace-rename"), asked, Silent())
    assert text_with(str(refused.value), "mine") == snapshot("two file systems have the name 'mine'")


def test_a_set_brings_its_rows_unless_others_are_asked_for() -> None:
    chosen = load_set("sync-table")
    ours, every = with_rows_of(chosen, TABLE_1)
    assert ours == chosen and chosen.rows is not None
    assert every.probes == load_rows(chosen.rows)
    for given in (Questions(properties=("append-any",)), Questions(rows=RowSet.UNITS), Questions(probes=every.probes)):
        theirs, asked = with_rows_of(chosen, given)
        assert asked == given
        assert (theirs.rows, theirs.asks) == (None, {})
    assert with_rows_of(load_set("osdi14"), TABLE_1) == (load_set("osdi14"), TABLE_1)


def test_a_row_that_the_set_lacks() -> None:
    chosen = replace(load_set("sync-table"), asks={"ext4": ("sync", "fsink")})
    with pytest.raises(UsageError) as refused:
        with_rows_of(chosen, TABLE_1)
    assert text_with(str(refused.value), "ext4", "fsink") == snapshot("ext4 asks for the unknown row 'fsink'")
