"""The claim that recovery is idempotent. After a crash during recovery, the next recovery leads to the same tree as a
recovery without a crash. A tree that the first crash alone could have left also satisfies the claim. EXPLODE (OSDI'06,
section 5) tested file systems in this way. Table 1, bob's main table of persistence properties, does not have this
claim."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from bob.claim.claim import Claim, Context, PropertyLookup, Refusal, View
from bob.claim.property.declaration import PropertyDocument
from bob.claim.property.judged_case import WorkloadVerdict
from bob.claim.property.rules import Property, Rule
from bob.claim.verdict import Verdict, judged_states
from bob.crash.state import CrashState
from bob.observe.easiest import easiest
from bob.observe.observation import Node, Observation
from bob.observe.observations import Observations
from bob.schema import encode
from bob.story.decisive import decisive
from bob.story.timeline import CrashTimeline
from bob.text import printable
from bob.workload.operations import Workload
from bob.workload.pattern import describe

IDEMPOTENT = Property(
    name="recovery-idempotent",
    family="recovery",
    meaning="if a crash interrupts recovery, the next one ends in the same tree, or in one that a single crash leaves",
    rule=Rule.ATOMIC,
    subjects=(),  # no part of a workload tests this claim
)


@dataclass(frozen=True, slots=True)
class Idempotent(Claim):
    kind = "recovery"
    name = title = IDEMPOTENT.name
    asks = f"What {IDEMPOTENT.name} asks for", IDEMPOTENT.meaning
    breach = "the next recovery led to another tree"
    is_shown_by_the_tree = True
    no_shrinking = Refusal("a crash during recovery", "such a witness has nothing that can be left out")
    no_export = Refusal("a crash during recovery", "bob exports only what operations wrote")

    def headline(self, configuration: str) -> str:
        return f"{self.name} is violated on {configuration}"

    def broken(self, view: View, context: Context) -> str | None:
        return during_recovery(view.undisturbed(), view.observation) if view.observation.mounted else None

    def sentence(self, line: CrashTimeline, context: Context, found: Observation | None) -> str:
        return f"{decisive(line)} while recovery was under way, and {self.breach}."

    def to_json(self) -> dict[str, Any]:
        return {
            "property": self.name,
            "probe": encode(PropertyDocument.of(IDEMPOTENT)),
            "question": {"required": [], "later": None},
        }

    @classmethod
    def read(cls, document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> Self | None:
        return cls() if document["property"] == IDEMPOTENT.name else None


def judged(
    observed: Observations, expected: Observation, legal: Callable[[], Iterable[Observation]] = tuple
) -> tuple[WorkloadVerdict, tuple[CrashState, str] | None]:
    """Return the verdict (whether the claim holds or fails) on the crash states of one recovery. Also return the state
    that best shows a violation, with the violation in words. ``expected`` is the tree after the same recovery without a
    crash, which bob saw in another guest. ``legal`` returns the trees that a single crash could have left instead; they
    do not violate the claim. bob calls ``legal`` only if some tree differs from ``expected``. States that do not mount
    do not violate this claim, but the verdict includes their number."""
    reason, showing = observed.lost, []
    observations = observed.findings.observations()
    mounting = {outcome for outcome, observation in enumerate(observations) if observation.mounted}
    outcomes = {seen.state: seen.outcome for seen in observed.states}
    undisturbed = outcomes.get(CrashState(0))
    if undisturbed is None:
        reason = reason or "the recovery without a crash was not observed"
    elif wrong := difference(expected, observations[undisturbed]):
        reason = f"a control failed: recovered twice without a crash, {wrong}"
    else:
        before = observations[undisturbed]
        found = {
            outcome: wrong
            for outcome in sorted({seen.outcome for seen in observed.states if seen.outcome is not None})
            if observations[outcome].mounted and (wrong := during_recovery(before, observations[outcome]))
        }
        others = tuple(legal()) if found else ()
        for outcome in [outcome for outcome in found if any(same(one, observations[outcome]) for one in others)]:
            del found[outcome]
        showing = [seen for seen in observed.states if seen.outcome in found]
    breach = easiest(showing)
    verdict = Verdict.FAILS if showing else Verdict.HOLDS if reason is None else Verdict.UNKNOWN
    states = judged_states(observed.coverage, observed.states, mounting)
    said = WorkloadVerdict(verdict, states, breach.states, None if showing else reason, showing=tuple(showing))
    if not breach or breach.shown.outcome is None:
        return said, None
    return said, (breach.shown.state, found[breach.shown.outcome])


def during_recovery(undisturbed: Observation, observation: Observation) -> str | None:
    """Return how ``observation``, after a crash during recovery, differs from ``undisturbed``; None if it does not."""
    wrong = difference(undisturbed, observation)
    return wrong and f"after a crash during recovery, {printable(wrong)}"


def same(before: Observation, after: Observation) -> bool:
    return difference(before, after) is None


def difference(before: Observation, after: Observation) -> str | None:
    """Return in words how ``after`` differs from ``before``; None if it does not. Times of modification do not
    count."""
    if not after.mounted or not before.mounted:
        return None if after.mounted == before.mounted else after.summary
    one, other = before.tree or {}, after.tree or {}
    for name in sorted(one.keys() | other.keys()):
        if name not in other:
            return f"{name} is missing"
        if name not in one:
            return f"{name} is there, and missing without that crash"
        # bob does not compare times of modification: recovery may set them.
        if replace(one[name], mtime=other[name].mtime) != other[name]:
            return f"{name} is {_words(other[name])}, and without that crash {_words(one[name])}"
    return None


def _words(node: Node) -> str:
    if node.fault:
        return f"unreadable ({node.fault})"
    about = f"inode {node.inode}, {node.links} links"
    if node.mode is not None:
        about += f", mode {node.mode:04o}, owner {node.uid}:{node.gid}"
    if node.kind != "file":
        return f"a {node.kind} ({about})"
    return f"a file of {node.size:,} B ({about}): {describe(node.content)}"
