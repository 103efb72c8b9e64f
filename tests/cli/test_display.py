"""What a long piece of work shows: on a terminal, in a log file, told by many threads."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.answer.answer import Answer, ClaimWords
from bob.claim.verdict import Verdict
from bob.cli.display import Bar, LineDisplay, verdict_line, watching
from bob.cli.output import THEME, Screen, console, deliver, write_json
from bob.cli.tally import Tally, duration
from bob.crash.coverage import States
from bob.errors import UsageError
from bob.progress import Earlier, EarlierPart, Silent
from bob.run import timings
from bob.run.option_values import read_size
from bob.run.timings import (
    MOST,
    USUAL,
    USUAL_SHARE,
    TimedProgress,
    TimedWork,
    Timing,
    estimate,
    note,
    read,
    timed,
    usual,
)
from bob.subject import load_set, set_names
from wording import line_with, sentence_with, text_with

from .stand_in import result


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def screen(*, terminal: bool = False) -> tuple[Screen, io.StringIO]:
    """A console of 80 columns, and what is written to it."""
    file = io.StringIO()
    return Screen(file=file, force_terminal=terminal, width=80, theme=THEME, highlight=False, markup=False), file


def cell(verdict: Verdict, reason: str | None = None) -> Answer:
    return Answer(ClaimWords("property", "append-any", "ordering"), verdict, States(812, 4096, 2**88), reason=reason)


def test_tally() -> None:
    clock = Clock()
    tally = Tally(clock)
    tally.plan(3, 600)
    assert text_with(tally.line(), "0/600", "0/3", 0) == snapshot("0/600 states, 0/3 workloads done (0 recorded)")
    clock.now += 60  # the guests start
    tally.record()
    tally.observe("a", 50)
    clock.now += 10
    tally.observe("a", 150)
    assert text_with(tally.line(), "200/600", "15/s", "0/3", 1) == snapshot(
        "200/600 states, 15/s, 0/3 workloads done (1 recorded)"
    )
    tally.finish("a", unused=0)
    tally.record()
    tally.finish("b", unused=200)
    tally.record()
    tally.observe("c", 200)
    tally.finish("c", unused=0)
    assert text_with(tally.line(), "400/400", "35/s", "3/3", 3) == snapshot(
        "400/400 states, 35/s, 3/3 workloads done (3 recorded)"
    )


def test_the_speed_is_that_of_the_last_minute() -> None:
    clock = Clock()
    tally = Tally(clock)
    tally.plan(1, 10_000)
    for states in [1] * 100 + [10] * 100:
        clock.now += 1
        tally.observe("a", states)
    assert tally.speed == pytest.approx(10, rel=0.05)


COST = {"recording": 0.5, "observing": 2.0}
"""Seconds of one guest that a workload takes in the runs below."""


def running(guests: int, workloads: int, slowness: float = 1.0) -> tuple[list[tuple[float, str, str]], float]:
    """When what happens in a run of so many guests, half of which record, and how long it takes (seconds)."""
    recording, observing = (slowness * seconds for seconds in COST.values())
    events, ready = [], []
    for number in range(workloads):
        ready.append((number + 1) * recording / max(1, guests // 2))
        events.append((ready[-1], "recorded", f"w{number}"))
    free = [0.0] * max(1, guests - guests // 2) if guests > 1 else [ready[-1]]
    free += [ready[-1]] * (guests - len(free))  # who recorded observes when all is recorded
    for number in range(workloads):
        place = min(range(len(free)), key=lambda one: (max(free[one], ready[number]), one))
        begins = max(free[place], ready[number])
        free[place] = begins + observing
        events += [(begins + observing * part / 4, "observed", f"w{number}") for part in (1, 2, 3)]
        events.append((free[place], "finished", f"w{number}"))
    return sorted(events), max(free)


def count_in(tally: Tally, what: str, name: str, unused: int = 70) -> None:
    """Tell a tally what happened to a workload."""
    if what == "recorded":
        tally.record()
    elif what == "observed":
        tally.observe(name, 10)
    else:
        tally.finish(name, unused)


@pytest.mark.parametrize("slowness", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("guests", [1, 2, 4])
@pytest.mark.parametrize(
    "earlier",
    [
        None,
        Earlier(None, 0.17),
        *(Earlier(*one) for one in product([300.0, 450.0, 200.0, None], [0.2, 0.25])),
        Earlier(200.0, 0.15),
    ],
)
def test_how_long_it_takes_is_known_from_a_tenth_on(guests: int, slowness: float, earlier: Earlier | None) -> None:
    events, end = running(guests, 120, slowness)
    clock = Clock()
    began = clock.now
    tally = Tally(clock)
    tally.expect(earlier)
    tally.plan(120, 120 * 100)
    said = []
    for at, what, name in events:
        clock.now = began + at
        count_in(tally, what, name)
        if earlier is None and not tally.done:
            assert tally.seconds_left is None or tally.seconds_left >= end - at, "it is what is left at most"
        elif 0.11 * end <= at <= 0.95 * end:
            said.append((at, end - at, tally.seconds_left))
    if earlier is None:  # until all is recorded, nobody knows
        said = [one for one in said if one[0] > 0.45 * end or one[2] is not None]
    assert len(said) > 280
    wrong = [(at, left, told) for at, left, told in said if told is None or not left / 1.5 <= told <= left * 1.5]
    assert not wrong, (len(wrong), len(said), wrong[:3])
    assert tally.seconds_left is None


@pytest.mark.parametrize("start", [0.0, 10.0, 30.0])
@pytest.mark.parametrize("guests", [2, 4])
def test_the_start_of_the_guests_is_not_the_pace(guests: int, start: float) -> None:
    events, end = running(guests, 120)
    clock = Clock()
    began, said = clock.now, []
    tally = Tally(clock)
    tally.expect(Earlier(None, 0.2))
    tally.plan(120, 120 * 100)
    for at, what, name in events:
        clock.now = began + start + at
        count_in(tally, what, name)
        if 0.1 * end <= at <= 0.95 * end:
            said.append((end - at, tally.seconds_left))
    wrong = [(left, told) for left, told in said if told is None or not left / 1.5 <= told <= left * 1.5]
    assert not wrong, (len(wrong), len(said), wrong[:3])


def parcels(workers: int, sizes: list[int], recording: float, observing: float) -> list[tuple[float, str, str]]:
    """When what happens where each worker records all of a parcel and then observes it, and takes the next one."""
    events, free, first = [], [0.0] * workers, 0
    for size in sizes:
        place = min(range(workers), key=free.__getitem__)
        at, names = free[place], [f"w{first + number}" for number in range(size)]
        for name in names:
            at += recording
            events.append((at, "recorded", name))
        for name in names:
            at += observing
            events += [(at - observing / 2, "observed", name), (at, "finished", name)]
        free[place], first = at, first + size
    return sorted(events, key=lambda event: event[0])


@pytest.mark.parametrize(("workers", "sizes"), [(1, [16] * 6), (2, [16] * 6), (2, [50] * 4), (4, [25] * 16)])
@pytest.mark.parametrize("recording", [0.1, 0.4, 0.7])
def test_on_a_cluster_the_pace_says_how_long_it_takes(workers: int, sizes: list[int], recording: float) -> None:
    events = parcels(workers, sizes, recording, 1.2)
    end, clock = events[-1][0], Clock()
    began, tally = clock.now, Tally(clock)
    tally.expect(Earlier(None, 0.25))
    tally.plan(sum(sizes), sum(sizes) * 100)
    said = []
    for at, what, name in events:
        clock.now = began + at
        count_in(tally, what, name, 80)
        if 0.25 * end <= at <= 0.9 * end:
            said.append((end - at, tally.seconds_left))
    wrong = [(left, told) for left, told in said if told is None or not left / 1.5 <= told <= left * 1.5]
    assert len(said) > 60 and not wrong, (len(wrong), len(said), wrong[:3])


@pytest.mark.parametrize("slowness", [0.5, 1.0, 2.9])
@pytest.mark.parametrize("costs", [(1.0, 2.5, 0.3), (0.2, 0.2, 3.0), (4.0, 0.5, 0.5)])
@pytest.mark.parametrize("by_another_machine", [False, True])
def test_the_columns_of_a_matrix_have_their_own_pace(
    costs: tuple[float, ...], slowness: float, by_another_machine: bool
) -> None:
    """As in the set defaults with the rows of pairs: xfs takes seven times as long as btrfs, and is recorded when
    ext4 is nearly observed."""
    size, clock = 50, Clock()
    began, tally = clock.now, Tally(clock)
    parts = tuple(EarlierPart(size, cost * size) for cost in costs)
    tally.expect(Earlier(None if by_another_machine else sum(costs) * size, 0.0, parts))
    tally.plan(3 * size, 3 * size * 100)
    end, said = slowness * sum(costs) * size, []
    for number, cost in enumerate(costs):
        for _ in range(size):
            tally.record()
        for one in range(size):
            clock.now += slowness * cost
            tally.observe(f"w{number}-{one}", 10)
            tally.finish(f"w{number}-{one}", 90)
            if 0.1 * end <= clock.now - began <= 0.95 * end:
                said.append((began + end - clock.now, tally.seconds_left))
    wrong = [(left, told) for left, told in said if told is None or not left / 1.5 <= told <= left * 1.5]
    assert len(said) > 60 and not wrong, (len(wrong), len(said), wrong[:3])


@given(st.lists(st.tuples(st.integers(1, 9), st.floats(0.1, 99)), min_size=1, max_size=5), st.floats(0, 1))
def test_which_share_of_observing_is_done(parts: list[tuple[int, float]], part: float) -> None:
    each = [seconds / workloads for workloads, seconds in parts for _ in range(workloads)]
    count = part * len(each)
    first = sum(each[: int(count)]) + (each[int(count)] * (count % 1) if count < len(each) else 0.0)
    earlier = Earlier(1.0, 0.0, tuple(EarlierPart(*one) for one in parts))
    assert earlier.observed(count, len(each)) == pytest.approx(first / sum(each))
    assert earlier.observed(count, len(each) + 1) == pytest.approx(count / (len(each) + 1))  # more were planned


def test_what_is_only_observed_has_its_time_too() -> None:
    clock = Clock()
    tally = Tally(clock)
    tally.plan(40, 400)
    for number in range(20):
        clock.now += 3
        tally.observe(f"w{number}", 5)
        tally.finish(f"w{number}", 5)
    assert tally.seconds_left == pytest.approx(60, rel=0.01)


def test_of_slow_tries_it_is_said_how_long_they_take_at_most() -> None:
    """ZooKeeper's checker takes seven seconds: nothing was said until the first of five models was done."""
    clock = Clock()
    tally = Tally(clock)
    tally.plan(0, 0)
    tally.record()
    tally.plan(5, 500)
    for tries in range(1, 90):
        clock.now += 7
        tally.observe("a model", 1)
        assert ("at most" in tally.line()) == (tries >= 10)
        if tries >= 20:
            assert tally.seconds_left == pytest.approx(7 * (500 - tries), rel=0.01)
    tally.finish("a model", 11)
    assert "at most" not in tally.line()
    tally = Tally(clock)
    tally.plan(50, 5000)
    tally.record()
    for _ in range(20):
        clock.now += 0.1
        tally.observe("w", 1)
    assert tally.seconds_left is None, "a recording was just made, so that others may come"


WORK = TimedWork("probe", "ext4", "debian-bookworm", 2, 100, 120)


@pytest.mark.parametrize(
    ("asked", "recording", "observing"),
    [
        (WORK, 15, 45),
        (replace(WORK, workloads=30), 3.75, 11.25),
        (replace(WORK, guests=1), 30, 90),
        (replace(WORK, budget=400), 15, 90),  # recording takes as long with any budget
        (replace(WORK, budget=25), 15, 22.5),
        (replace(WORK, image="debian-trixie"), 15, 45),
        (replace(WORK, budget=1000, workloads=12), 5, 45),  # there is one that is more like it
    ],
)
def test_what_took_its_time_tells_how_long_the_same_takes(asked: TimedWork, recording: float, observing: float) -> None:
    known = [Timing(WORK, 60.0, 0.25), Timing(replace(WORK, budget=1000, workloads=12), 50.0, 0.1)]
    found, words = estimate([asked], known)
    assert found is not None and found.seconds == pytest.approx(recording + observing)
    assert found.recording == pytest.approx(recording / (recording + observing))
    assert duration(found.seconds) in words and ("budget" in words) == (asked.budget in (400, 25))
    both, _words = estimate([asked, WORK], known)
    assert both is not None and both.seconds == pytest.approx(recording + observing + 60)
    assert [one.seconds for one in both.parts] == pytest.approx([recording + observing, 60])


def test_a_machine_that_is_given_tells_of_itself_alone() -> None:
    given = replace(WORK, image="ssh://root@testbox")
    assert estimate([given], [Timing(WORK, 60.0, 0.25)], [Timing(WORK, 60.0, 0.25)])[0] is None
    assert estimate([WORK], [Timing(given, 600.0, 0.25)])[0] is None
    assert estimate([replace(given, image="libvirt:testbox")], [Timing(given, 600.0, 0.25)])[0] is None
    assert estimate([given], [Timing(given, 600.0, 0.25)])[0] is not None


def test_what_was_never_timed_is_not_known() -> None:
    known = [Timing(WORK, 60.0, 0.25)]
    for other in (replace(WORK, what="xfs"), replace(WORK, kind="search")):
        earlier, words = estimate([other], known)
        assert earlier is None and "no " in words and other.what in words
        assert estimate([WORK, other], known)[0] is None


def test_a_program_that_was_never_timed_takes_what_others_took() -> None:
    """On this machine where several were timed there, else on the other one; nothing is known without any."""
    mine = TimedWork("app", "mine on ext4", "debian-bookworm", 2, 100, 4)
    others = [Timing(replace(mine, what=f"{number} on xfs"), 4.0 * number, 0.25) for number in range(1, 6)]
    there = [Timing(replace(mine, what=f"{number} on xfs"), 40.0 * number, 0.25) for number in range(1, 6)]
    found, words = estimate([mine, replace(mine, workloads=8)], others, there)
    assert found is not None and found.seconds == pytest.approx(36.0), "the middle: three seconds a window"
    assert [part.workloads for part in found.parts] == [4, 8]
    assert "0:24 to 0:48" in words and "this machine" in words
    found, words = estimate([mine], others[:4], there)
    assert found is not None and found.seconds == pytest.approx(120.0)
    assert text_with(words, "1:20", "2:40") == snapshot(
        "most programs took 1:20 to 2:40 for as many windows on the machine where bob was measured, in emulated guests; this program's own time counts from the first ones on"
    )
    assert estimate([mine], others[:4], [])[0] is None
    assert estimate([replace(mine, kind="try")], others, there)[0] is None


def test_before_anything_is_planned_only_recordings_are_counted() -> None:
    tally = Tally(Clock())
    tally.record()
    assert tally.line() == "1 recorded"


@given(st.floats(0.05, 20), st.integers(1, 4), st.integers(1, 500))
def test_another_machine_tells_of_what_was_never_timed_here(slower: float, guests: int, workloads: int) -> None:
    there = [Timing(WORK, 60.0, 0.3), Timing(replace(WORK, what="xfs"), 180.0, 0.1)]
    asked = replace(WORK, what="xfs", guests=guests, workloads=workloads)
    as_there = 180.0 * workloads / 120 * 2 / guests
    found, words = estimate([asked], [], there)
    assert found is not None and found.seconds is None, "how fast this machine is is not known"
    assert found.recording == pytest.approx(0.1) and found.parts[0].seconds == pytest.approx(as_there)
    assert (
        sentence_with(words, "twentieth") == snapshot("an estimate for this machine comes when a twentieth is done;")
        and duration(found.parts[0].seconds) in words
    )
    here = [Timing(WORK, slower * 60.0, 0.3)]
    both, _words = estimate([WORK, asked], here, there)
    assert both is not None and both.seconds is None
    assert [one.seconds for one in both.parts] == pytest.approx([60.0, as_there]), "both are of one machine"
    own, _words = estimate([WORK, replace(WORK, workloads=1)], here, there)
    assert own is not None and own.seconds == pytest.approx(slower * 60.5), "what is its own comes first"
    few = [Timing(replace(WORK, workloads=2), 30.0, 0.3)]
    assert (start := estimate([WORK], few, there)[0]) is not None and start.seconds is None, "mostly the guests' start"
    assert (start := estimate([WORK], few)[0]) is not None and start.seconds == pytest.approx(1800), "better than none"


def test_the_usual_timings_have_each_file_system_of_a_table() -> None:
    there = [one for one in usual() if one.work.kind == "probe"]
    assert all(0 < one.recording < 1 and one.seconds > 1 and one.work.workloads >= 100 for one in there)
    by_name = {one.work.configuration: one for one in there}
    not_timed = {"sync-table"}  # its file systems were measured on a busy machine only
    for name in {*set_names()} - not_timed:
        for made in load_set(name).configurations:
            assert made.fs.name in {one.work.what for one in there}
            assert name in ("plain", "stacks") or by_name[made.name].work.what == made.fs.name
    assert by_name["ext2"].recording < by_name["ext4-ordered"].recording < by_name["btrfs"].recording


class Told(Silent):
    """What was said, in order."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.known: list[Earlier | None] = []

    def step(self, text: str) -> None:
        self.said.append(text)

    def expected(self, guests: int, earlier: Earlier | None) -> None:
        self.known.append(earlier)


def done(works: Sequence[TimedWork], finished: int, told: Told) -> None:
    """Work on ``works`` that takes no time."""
    with timed(works, told) as watcher:
        for work in works:
            for number in range(finished):
                watcher.recorded(str(number))
                watcher.finished(str(number), 0)
            if finished == work.workloads:
                watcher.lap()


def test_only_what_came_to_its_end_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "none.json").write_text('{"schema": "bob.timings/1", "timings": []}')
    monkeypatch.setattr(timings, "USUAL", tmp_path / "none.json")
    told, small = Told(), replace(WORK, workloads=3)
    done([small], 2, told)
    with pytest.raises(KeyboardInterrupt), timed([small], told):
        raise KeyboardInterrupt
    assert read() == [] and told.known == [None, None]
    assert text_with(told.said[0], "ext4") == snapshot(
        "bob cannot estimate the time: no probe of ext4 was timed on this machine"
    )
    monkeypatch.setattr(timings, "USUAL", USUAL)
    with pytest.raises(KeyboardInterrupt), timed([small], told):
        raise KeyboardInterrupt
    assert text_with(told.said[-1], "0:0") == snapshot(
        "an estimate for this machine comes when a twentieth is done; it took about 0:03 on the machine where bob was measured, in emulated guests"
    )
    assert (again := told.known.pop()) is not None and again.seconds is None and again.recording > 0.1
    done([small], 3, told)
    [kept] = read()
    assert kept.work == small and kept.seconds > 0
    done([small], 3, told)
    assert told.known[-1] is not None
    assert text_with(told.said[-1], "0:00") == snapshot("this takes about 0:00, as earlier runs on this machine did")
    done([small, replace(small, what="xfs")], 3, told)
    assert [one.work.what for one in read()] == ["ext4", "ext4", "ext4", "xfs"]
    shares = {one.work.what: one.recording for one in usual() if one.work.configuration in ("ext4-ordered", "xfs")}
    done(
        [replace(small, what=name, configuration=of) for name, of in (("ext4", "ext4-ordered"), ("xfs", "xfs"))],
        3,
        told,
    )
    assert {one.work.what: one.recording for one in read()[4:]} == shares, "of two together it is not seen"
    done([replace(small, kind="app"), small], 3, told)
    assert read()[6].recording == USUAL_SHARE, "nothing is known of it"
    done([replace(small, workloads=0)], 0, told)
    assert len(read()) == 8 and len(told.known) == 7, "of nothing nothing is said"


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"schema": "bob.timings/1", "timings": [{"work": {}}]}'])
def test_a_file_of_timings_that_is_none_is_as_if_it_were_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / "timings.json").write_text(text)
    assert read() == []
    note([Timing(WORK, 60.0, 0.25)])
    assert read() == [Timing(WORK, 60.0, 0.25)]
    for _ in range(MOST):
        note([Timing(replace(WORK, what="xfs"), 60.0, 0.25)])
    assert len(read()) == MOST and read()[0].work.what == "xfs"
    (tmp_path / "bob").rename(tmp_path / "gone")
    (tmp_path / "bob").write_text("no folder")
    note([Timing(WORK, 60.0, 0.25)])
    assert read() == []


def test_how_much_of_the_time_was_recording() -> None:
    clock = Clock()
    events, end = running(2, 100)
    began, watcher = clock.now, TimedProgress(Silent(), clock)
    for at, what, name in events:
        clock.now = began + at
        if what == "recorded":
            watcher.recorded(name)
        elif what == "finished":
            watcher.finished(name, 0)
    assert watcher.seconds == pytest.approx(end)
    assert watcher.share(100) == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (127, "2:07"), (3727, "1:02:07")])
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (cell(Verdict.FAILS), snapshot("×     append-any  some of 4,096 whole states")),
        (cell(Verdict.HOLDS), snapshot("holds append-any  some of 4,096 whole states")),
        (cell(Verdict.UNKNOWN, reason="the guest was lost"), snapshot("?     append-any  the guest was lost")),
        (cell(Verdict.SKIPPED), "–     append-any"),
    ],
)
def test_a_verdict_in_a_line(result: Answer, text: str) -> None:
    assert verdict_line(result).plain == text


def test_lines_come_seldom() -> None:
    clock = Clock()
    console, file = screen()
    lines = LineDisplay(console, clock)
    lines.step("booting a guest")
    lines.planned(2, 400)
    for workload in ("a", "b"):
        lines.recorded(workload)
        for _ in range(20):
            clock.now += 0.5
            lines.observed(workload, 10)
        lines.finished(workload, 0)
    lines.judged(cell(Verdict.FAILS))

    written = file.getvalue().splitlines()
    assert written[:2] == snapshot(["booting a guest", "2 workloads, at most 400 crash states to try"])
    assert written[2].startswith("100/400 states, 20/s, ")
    assert written[-2:] == snapshot(
        ["400/400 states, 20/s, 2/2 workloads done (2 recorded)", "×     append-any  some of 4,096 whole states"]
    )
    assert len(written) == 4 + 20 // 5


def test_many_threads() -> None:
    console, file = screen()
    lines = LineDisplay(console, Clock())
    lines.planned(8, 800)

    def work() -> None:
        lines.recorded("w")
        for _ in range(100):
            lines.step("x" * 60)
            lines.observed("w", 1)
        lines.finished("w", 0)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    written = file.getvalue().splitlines()
    assert written.count("x" * 60) == 800
    assert text_with(written[-1], "800/800", "8/8", 8) == snapshot("800/800 states, 8/8 workloads done (8 recorded)")


def test_a_reader_that_leaves_stops_nothing() -> None:
    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    lines = LineDisplay(Screen(file=Gone()))
    lines.step("on")
    lines.judged(cell(Verdict.HOLDS))


def test_the_bar() -> None:
    console, file = screen(terminal=True)
    bar = Bar(console)
    console.print(bar.renderable())
    assert "crash states" not in file.getvalue()  # nothing is planned yet
    bar.planned(2, 400)
    bar.recorded("a")
    bar.observed("a", 100)
    console.print(bar.renderable())
    assert line_with(file.getvalue(), "100/400", "0/2", 1) == snapshot(
        "\x1b[2m100/400 states, 0/2 workloads done (1 recorded)                                 \x1b[0m"
    )
    assert "━" in file.getvalue()


def test_a_terminal_gets_a_bar_that_threads_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """rich draws from a thread of its own: no lock may be waited for crosswise."""
    console, file = screen(terminal=True)
    monkeypatch.setattr("bob.cli.display.console", lambda **_: console)
    with watching() as progress:
        assert isinstance(progress, Bar)
        progress.planned(4, 4000)
        threads = [threading.Thread(target=tell, args=(progress,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in threads)
        progress.judged(cell(Verdict.FAILS))
    assert file.getvalue().count("a step") == 4 * 20
    assert "append-any" in file.getvalue()


def tell(progress: Bar) -> None:
    for number in range(200):
        progress.observed("w", 1)
        if number % 10 == 0:
            progress.step("a step")


def test_quiet() -> None:
    with watching(quiet=True) as progress:
        assert isinstance(progress, Silent)


def test_a_log_file_gets_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with watching() as progress:
        progress.step("a step")
    assert capsys.readouterr() == ("", "a step\n")


# Marks, colours and sizes: what reaches terminals of all kinds, and what is taken from the command line


def printed(monkeypatch: pytest.MonkeyPatch, encoding: str) -> str:
    """The table as it comes out of a stdout of this encoding."""
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stdout)
        deliver(result(), Path("run"), None)
    stdout.seek(0)
    return stdout.read()


def test_a_terminal_without_our_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark that cannot be written must not become another mark."""
    assert "× append-any" in printed(monkeypatch, "utf-8")
    assert "× append-any" in printed(monkeypatch, "latin-1")
    assert "x append-any" in printed(monkeypatch, "ascii")


def test_no_dash_becomes_a_question_mark() -> None:
    assert "× – · Ж".encode("ascii", errors="bob.ascii") == b"x - . ?"


@pytest.mark.parametrize(("variables", "colours"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], colours: bool) -> None:
    file = io.StringIO()
    file.isatty = lambda: True  # type: ignore[method-assign]
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", file)
    deliver(result(), Path("run"), None)
    assert ("\x1b[1;38;5;" in file.getvalue()) is colours
    assert "append-any" in file.getvalue()


def test_no_colours_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("×", style="bob.fails")
    assert capsys.readouterr().out == "×\n"


def test_json_is_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("before")
    with pytest.raises(TypeError):
        write_json(tmp_path / "r.json", {"a": object()})
    assert (tmp_path / "r.json").read_text() == "before"
    assert list(tmp_path.iterdir()) == [tmp_path / "r.json"]


def test_json_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        write_json(tmp_path / "gone" / "r.json", {})
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot(
        "cannot write TMP/gone/r.json: No such file or directory"
    )


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("64M", 2**26), ("64m", 2**26), ("64MB", 2**26), ("64MiB", 2**26), ("1G", 2**30), (" 2T ", 2**41)],
)
def test_sizes(text: str, size: int) -> None:
    assert read_size(text, "--device") == size


@pytest.mark.parametrize("text", ["", "M", "-1M", "1.5G", "64X", "0M"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(UsageError):
        read_size(text, "--device")
