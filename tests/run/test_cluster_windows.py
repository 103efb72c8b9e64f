"""A cluster of two nodes, explored in guests that are made up: bob's tuples and answers against brute force."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

import samples_of_runs as samples
from bob.agent.loss import GuestLost, Loss, LossCause
from bob.catalogue.request import ProbeRequest
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.crash.cuts import CutKind
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan
from bob.crash.rules import PaceRule
from bob.crash.state import CrashState
from bob.judge.programs import judge
from bob.observe.observation import OutcomeTable
from bob.observe.observations import ExploredState, Observations
from bob.program.answer import CheckerAnswer
from bob.program.program import Program, ProgramFile
from bob.program.transcript import Output, ProgramCase, Transcript
from bob.progress import Silent
from bob.report.cluster_drawing import WORDS, svg, told
from bob.run import cluster_windows, host_clusters, pool, program_windows, tuple_checks
from bob.run.cluster_windows import explore_cluster
from bob.run.host_clusters import TupleCheck
from bob.subject import cluster_of
from bob.trace.base import Base
from bob.trace.model import DeviceWrite, Flush, Moment, Trace
from wording import text_with

SECTORS, PLACE = 16, 3  # each disk has this length, and its file is in this sector
OLD, NEW = b"o" * 512, b"n" * 512
TOLD = b"done\n"
START, TOLD_AT, END = 10, 24, 30


def at(time: int) -> Moment:
    return Moment(time, float(time))


# Node 0 syncs before it tells node 1, and node 1 does not sync before the client is told.
WRITES = [(0, 12, 13), (1, 20, 21)]  # device, submitted, completed
MESSAGES = [(0, 16, 1, 18), (1, 22, 2, 23)]  # sender, sent, receiver, received
TRACE = Trace(
    writes=tuple(
        DeviceWrite(n, PLACE, NEW, at(submitted), at(completed), device=device)
        for n, (device, submitted, completed) in enumerate(WRITES)
    ),
    flushes=(Flush(at(14), at(15), device=0),),
    marks=(),
    start=at(START),
    end=at(END),
    device_sectors=(SECTORS, SECTORS),
)
DISKS = (SECTORS * 512, SECTORS * 512)
BASE = Base("c0", sum(DISKS), samples.packed([(PLACE, OLD), (SECTORS + PLACE, OLD)]), "rw", "", DISKS)


def timeline() -> str:
    """The packets, as the kernel writes them. The number of a line is its time."""
    lines = [""] * END
    for sender, sent, receiver, received in MESSAGES:
        names = ["node0", "node1", "br0"]
        lines[sent - 1] = (
            f"  node-1  [000] b.s1.  {sent}.000000: net_dev_start_xmit: dev={names[sender]} skbaddr=0a len=9"
        )
        lines[received - 1] = (
            f"  node-1  [000] ..s1.  {received}.000000: netif_receive_skb: dev={names[receiver]} skbaddr=0a len=9"
        )
    return "\n".join(lines)


def durable(device: int, moment: int) -> bool:
    return device == 0 and moment >= 15


def brute(kind: CutKind) -> set[tuple[bytes, bytes, bytes]]:
    """Each possible tuple: every consistent cut, and every legal state of each disk at its moment."""
    found = set()
    moments = range(START, END + 1)
    for cut in product(moments, repeat=3) if kind is CutKind.ANY else ((one,) * 3 for one in moments):
        if any(received <= cut[receiver] and sent > cut[sender] for sender, sent, receiver, received in MESSAGES):
            continue
        choices = []
        for device, submitted, _completed in WRITES:
            sure = durable(device, cut[device])
            choices.append([NEW] if sure else [OLD, NEW] if submitted <= cut[device] else [OLD])
        found |= {(*trees, TOLD if cut[2] >= TOLD_AT else b"") for trees in product(*choices)}
    return found


def answer(files: tuple[bytes, ...], output: bytes) -> CheckerAnswer:
    fails = output == TOLD and files != (NEW, NEW)
    return CheckerAnswer(10 if fails else 0, "it is lost" if fails else "")


GONE = GuestLost(Loss(LossCause.VANISHED, ""), "QEMU is gone")


@dataclass
class Guests:
    """Made-up guests. The checker wants both nodes to have the new file once the client was told."""

    alone: int = -1
    checks: int = 0
    lost: str | None = None
    loses_alone: bool = False
    says_alone: CheckerAnswer | None = None  # what each node says when it starts alone (None: its file)
    loses_after: bytes | None = None  # guests are lost when they check a tuple after this output
    made: list[Any] = field(default_factory=list)
    no_host: str | None = "not here"  # why there are no sandboxes
    host: Callable[[int], int] = lambda code: code  # what becomes of the checker's exit code on the host
    on_host: list[Any] = field(default_factory=list)

    def check_on_host(self, asked: Sequence[TupleCheck]) -> dict[int, CheckerAnswer]:
        found = {}
        for place, one in enumerate(asked):
            tree = one.tree()
            files = tuple(tree[path].content if (path := f"/n{number}/f") in tree else b"" for number in range(2))
            if one.alone >= 0:
                found[place] = self.says_alone or CheckerAnswer(0, files[one.alone].decode())
            elif one.spoiler:
                found[place] = CheckerAnswer(11, "it is damaged")
            else:
                code = self.host(answer(files, one.output).code or 0)
                found[place] = CheckerAnswer(code, "it is lost" if code else "")
                self.on_host.append((*files, one.output))
        return found if self.no_host is None else {}

    @contextmanager
    def agent_in(self, *_: object) -> Iterator[object]:
        yield SimpleNamespace(is_sound=True)

    def explore(self, _agent: object, _subject: object, plan: Plan, *_: object) -> Observations:
        """All states of a node's disk."""
        states = dict.fromkeys(
            [*plan.bare, *plan.controls, *(CrashState(n, point.pending) for n, point in enumerate(plan.points))]
        )
        tree = {"/": {"kind": "directory"}, "/f": {"kind": "file", "size": 512}}
        table = OutcomeTable(
            [
                json.dumps({"error": None, "repaired": False, "tree": {**tree, "/f": {**tree["/f"], "content": [n]}}})
                for n in range(2)
            ],
            [OLD, NEW],
        )
        seen = [ExploredState(one, int(bool(plan.points[one.point].durable or one.kept))) for one in states]
        known = () if self.lost else tuple(seen)
        return Observations(known, table, States(2, 2, 2, "writes"), self.lost)

    def choose_start(self, _agent: object, late: int = -1, *, alone: int = -1) -> None:
        del late
        self.alone = alone

    def session_of(self, _agent: Any, case: ProgramCase, **_: object) -> Any:
        floor = case.plan.composer.floor_delta()

        def check_program(asked: Sequence[Any], payload: bytes, _seconds: object) -> list[CheckerAnswer]:
            answers = []
            for one in asked:
                disk = {PLACE: OLD, SECTORS + PLACE: OLD}
                for sector, source, count in (*floor, *one.state):
                    for n in range(count):
                        disk[sector + n] = payload[(source + n) * 512 : (source + n + 1) * 512]
                files = disk[PLACE], disk[SECTORS + PLACE]
                if self.alone >= 0 and self.loses_alone:
                    raise GONE
                if self.alone >= 0:
                    answers.append(self.says_alone or CheckerAnswer(0, files[self.alone].decode()))
                    continue
                if one.output == self.loses_after:
                    raise GONE
                self.checks += 1
                answers.append(answer(files, one.output))
                self.made.append((*files, one.output))
            return answers

        return SimpleNamespace(check_program=check_program)


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch) -> Guests:
    made = Guests()
    monkeypatch.setattr(pool, "agent_in", made.agent_in)
    monkeypatch.setattr(cluster_windows, "explore", made.explore)
    monkeypatch.setattr(host_clusters.HostCluster, "_why_none", lambda _self: made.no_host)
    monkeypatch.setattr(host_clusters.HostCluster, "check", lambda _self, asked: made.check_on_host(asked))
    monkeypatch.setattr(tuple_checks, "put_program", lambda *_: None)
    monkeypatch.setattr(program_windows, "put_program", lambda *_: None)
    for module in (cluster_windows, program_windows):
        monkeypatch.setattr(module, "session_of", made.session_of)
        monkeypatch.setattr(module, "choose_start", made.choose_start)
    return made


def case_of(**more: Any) -> ProgramCase:
    node = replace(samples.CONFIGURATION, sizes=(SECTORS * 512,))
    recording = replace(samples.RECORDING, timeline=timeline())
    program = Program("mine", "", more.pop("files", ()), nodes=2, **more)
    transcript = Transcript(TOLD, (), 7, (Output(at(TOLD_AT), TOLD),), None)
    return ProgramCase(cluster_of([node, node]), program, BASE, recording, Plan(TRACE, BASE, DeviceModel()), transcript)


def explored(case: ProgramCase, **asked: Any) -> Any:
    request = ProbeRequest(case.subject, **{"budget": 100, **asked})
    return explore_cluster(pool.ProgramGuests(None, None, Silent()), case, request, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", CutKind)
def test_each_possible_tuple_is_checked_once(guests: Guests, kind: CutKind) -> None:
    looked, counts = explored(case_of(), cut=kind)
    expected = brute(kind)
    assert sorted(guests.made) == sorted(expected)
    assert (counts.possible, counts.checked, counts.cut) == (len(expected), len(expected), kind.value)
    assert (counts.messages, counts.trees) == (2, (2, 2))
    assert [one.told for one in looked] == [b"", TOLD]
    subject, [easiest] = judge(samples_subject(), looked, ())
    assert subject.answer.verdict is Verdict.FAILS
    [way] = subject.answer.ways
    assert way.behind == easiest.behind == (1,)  # node 0 had synced before the client was told
    assert way.behind_words == "it is enough that n1 keeps an old tree (local: loss of new data)"
    [grid] = counts.grids
    expected_grid = {
        (one, other): "x"
        if any(told == TOLD for *some, told in expected if some == [one, other] != [NEW, NEW])
        else "."
        for one, other, _told in expected
    }
    names = [OLD, NEW]
    assert grid.nodes == (0, 1)
    assert grid.rows == tuple("".join(expected_grid.get((a, b), " ") for b in names) for a in names)
    picture = svg(counts.grids, "2 x ext4")
    assert picture.count("<rect") == 4 + len(WORDS) and told(counts.grids) in picture
    assert way.states == sum(
        told == TOLD and trees != (NEW, NEW) for *some, told in expected for trees in [tuple(some)]
    )


def samples_subject() -> Any:
    from bob.answer.result import SubjectResult

    return SubjectResult("2 x ext4")


def test_rules_leave_out_tuples_and_say_how_many(guests: Guests) -> None:
    _looked, counts = explored(case_of(rules=(PaceRule.MASTER,), master=0))
    every = counts.possible
    assert every == len(brute(CutKind.ANY))
    assert counts.set_aside > 0 and counts.rules == ("R3",)
    assert counts.set_aside_by == {"R3": counts.set_aside}
    _looked, both = explored(case_of(rules=(PaceRule.MASTER, PaceRule.SLAVE), master=0))
    assert 0 <= both.set_aside < min(both.set_aside_by.values())
    assert all(text_with(both.words, rule, some) for rule, some in both.set_aside_by.items())
    _looked, instant = explored(case_of(rules=(PaceRule.MASTER,), master=0), cut=CutKind.INSTANT)
    assert (instant.rules, instant.set_aside) == ((), 0)  # a rule needs cuts at any moments
    _looked, counts = explored(case_of(rules=(PaceRule.MASTER,), master=0), by_rules=False)
    assert (counts.possible, counts.set_aside, counts.checked) == (every, 0, every)


def test_by_r2_a_node_starts_late_that_is_not_behind(guests: Guests) -> None:
    looked, _counts = explored(case_of(rules=(PaceRule.MAJORITY, PaceRule.LEADER)))
    late = {behind: one.late[place] for one in looked for place, behind in one.behind.items()}
    assert late[1,] == 0


def test_like_nodes_exchange_their_trees(guests: Guests) -> None:
    """The disks have the same files, and nothing is synced."""
    unsynced = Plan(replace(TRACE, flushes=()), BASE, DeviceModel())
    _looked, every = explored(replace(case_of(), plan=unsynced))
    before = {tuple(one) for one in guests.made}
    guests.made.clear()
    _looked, counts = explored(replace(case_of(alike=((0, 1),)), plan=unsynced))
    alike = {(*sorted(files), told) for *files, told in before}
    assert {(*sorted(files), told) for *files, told in guests.made} == alike
    assert counts.exchanged == every.possible - len(alike) > 0
    assert counts.checked == len(alike) and text_with(counts.words, counts.exchanged)


def test_a_tuple_of_each_class_decides_the_others(guests: Guests) -> None:
    files = (ProgramFile("signature", b"", True),)
    _looked, counts = explored(case_of(files=files))
    assert guests.alone == -1
    assert counts.classes == counts.decided == counts.possible == counts.checked  # the trees differ in what matters
    assert counts.split == 0


def test_a_guest_lost_beside_a_node_alone_puts_no_trees_into_one_class(guests: Guests) -> None:
    guests.loses_alone = True
    looked, counts = explored(case_of(files=(ProgramFile("signature", b"", True),)))
    guests.alone = -1
    assert counts.classes == counts.decided == counts.possible == counts.checked
    subject, _easiest = judge(samples_subject(), looked, ())
    assert subject.answer.verdict is Verdict.FAILS


def test_what_was_chosen_but_has_no_answer_was_not_checked(guests: Guests, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise GONE

    monkeypatch.setattr(program_windows, "session_of", broken)
    looked, counts = explored(case_of())
    subject, _easiest = judge(samples_subject(), looked, ())
    assert counts.possible > 0 == counts.checked
    assert subject.answer.verdict is Verdict.UNKNOWN


def test_without_a_tree_of_some_node_nothing_is_safe(guests: Guests) -> None:
    guests.lost = "the guest was lost"
    looked, counts = explored(case_of())
    subject, _easiest = judge(samples_subject(), looked, ())
    assert (subject.answer.verdict, subject.answer.reason) == (Verdict.UNKNOWN, "the guest was lost")
    assert guests.checks == counts.checked == counts.possible == 0


def test_without_messages_all_nodes_crash_at_one_instant(guests: Guests) -> None:
    """A trace without packets would limit no moments: it is incomplete."""
    silent = case_of()
    silent = replace(silent, recording=replace(silent.recording, timeline=""))
    _looked, counts = explored(silent)
    assert counts.cut == CutKind.INSTANT.value and set(guests.made) <= brute(CutKind.INSTANT)


@pytest.mark.parametrize(
    ("host", "guests_check_all"),
    [(lambda code: code, False), (lambda _code: 0, True), (lambda code: code or 13, True), (lambda _code: -9, True)],
    ids=["right", "accepts all", "refuses all", "killed"],
)
def test_guests_decide_what_the_host_is_wrong_about(
    guests: Guests, host: Callable[[int], int], guests_check_all: bool
) -> None:
    guests.no_host, guests.host = None, host
    looked, counts = explored(case_of(), seed=4)  # the host's wrong answer is in this sample
    expected = brute(CutKind.ANY)
    assert {one for job in guests.on_host for one in [job]} == expected  # and the end, to prove the host
    codes = {(*files(one, place), one.told): answer.code for one in looked for place, answer in one.answers.items()}
    assert codes == {one: answer(one[:2], one[2]).code for one in expected}
    assert counts.checked == len(expected)
    assert sum(one.checks for one in looked) == len(expected) + len(guests.made)
    assert sum(one.observed.coverage.mounted for one in looked) == len(guests.made)
    assert (counts.repeated == len(expected)) is guests_check_all or host(0) == -9
    assert (len(guests.made) == len(expected)) is guests_check_all
    assert bool(counts.why_guests) is (host(10) == 0)


def test_the_answer_says_why_guests_checked_all(guests: Guests) -> None:
    _looked, counts = explored(case_of())
    assert (counts.repeated, counts.why_guests) == (None, guests.no_host) and "not here" in counts.words
    guests.no_host = None
    _looked, counts = explored(case_of())
    assert counts.repeated is not None and not counts.why_guests


def files(one: Any, place: int) -> tuple[bytes, ...]:
    tree = one.observed.findings.observation(place).tree
    return tree["/n0/f"].content, tree["/n1/f"].content


def test_without_an_answer_from_a_guest_the_host_is_not_believed(
    guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    guests.no_host = None

    def broken(*_: object) -> None:
        raise GONE

    monkeypatch.setattr(program_windows, "session_of", broken)
    looked, counts = explored(case_of())
    subject, _easiest = judge(samples_subject(), looked, ())
    assert counts.possible > 0 == counts.checked
    assert subject.answer.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("lost", [b"", TOLD])
@pytest.mark.parametrize("host", [lambda code: code or 13, lambda _code: 0], ids=["refuses all", "accepts all"])
def test_an_answer_of_the_host_never_counts_as_that_of_a_lost_guest(
    guests: Guests, host: Callable[[int], int], lost: bytes, seed: int
) -> None:
    guests.no_host, guests.host, guests.loses_after = None, host, lost
    looked, counts = explored(case_of(), seed=seed)
    codes = {(*files(one, place), one.told): answer.code for one in looked for place, answer in one.answers.items()}
    truth = {one: answer(one[:2], one[2]).code for one in codes}
    shown = {answer(one[:2], one[2]).code for one in guests.made}
    assert all(code == truth[one] or code in shown for one, code in codes.items())
    assert (counts.repeated or 0) == len(guests.made)


@pytest.mark.parametrize("seed", range(8))
def test_a_guest_has_shown_the_crash_that_explains_a_way_to_fail(
    guests: Guests, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setitem(globals(), "answer", lambda *_: CheckerAnswer(10, "it is lost"))
    guests.no_host = None
    looked, _counts = explored(case_of(), seed=seed)
    _subject, [easiest] = judge(samples_subject(), looked, ())
    assert (*files(looked[easiest.place], easiest.outcome), easiest.told) in guests.made


@pytest.mark.parametrize(
    "silent",
    [CheckerAnswer(0, ""), CheckerAnswer(-9, ""), CheckerAnswer(127, "sh: not found"), CheckerAnswer(None, "")],
    ids=["prints nothing", "killed", "not run", "hung"],
)
@pytest.mark.parametrize("no_host", [None, "not here"], ids=["host", "guests"])
def test_nodes_that_do_not_say_what_they_recovered_are_not_alike(
    guests: Guests, no_host: str | None, silent: CheckerAnswer
) -> None:
    guests.no_host, guests.says_alone = no_host, silent
    _looked, counts = explored(case_of(files=(ProgramFile("signature", b"", True),)))
    assert counts.classes == counts.possible == len(brute(CutKind.ANY))


@pytest.mark.parametrize("is_here", [True, False])
def test_progress_counts_each_tuple_once(guests: Guests, is_here: bool) -> None:
    """The made-up host counts nothing, so nothing is left for the guests that repeat checks."""
    counted: list[int] = []
    guests.no_host = None if is_here else "not here"
    case = case_of()
    made = pool.ProgramGuests(None, None, Silent())  # type: ignore[arg-type]
    made.progress.observed = lambda _title, states: counted.append(states)  # type: ignore[method-assign]
    for seed in range(4):
        counted.clear()
        _looked, counts = explore_cluster(made, case, ProbeRequest(case.subject, budget=100, seed=seed), 1)
        assert sum(counted) == (0 if is_here else counts.checked)
