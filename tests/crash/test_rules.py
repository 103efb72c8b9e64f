"""PACE's rules leave out no tuple that would show something new. Each rule is held against all tuples, for histories of
a cluster that the rule is meant for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.crash import rules as of_pace
from bob.crash.cuts import Cuts, Interval, Message
from bob.crash.rules import PaceRule, Rules
from bob.crash.tuples import Chosen, PossibleTuples

from .test_cuts import MESSAGES, NODES, allowed, possible
from .test_tuples import ENDS, TREES, outputs

MEMBERS, CLIENT = 3, 3
Shown = set[tuple[int, ...]]


@given(MESSAGES, TREES, ENDS, st.sets(st.sampled_from(PaceRule), min_size=1), st.integers(0, 1))
def test_rules_set_aside_what_follows_none_of_them_and_has_stand_ins(
    messages: list[Message] | None,
    trees: tuple[list[list[Interval]], ...],
    ends: list[int],
    some: set[PaceRule],
    master: int,
) -> None:
    tuples = PossibleTuples(Cuts(NODES, messages), trees, outputs(ends), 1)
    rules, nodes = Rules(tuple(some), master), NODES - 1
    every = set(possible(messages, [*trees, [[one] for one in outputs(ends)]]))

    def newest(node: int, told: int) -> int:
        others = [[Interval(0, 9)]] * NODES
        found = []
        for number, moments in enumerate(trees[node]):
            for one in moments:
                others[node], others[-1] = [one], [outputs(ends)[told]]
                if allowed(messages, [of_node[0] for of_node in others]):
                    found.append((one.first, one.last, number))
        return max(found, default=(0, 0, -1))[2]

    def stands_in(chosen: Chosen, kept: Sequence[int]) -> bool:
        told = chosen[-1]
        return (*(chosen[node] if node in kept else newest(node, told) for node in range(nodes)), told) in every

    def is_kept(chosen: Chosen) -> bool:
        behind = tuple(node for node in range(nodes) if chosen[node] != newest(node, chosen[-1]))
        follows = {
            PaceRule.MAJORITY: len(behind) == 1,  # of two nodes, one is what PACE calls a majority
            PaceRule.LEADER: False,
            PaceRule.MASTER: behind == (master,),
            PaceRule.SLAVE: behind == (1 - master,),
            PaceRule.ALL: len(behind) == nodes,
        }
        if not behind or some == {PaceRule.LEADER} or any(follows[rule] for rule in some):
            return True
        alone = [((node,), PaceRule.MASTER if node == master else PaceRule.SLAVE) for node in behind]
        of_majority = [((node,), PaceRule.MAJORITY) for node in behind if len(behind) > 1]
        return any(rule in some and not stands_in(chosen, kept) for kept, rule in (*alone, *of_majority))

    expected = sorted(filter(is_kept, every))
    assert sorted(tuples.in_order(rules)) == expected
    assert tuples.possible_by(rules) == len(expected)


def test_a_majority_of_three_is_two() -> None:
    rules = Rules((PaceRule.MAJORITY,))
    sets = [(), (0,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    assert [behind for behind in sets if rules.allow(behind, 3)] == [(), (0, 1), (0, 2), (1, 2)]


def test_the_leader_is_one_of_the_majority_with_old_trees() -> None:
    rules = Rules((PaceRule.MAJORITY, PaceRule.LEADER))
    assert {rules.late((0, 2), 3, number) for number in range(9)} == {1}
    assert {rules.late((0, 2, 3), 5, number) for number in range(9)} == {1, 4}
    assert {rules.late((), 3, number) for number in range(9)} == {-1, 0, 1, 2}
    assert {rules.late((0,), 1, number) for number in range(9)} == {-1, 0}


@dataclass(frozen=True)
class History:
    """What a leader (member 0), two followers and a client did. A tree is the number of entries in a member's log."""

    messages: list[Message]
    trees: list[list[list[Interval]]]
    told: list[Interval]

    @property
    def tuples(self) -> PossibleTuples:
        return PossibleTuples(Cuts(MEMBERS + 1, self.messages), self.trees, self.told, 1)


@st.composite
def histories(draw: st.DrawFn, *, slow: bool = False) -> History:
    """For each entry, the client asks the leader. The leader writes it and sends it on. When a follower has answered,
    the leader tells the client. Whoever syncs an entry may do so before or after it answers. A follower that is not
    ``slow`` gets an entry before the client asks for the entry after the next one."""
    entries = draw(st.integers(1, 3))
    after: dict[tuple[str, int, int], list[tuple[str, int, int]]] = {}
    for k in range(1, entries + 1):
        first = draw(st.sampled_from([1, 2]))  # the follower whose answer counts
        syncs = [draw(st.sampled_from(["never", "before", "after"])) for _ in range(MEMBERS)]
        after["ask", k, CLIENT] = [("told", k - 1, CLIENT)] if k > 1 else []
        after["asked", k, 0] = [("ask", k, CLIENT)]
        after["write", k, 0] = [("asked", k, 0), *([("write", k - 1, 0)] if k > 1 else [])]
        for f in (1, 2):
            after["send", k, f] = [("write", k, 0)]
            after["got", k, f] = [("send", k, f), *([("got", k - 1, f)] if k > 1 else [])]
            after["write", k, f] = [("got", k, f), *([("write", k - 1, f)] if k > 1 else [])]
            after["answer", k, f] = [("write", k, f), *([("sync", k, f)] if syncs[f] == "before" else [])]
            after["answered", k, f] = [("answer", k, f)]
            if not slow and k > 2:
                after["asked", k, 0].append(("send", k - 2, f))
        after["tell", k, 0] = [("answered", k, first), *([("sync", k, 0)] if syncs[0] == "before" else [])]
        after["told", k, CLIENT] = [("tell", k, 0)]
        for member in range(MEMBERS):
            if syncs[member] != "never":
                after["sync", k, member] = [("write", k, member)]
    order: dict[tuple[str, int, int], int] = {}
    while len(order) < len(after):
        ready = [one for one, needed in after.items() if one not in order and all(each in order for each in needed)]
        order[draw(st.sampled_from(ready))] = len(order) + 1
    return _history(order, entries)


def _history(at: dict[tuple[str, int, int], int], entries: int) -> History:
    end = len(at) + 1
    messages, trees = [], []
    for k in range(1, entries + 1):
        messages.append(Message(CLIENT, at["ask", k, CLIENT], 0, at["asked", k, 0]))
        messages.append(Message(0, at["tell", k, 0], CLIENT, at["told", k, CLIENT]))
        for f in (1, 2):
            messages.append(Message(0, at["send", k, f], f, at["got", k, f]))
            messages.append(Message(f, at["answer", k, f], 0, at["answered", k, f]))
    for member in range(MEMBERS):
        syncs = [at[one] for one in at if one[0] == "sync" and one[2] == member]
        written = [0, *(at["write", k, member] for k in range(1, entries + 1))]
        durable = [min((sync for sync in syncs if sync > one), default=end + 1) for one in written[1:]]
        last = [min(durable[k:], default=end + 1) - 1 for k in range(entries)] + [end]
        trees.append([[Interval(one, other)] if one <= other else [] for one, other in zip(written, last, strict=True)])
    times = [0, *(at["told", k, CLIENT] for k in range(1, entries + 1)), end + 1]
    return History(messages, trees, [Interval(one, other - 1) for one, other in pairwise(times)])


def losses_of_a_majority(chosen: Chosen, late: int) -> Iterator[tuple[int, ...]]:
    """Yield what a replicated state machine may lose: entries that the leader's log lacks. Each member can lead whose
    log is not older than those of a majority of the members that have started."""
    *logs, told = chosen
    started = [member for member in range(MEMBERS) if member != late]
    for leader in started:
        if sum(logs[other] <= logs[leader] for other in started) > MEMBERS // 2 and logs[leader] < told:
            yield told, logs[leader]


def shown_by_majorities(tuples: PossibleTuples, rules: Rules) -> Shown:
    """What a check shows of each tuple that ``rules`` keep, with each start that they allow."""
    shown = set()
    for chosen in tuples.in_order(rules):
        for late in {rules.late(tuples.behind(chosen), MEMBERS, number) for number in range(MEMBERS + 1)}:
            shown |= {*losses_of_a_majority(chosen, late)}
    return shown


def shown_alone(tuples: PossibleTuples, rules: Rules) -> Shown:
    """Each member answers for itself, as the master and the slaves of Redis do."""
    every = tuples.in_order(rules)
    return {(told, member, log) for *logs, told in every for member, log in enumerate(logs) if log < told}


def shown_by_leader_or_all(tuples: PossibleTuples, rules: Rules) -> Shown:
    """The leader answers, or another member if the leader does not start, as in Kafka."""
    shown: Shown = set()
    for *logs, told in tuples.in_order(rules):
        shown |= {(told, logs[0])} if logs[0] < told else set()
        shown |= {(told, -1 - max(logs))} if max(logs) < told else set()
    return shown


CLUSTERS = {
    (PaceRule.MAJORITY,): shown_by_majorities,
    (PaceRule.MAJORITY, PaceRule.LEADER): shown_by_majorities,
    (PaceRule.MASTER, PaceRule.SLAVE): shown_alone,
    (PaceRule.MASTER, PaceRule.ALL): shown_by_leader_or_all,
}
NOBODY_SYNCS = _history(
    {
        one: place
        for place, one in enumerate(
            [
                ("ask", 1, CLIENT), ("asked", 1, 0), ("write", 1, 0), ("send", 1, 1), ("send", 1, 2), ("got", 1, 1),
                ("write", 1, 1), ("answer", 1, 1), ("answered", 1, 1), ("tell", 1, 0), ("told", 1, CLIENT),
                ("got", 1, 2), ("write", 1, 2), ("answer", 1, 2), ("answered", 1, 2),
            ],
            1,
        )
    },
    1,
)  # fmt: skip


@given(histories())
def test_a_rule_misses_nothing_that_all_tuples_show(history: History) -> None:
    for rules, shown in CLUSTERS.items():
        assert shown(history.tuples, Rules(rules)) == shown(history.tuples, Rules())


@pytest.mark.parametrize(("rules", "shown"), CLUSTERS.items())
def test_a_broken_rule_misses_something(
    rules: tuple[PaceRule, ...],
    shown: Callable[[PossibleTuples, Rules], Shown],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A majority is one node, whatever messages forbid; or no rule is for the slaves, or for all."""
    tuples = NOBODY_SYNCS.tuples
    assert shown(tuples, Rules(rules)) == shown(tuples, Rules()) != set()
    assert tuples.possible_by(Rules(rules)) < tuples.possible
    broken = Rules(rules[:1])
    monkeypatch.setattr(of_pace, "majority", lambda _nodes: 1)
    monkeypatch.setattr(Rules, "stand_ins", lambda *_: ())
    assert shown(NOBODY_SYNCS.tuples, broken) != shown(NOBODY_SYNCS.tuples, Rules())


def test_with_the_leader_from_elsewhere_a_majority_shows_nothing() -> None:
    """R2 is what makes R1 show a loss for sure: with a newer node among those that start, that node leads."""
    for behind in combinations(range(MEMBERS), 2):
        chosen = (*(0 if node in behind else 1 for node in range(MEMBERS)), 1)
        [late] = {Rules((PaceRule.LEADER,)).late(behind, MEMBERS, number) for number in range(9)}
        assert [*losses_of_a_majority(chosen, late)]
        assert not [*losses_of_a_majority(chosen, behind[0])]
