"""The answer to the question whether a program survives crashes on a model. A model is a set of rules that say which
states of the files a crash may leave. bob builds states that the model allows. The program's checker (a command)
accepts or refuses each state. bob may also compare this answer with the answer on a real file system.

A *way* to break the program is a consequence (such as corruption), together with the checker's words for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from bob.answer.answer import Answer, Cross, Way
from bob.answer.result import Allowed, Checks, Missed, SubjectResult
from bob.claim.checking import evidence
from bob.claim.verdict import Verdict
from bob.crash.coverage import NOTHING
from bob.judge.looked import NOTHING_TOLD, AnsweredTrees, Looked
from bob.judge.programs import CHECKER, verdict_of
from bob.judge.reliance import Explaining, Reliances
from bob.observe.observation import Node
from bob.observe.observations import without_numbers
from bob.program.answer import CheckerAnswer, Consequence
from bob.program.strace import SystemCall
from bob.protocol.contrast import PresenceByCall, groups
from bob.protocol.effects import Effects

INODES_FROM = 1  # the inode number of a file in a model's tree is its number in the effects plus this
Key = tuple[Consequence, str]  # the key of a vulnerability: its consequence, and the checker's sentence without numbers


@dataclass(frozen=True, slots=True)
class BuiltState:
    """A state of the files that a model allows if a crash comes after the program's output ``told``. ``step`` names the
    step of bob's search that built the state. ``answer`` is the checker's answer; None if bob did not run the checker
    on the state."""

    told: bytes
    step: str
    answer: CheckerAnswer | None


@dataclass(frozen=True, slots=True)
class ModelLooked:
    """The distinct ``states`` that bob built by the rules of a model, sorted by the time when bob built them.

    The function ``tree`` returns the tree of a state, given the state's index in ``states``. The function ``presence``
    also gets such an index, and returns how much of each system call's effect is in the state. ``accepted[n]`` is the
    checker's answer on the tree after the first n operations on files (None: unknown). ``calls`` has, for each
    operation, the number of the system call that it comes from. ``tellings`` maps the number of a system call to the
    output of the program that this call wrote. ``lost`` says why bob could not check some states, and ``disagreed``
    says why bob does not trust the checker (None: there is no such reason)."""

    model: str
    allowed: Allowed
    states: Sequence[BuiltState]
    tree: Callable[[int], Mapping[str, Node]]
    checks: int
    presence: Callable[[int], PresenceByCall] | None = None
    accepted: Sequence[bool | None] = ()
    calls: Sequence[int] = ()
    tellings: Mapping[int, bytes] = field(default_factory=dict)
    lost: str | None = None
    disagreed: str | None = None


@dataclass(frozen=True, slots=True)
class JudgedModel:
    """The answer about a program on a model. ``shown`` has the indexes of the states whose trees bob shows to the user.
    For each way to break the program, bob shows one state. The program has a *reliance* on a system call if the checker
    refuses a state that lacks the call's effect. A way may come from several kinds of reliance. bob shows a state for
    each kind too."""

    result: SubjectResult
    shown: Sequence[int]


def judge_model(
    looked: ModelLooked,
    calls: Sequence[SystemCall],
    effects: Effects | None,
    notes: Sequence[str],
    explaining: Explaining | None = None,
) -> JudgedModel:
    """Return the answer about a program on a model. The same rules as on a real file system decide whether bob trusts
    the checker. ``looked`` has the states that bob built by the rules of the model, with the checker's answers."""
    explaining = explaining or Explaining()
    reasons = [reason for reason in (looked.disagreed, looked.lost) if reason]
    if any(state.answer is None for state in looked.states):
        reasons.append("the checker did not run on every state that bob built")
    if not looked.states:
        reasons.append("bob did not build any state")
    told: dict[bytes, AnsweredTrees] = {}
    for place, state in enumerate(looked.states):
        after = told.setdefault(state.told, AnsweredTrees(state.told, [], looked.tree))
        if state.answer is not None and state.answer.consequence is None:
            after.accepted.append(place)
    number = {one: place for place, one in enumerate(told)}
    changing = () if effects is None else explaining.made(lambda: effects.changing, ())
    together = groups(looked.accepted, looked.calls, changing)
    of_trees = None if effects is None else explaining.made(partial(numbered, effects), None)
    presence, tellings = looked.presence, looked.tellings
    reliances = Reliances(list(told.values()), calls, of_trees, together, presence, tellings, explaining)
    refused: dict[Key, list[int]] = {}
    for place, state in enumerate(looked.states):
        if state.answer is not None and state.answer.consequence is not None:
            refused.setdefault(_key(state.answer.consequence, evidence(state.answer)), []).append(place)
    found = []
    for (consequence, _sentence), places in refused.items():
        first = looked.states[places[0]]  # the first state is the easiest to explain, since the work begins with it
        assert first.answer is not None
        is_hang = consequence is Consequence.HANG
        asked = [] if is_hang else [(number[looked.states[place].told], place) for place in places]
        way = Way(evidence(first.answer), len(places), consequence=consequence, step=first.step, trees=len(places))
        found.append(replace(way, told=first.told.decode("latin-1"), relied_on=reliances.relied_on(asked)))
    ways = tuple(sorted(found, key=lambda one: (-one.trees, one.evidence)))
    verdict, reasons = verdict_of(ways, reasons, is_believed=not looked.disagreed, where="on some states")
    silent = () if any(state.told for state in looked.states) or looked.tellings else (NOTHING_TOLD,)
    reason = reasons[0] if verdict is Verdict.UNKNOWN else None
    result = SubjectResult(
        looked.model,
        answers=(Answer(CHECKER, verdict, NOTHING, ways, reason=reason),),
        checks=Checks(0, len(looked.states), looked.checks),
        model=looked.allowed,
        notes=(*notes, *explaining.notes, *silent, *(reasons if verdict is Verdict.FAILS else ())),
    )
    shown = [*(places[0] for places in refused.values()), *(outcome for _window, outcome in reliances.shown)]
    return JudgedModel(result, tuple(dict.fromkeys(shown)))


def disbelieved(result: SubjectResult, reason: str) -> SubjectResult:
    """Return the answer of a model, changed to UNKNOWN for ``reason``, since bob has come to distrust the checker."""
    answer = replace(result.answer, verdict=Verdict.UNKNOWN, reason=reason)
    return replace(result, answers=(answer,))


def unknown(model: str, about: str, reason: str) -> SubjectResult:
    answer = Answer(CHECKER, Verdict.UNKNOWN, NOTHING, reason=reason)
    return SubjectResult(model, answers=(answer,), checks=Checks(0, 0, 0), model=Allowed(about, 0, 0, 0, is_all=False))


def numbered(effects: Effects) -> Effects:
    """Return a copy of ``effects`` (what each system call of the program changes). In the copy, files have the inode
    numbers that bob gives them in trees from a model. There, each file of the program has its own number. On a real
    file system, a new file may get the number of a removed file."""
    files = [replace(file, inode=number + INODES_FROM) for number, file in enumerate(effects.files)]
    return replace(effects, files=files)


def crossed(
    model: SubjectResult, real: SubjectResult, unforeseen: Mapping[Key, tuple[str, ...]], *, is_its_own: bool = False
) -> SubjectResult:
    """Compare the answer on ``model`` with the answer on ``real``, a file system of the same run. Add the comparison to
    the answer on ``model``, and return it.

    ``unforeseen`` has the ways to break the program that occur on ``real`` although the model forbids them. Each way is
    mapped to the model's rules that forbid it. If ``is_its_own``, the model was derived from ``real``, so it should
    allow every way that occurs on ``real``."""
    assert model.model is not None
    there = {_key_of(way) for way in real.answer.ways}
    is_whole = real.answer.states.exhaustive is not None and real.answer.reason is None
    ways = []
    for way in model.answer.ways:
        cross = Cross.NOT_REACHABLE if is_whole else Cross.OPEN
        if _key_of(way) in there:
            cross = Cross.CONFIRMED
        ways.append(replace(way, crossed={**way.crossed, real.name: cross}))
    missed = [
        Missed(real.name, way.evidence, is_its_own, unforeseen[key])
        for way in real.answer.ways
        if (key := _key_of(way)) in unforeseen
    ]
    return replace(
        model,
        answers=(replace(model.answer, ways=tuple(ways)),),
        model=replace(model.model, missed=(*model.model.missed, *missed)),
    )


@dataclass(frozen=True, slots=True)
class Change:
    """The ways to break ``program`` before and after a change of the model. ``added`` has the ways that occur only
    after the change, ``mended`` has the ways that occur only before it, and ``kept`` has the ways that occur both
    before and after. ``before`` and ``after`` are the answers of the two models."""

    program: str
    before: SubjectResult
    after: SubjectResult
    added: tuple[Way, ...]
    mended: tuple[Way, ...]
    kept: tuple[Way, ...]

    @property
    def is_unknown(self) -> bool:
        return Verdict.UNKNOWN in (self.before.answer.verdict, self.after.answer.verdict)


def change(program: str, before: SubjectResult, after: SubjectResult) -> Change:
    """Compare ``before`` and ``after``, the answers of the old and the new model about a program. If an answer is
    unknown, ``added`` and ``mended`` of the result are empty."""
    was, now = ({_key_of(way): way for way in side.answer.ways} for side in (before, after))
    is_known = Verdict.UNKNOWN not in (before.answer.verdict, after.answer.verdict)
    return Change(
        program=program,
        before=before,
        after=after,
        added=tuple(way for key, way in now.items() if key not in was and is_known),
        mended=tuple(way for key, way in was.items() if key not in now and is_known),
        kept=tuple(way for key, way in now.items() if key in was),
    )


def refused_trees(looked: Sequence[Looked]) -> list[tuple[Key, bytes, Mapping[str, Node]]]:
    """Return (key, output, tree) for each tree of a real file system that the checker refuses. Two trees have equal
    keys if the checker refuses them with the same consequence, and with words that differ at most in numbers. The
    output is what the program wrote before the crash. Trees that make the checker hang are left out. ``looked`` has the
    observed crash states, with the checker's answers."""
    found: list[tuple[Key, bytes, Mapping[str, Node]]] = []
    for window in looked:
        for outcome, answer in window.answers.items():
            if answer.consequence is not None and answer.consequence is not Consequence.HANG:
                key = _key(answer.consequence, evidence(answer))
                found.append((key, window.told, window.tree(outcome)))
    return found


def _key(consequence: Consequence, said: str) -> Key:
    return consequence, without_numbers(said)


def _key_of(way: Way) -> Key:
    assert way.consequence is not None
    return _key(way.consequence, way.evidence)
