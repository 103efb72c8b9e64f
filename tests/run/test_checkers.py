"""Sandboxes run a program's checker and guests control them, or guests do it: both are made up here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.agent.client import AgentBroken
from bob.agent.inside.mounts import ROOT
from bob.agent.loss import SandboxLost
from bob.answer.result import SubjectResult
from bob.apm.model_states import ModelState, ModelStates
from bob.apm.named import named_models
from bob.catalogue.request import CheckPlace, ProbeRequest
from bob.claim.verdict import Verdict
from bob.errors import BobError, GuestError, ImageError, UsageError
from bob.guest.given_machine import GivenImage
from bob.judge import reliance
from bob.judge.reliance import Explaining
from bob.observe.observation import Node
from bob.program.answer import CheckerAnswer, CheckerRun
from bob.program.program import EMPTIED
from bob.program.strace import SystemCall
from bob.program.transcript import ProgramCase, Transcript
from bob.progress import Silent
from bob.run import checkers, pool, program_models
from bob.run.agents import Sandboxes
from bob.run.checkers import SAMPLED, SHARE, TriedStates, checkers_for
from bob.run.pool import ProgramGuests
from bob.run.program_models import hold_against
from bob.run.program_protocol import CannotBeModelled
from tests.apm.cases import NOTHING, graph_of


def in_hex(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


FINE, CORRUPT = CheckerAnswer(0, ""), CheckerAnswer(11, "in a guest")
GUEST, HOST = "guest", "host"
Run = CheckerRun[Mapping[str, Node]]


@dataclass(eq=False)
class MadeUp:
    """An agent."""

    where: str
    is_sound: bool = True


@dataclass
class Machines:
    """Made-up guests and sandboxes; ``saying`` is told where a checker runs and on what, and may raise."""

    saying: Callable[[str, Run], CheckerAnswer]
    asked: Counter[str] = field(default_factory=Counter)
    trials: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def agent_in(self, guests: object, *_: object) -> Iterator[object]:
        yield MadeUp(HOST if isinstance(guests, Sandboxes) else GUEST)

    def builder(self, agent: Any, _root: Node) -> SimpleNamespace:
        def check(asked: Sequence[Run], _seconds: float) -> list[CheckerAnswer]:
            if any(one.spoiler for one in asked):
                self.trials[agent.where] += 1
                return [self.of_trial(agent.where, one) for one in asked]
            self.asked[agent.where] += len(asked)
            return [self.saying(agent.where, one) for one in asked]

        return SimpleNamespace(check=check, without=("user.x",) if agent.where == GUEST else ())

    def of_trial(self, _where: str, asked: Run) -> CheckerAnswer:
        return CheckerAnswer(10, "") if asked.spoiler == EMPTIED else FINE


def is_refused(asked: Run) -> bool:
    """A quarter of the states: that with the first sector of the operation, and without the second."""
    content = asked.state["/a"].content
    return content.startswith(b"[op") and not content[512:].startswith(b"[op")


def usual(where: str, asked: Run) -> CheckerAnswer:
    return CheckerAnswer(11, f"in a {where}\nrefused") if is_refused(asked) else FINE


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> Machines:
    made = Machines(usual)
    monkeypatch.setattr(pool, "agent_in", made.agent_in)
    monkeypatch.setattr(pool, "ensure_world", lambda *_: None)
    monkeypatch.setattr(checkers, "put_program", lambda *_: None)
    monkeypatch.setattr(checkers, "TreeBuilder", made.builder)
    monkeypatch.setattr(checkers, "unpacked", lambda *_: None)
    monkeypatch.setattr(checkers, "why_none", lambda _root: None)
    return made


CASE: ProgramCase = samples.program_case(Transcript(b"", (), 7, (), None))
ENDS = {"/": Node("directory")}, {"/": Node("directory"), "/a": Node("file", 2)}


def chosen(checks: CheckPlace) -> checkers.Checkers:
    image: Any = SimpleNamespace(root=None)
    nothing: Any = None
    return checkers_for(ProgramGuests(nothing, image, Silent()), CASE, ENDS, checks, 2)


def checked(machines: Machines, checks: CheckPlace = CheckPlace.AUTO) -> tuple[TriedStates, dict[bytes, CheckerAnswer]]:
    """As for a model whose answer shows the first tree that the checker refuses."""
    answers: dict[bytes, CheckerAnswer] = {}
    return asked_of(chosen(checks), machines, answers), answers


def asked_of(by: checkers.Checkers, machines: Machines, answers: dict[bytes, CheckerAnswer]) -> TriedStates:
    machines.asked.clear()
    tries = ModelStates(graph_of("write /a 0 4096", "write /a 0 4096"), NOTHING, [b"", b""], 10_000)
    done = by.check("a-model", tries, 1000, answers, 1)
    while done.control("a-model", shown(done, answers)):
        pass
    assert len(done.states) == 2**8
    return done


def shown(done: TriedStates, answers: Mapping[bytes, CheckerAnswer]) -> list[int]:
    known = [answers.get(state.digest, FINE) for state in done.states]
    return [place for place, answer in enumerate(known) if answer.consequence][:1]


@pytest.mark.parametrize("checks", [CheckPlace.AUTO, CheckPlace.HOST])
def test_guests_check_again_what_the_answer_shows_and_a_sample(machines: Machines, checks: CheckPlace) -> None:
    done, answers = checked(machines, checks)
    refused = 2**8 // 4
    assert Counter(answer.code for answer in answers.values()) == {0: 2**8 - refused, 11: refused}
    first = next(answer for state in done.states if (answer := answers[state.digest]).code)
    assert first.printed == "in a guest\nrefused", "the guest's words count"
    sample = -(-(2**8) // SHARE)
    assert machines.asked == {HOST: 2**8 + 2 * SAMPLED, GUEST: 1 + sample}
    assert (done.runs, done.lost, done.disagreed) == (sum(machines.asked.values()), None, None)
    assert done.without == ["user.x"] and done.unused == 1000 - 2**8
    assert done.notes == snapshot(
        (
            "the checker ran on the host, in sandboxes; guests ran it again on 14 trees: one of each class of each way, and a sample",
        )
    )


def test_only_guests_check_where_the_user_wants_it(machines: Machines) -> None:
    done, answers = checked(machines, CheckPlace.GUEST)
    assert machines.asked == {GUEST: 2**8 + 2 * SAMPLED} and machines.trials == {GUEST: 1}
    assert (done.runs, done.lost, done.disagreed, done.notes) == (2**8 + 2 * SAMPLED, None, None, ())
    assert sum(answer.code == 11 for answer in answers.values()) == 2**8 // 4


@pytest.mark.parametrize(("on_host", "in_guest"), [(11, 0), (0, 11), (11, 12)])
def test_a_checker_that_answers_differently_on_the_host_is_told(
    machines: Machines, on_host: int, in_guest: int
) -> None:
    """The sample finds one that accepts too much everywhere; one that refuses too much is always found."""

    def saying(where: str, _asked: Run) -> CheckerAnswer:
        return CheckerAnswer(on_host if where == HOST else in_guest, "")

    machines.saying = saying
    done, _answers = checked(machines)
    assert done.disagreed == (
        "the checker answers differently on the host and in a guest: of one tree and output it ends with"
        f" {on_host} and with {in_guest}"
    )


def only_the_first_refused(where: str) -> Callable[[str, Run], CheckerAnswer]:
    """Return a checker that refuses one tree, and only ``where`` it runs."""
    first: list[bytes] = []

    def saying(place: str, asked: Run) -> CheckerAnswer:
        if is_refused(asked) and not first:
            first.append(asked.state["/a"].content)
        is_it = place == where and first and asked.state["/a"].content == first[0]
        return CORRUPT if is_it else FINE

    return saying


def test_one_tree_that_only_the_host_refuses_is_found(machines: Machines) -> None:
    machines.saying = only_the_first_refused(HOST)
    assert "ends with 11 and with 0" in (checked(machines)[0].disagreed or "")


def test_later_models_do_not_believe_it_either_nor_ask_guests_twice(machines: Machines) -> None:
    for saying, is_believed in ((usual, True), (only_the_first_refused(HOST), False)):
        machines.saying, answers, by = saying, dict[bytes, CheckerAnswer](), chosen(CheckPlace.HOST)
        for is_first in (True, False):
            done = asked_of(by, machines, answers)
            assert (done.disagreed is None) is is_believed
            assert bool(machines.asked[HOST]) is is_first
        assert machines.asked[GUEST] == (0 if is_believed else 1)


@pytest.mark.parametrize("fault", ["it is lost", "it does not end"])
def test_where_guests_cannot_control_the_host_it_is_not_believed(machines: Machines, fault: str) -> None:
    def saying(where: str, asked: Run) -> CheckerAnswer:
        if where == GUEST and fault == "it is lost":
            raise SandboxLost("no")
        return CheckerAnswer(None, "") if where == GUEST else usual(where, asked)

    machines.saying = saying
    done, answers = checked(machines)
    said = "the sandbox was lost while checking: no" if fault == "it is lost" else "the checker did not end in a guest"
    assert done.disagreed == f"guests could not control the checker on the host: {said}"
    assert sum(answer.code == 11 for answer in answers.values()) == 2**8 // 4


def test_a_check_that_hangs_on_the_host_alone_has_the_answer_of_the_guest(machines: Machines) -> None:
    machines.saying = lambda where, asked: CheckerAnswer(None, "") if where == HOST and is_refused(asked) else FINE
    done, answers = checked(machines)
    assert set(answers.values()) == {FINE} and (done.lost, done.disagreed) == (None, None)


def test_what_a_sandbox_loses_is_left_to_guests_and_what_these_lose_is_unknown(machines: Machines) -> None:
    def saying(where: str, asked: Run) -> CheckerAnswer:
        if is_refused(asked) and where in unlucky:
            raise SandboxLost("check started more than 500 processes and threads")
        return FINE

    machines.saying, unlucky = saying, [HOST]
    done, answers = checked(machines)
    assert len(answers) == 2**8 and (done.lost, done.disagreed) == (None, None)
    assert done.notes[1].endswith(
        ": the sandbox was lost while checking: check started more than 500 processes and threads"
    )
    unlucky.append(GUEST)
    done, answers = checked(machines)
    assert len(answers) < 2**8 and "500 processes" in (done.lost or "")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("bubblewrap is not installed", "bubblewrap is not installed"),
        (SandboxLost("it ended: no"), "the sandbox was lost: it ended: no"),
        (AgentBroken("the agent failed at check_built"), "the agent failed at check_built"),
        (ImageError("root.erofs cannot be unpacked: no"), "root.erofs cannot be unpacked: no"),
        (UsageError("no"), "its tree cannot be built in memory: no"),
    ],
)
def test_where_no_sandbox_is_to_be_had_guests_check_and_the_answer_says_why(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, fault: str | BobError, said: str
) -> None:
    def of_trial(where: str, asked: Run) -> CheckerAnswer:
        if where == HOST and isinstance(fault, BobError):
            raise fault
        return Machines.of_trial(machines, where, asked)

    monkeypatch.setattr(machines, "of_trial", of_trial)
    monkeypatch.setattr(checkers, "why_none", lambda _root: fault if isinstance(fault, str) else None)
    done, _answers = checked(machines)
    assert set(machines.asked) == {GUEST}
    assert done.notes == (f"the checker ran in guests: {said}",)
    with pytest.raises(GuestError, match=said) as refused:
        chosen(CheckPlace.HOST)
    assert "--checks auto" in (refused.value.hint or "")


def test_on_a_given_machine_no_host_is_tried(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    given = GivenImage(
        name="ssh://there",
        key="",
        folder=Path("/nonexistent"),
        kernel_release="",
        cmdline="",
        host_key="",
        built="",
        tools={},
        sizes={},
    )
    monkeypatch.setattr(checkers, "unpacked", lambda *_: pytest.fail("its root is not here"))
    by = checkers_for(ProgramGuests(cast(Any, None), given, Silent()), CASE, ENDS, CheckPlace.AUTO, 2)
    assert (by.is_on_host, by.why_guests) == (False, "the files of a given machine are not on the host")


def test_a_checker_whose_trials_differ_on_the_host_is_left_to_guests(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where it needs another user than root: there is no other one in a sandbox."""
    monkeypatch.setattr(
        machines, "of_trial", lambda where, one: FINE if where == HOST else Machines.of_trial(machines, where, one)
    )
    done, _answers = checked(machines)
    assert done.notes == snapshot(
        ("the checker ran in guests: on trials it ends with [0, 0, 0] there, and with [0, 0, 10] in a guest",)
    )


@pytest.mark.parametrize(
    ("code", "spoilt", "said"), [(11, 10, "refuses the tree after the setup"), (0, 0, "does not refuse")]
)
def test_a_checker_that_judges_built_trees_otherwise_is_of_no_use_for_models(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, code: int, spoilt: int, said: str
) -> None:
    monkeypatch.setattr(
        machines, "of_trial", lambda _where, asked: CheckerAnswer(spoilt if asked.spoiler else code, "")
    )
    with pytest.raises(CannotBeModelled, match=said):
        chosen(CheckPlace.AUTO)


STRONG, WEAK = "ext3-j", "ext2"  # one keeps the order of all calls, and one keeps none


def held(
    machines: Machines,
    monkeypatch: pytest.MonkeyPatch,
    names: str = "fg",
    models: Sequence[str] = (STRONG, WEAK),
) -> list[SubjectResult]:
    """The answers of ``models`` for a program that makes empty files."""
    calls = tuple(
        SystemCall(1, 0.0, "creat", (f'"{in_hex(f"{ROOT}/{name}")}"', "0644"), 3, f"{ROOT}/{name}") for name in names
    )
    files = {f"/{name}": Node("file", inode, mode=0o644) for inode, name in enumerate(names, 2)}
    case, nothing = samples.program_case(Transcript(b"", calls, 7, (), None)), cast(Any, None)
    image: Any = SimpleNamespace(root=None)
    monkeypatch.setattr(program_models, "both_ends", lambda *_: (ENDS[0], {**ENDS[0], **files}))
    answers, _steps = hold_against(
        ProgramGuests(nothing, image, Silent()),
        case,
        ProbeRequest(case.subject),
        named_models(models),
        1,
        lambda _name: Explaining(),
    )
    return [one.result for one in answers]


def test_the_answer_is_in_the_words_of_a_guest(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    machines.saying = lambda where, asked: (
        CheckerAnswer(11, f"{where} misses f") if set(asked.state) == {"/g"} else FINE
    )
    strong, weak = held(machines, monkeypatch)
    assert (strong.answer.verdict, strong.answer.ways) == (Verdict.HOLDS, ())
    [way] = weak.answer.ways
    assert (weak.answer.verdict, way.evidence) == (Verdict.FAILS, "corruption: guest misses f") and way.relied_on


@pytest.mark.parametrize("has_kinds", [True, False])
def test_guests_check_the_first_tree_of_each_kind_of_reason_and_no_second(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, has_kinds: bool
) -> None:
    monkeypatch.setattr(checkers, "SAMPLED", 0)
    monkeypatch.setattr(checkers, "SHARE", 1000)
    monkeypatch.setattr(reliance, "kind_of", lambda one, *_: str(one.there) if has_kinds else "ordering")
    seen: dict[str, list[set[str]]] = {HOST: [], GUEST: []}

    def saying(where: str, asked: Run) -> CheckerAnswer:
        seen[where].append(set(asked.state))
        is_early = "/f" not in asked.state and not {"/g", "/h"}.isdisjoint(asked.state)
        return CheckerAnswer(11, "f is missing") if is_early else FINE

    machines.saying = saying
    _strong, weak = held(machines, monkeypatch, "fghi")
    [way] = weak.answer.ways
    reasons = {one.explanation.there: one.trees for one in way.relied_on}
    assert reasons == {(1,): 2, (2,): 2, (1, 2): 2} and len(seen[HOST]) >= 16
    early = [{"/g", "/h"} & tree for tree in seen[GUEST] if "/f" not in tree]
    assert all(early.count(one) for one in ({"/g"}, {"/h"}, {"/g", "/h"})) is has_kinds
    assert len(seen[GUEST]) <= (3 if has_kinds else 2) + 2


def test_earlier_answers_are_not_believed_either_where_a_guest_differs(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines.saying = lambda where, asked: CORRUPT if where == HOST and set(asked.state) == {"/g"} else FINE
    strong, weak = held(machines, monkeypatch)
    assert strong.answer.verdict is weak.answer.verdict is Verdict.UNKNOWN
    assert strong.answer.reason == weak.answer.reason and "ends with 11 and with 0" in (weak.answer.reason or "")


def test_where_guests_could_not_control_one_model_no_model_is_believed(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines.saying = lambda where, _asked: CheckerAnswer(None, "") if where == GUEST else FINE
    for answer in (one.answer for one in held(machines, monkeypatch, "fgh", (WEAK, STRONG))):
        assert answer.verdict is Verdict.UNKNOWN
        assert answer.reason == "guests could not control the checker on the host: the checker did not end in a guest"


def test_each_model_has_a_sample_of_its_own_states(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second model asks for no tree, as the first one had all of them."""
    monkeypatch.setattr(checkers, "SHARE", 2)
    machines.saying = lambda _where, _asked: FINE
    _weak, strong = held(machines, monkeypatch, "fghi", (WEAK, STRONG))
    assert (strong.checks and strong.checks.trees) == 5
    [note] = [one for one in strong.notes if "guests ran it again" in one]
    assert " on 3 trees: " in note


def test_what_the_host_and_guests_lose_is_asked_once(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    lost: Counter[str] = Counter()

    def saying(where: str, asked: Run) -> CheckerAnswer:
        if set(asked.state) == {"/g"}:
            lost[where] += 1
            assert lost[where] < 50, "without end"
            raise SandboxLost("check took more than 2 GiB of memory")
        return FINE

    machines.saying = saying
    strong, weak = held(machines, monkeypatch)
    assert lost == {HOST: 2, GUEST: 2}
    assert (strong.answer.verdict, weak.answer.verdict) == (Verdict.HOLDS, Verdict.UNKNOWN)


def test_where_sentences_differ_guests_check_all_that_is_refused_at_once(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[int] = []
    real = TriedStates._ask_guests

    def counted(self: TriedStates, title: str, states: Sequence[ModelState]) -> None:
        rounds.append(len(states))
        real(self, title, states)

    monkeypatch.setattr(TriedStates, "_ask_guests", counted)
    machines.saying = lambda where, asked: (
        CheckerAnswer(11, f"broken under {where}") if "/g" in asked.state and "/f" not in asked.state else FINE
    )
    [weak] = held(machines, monkeypatch, "fghijk", [WEAK])
    [way] = weak.answer.ways
    assert (way.trees, way.evidence) == (16, "corruption: broken under guest") and len(rounds) == 2
    assert any("all that it refused, and a sample" in note for note in weak.notes)
