"""What searches tried: put together, nothing counts twice, whatever the order; and what is damaged is not counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.catalogue.probe_files import shipped_probes
from bob.claim.property.rules import Property
from bob.claim.verdict import Verdict
from bob.crash.caches import CACHES
from bob.crash.coverage import States
from bob.crash.device import DeviceModel
from bob.observe.observed import TroubleKind
from bob.result import (
    Cause,
    ConfigurationResult,
    Environment,
    Finding,
    PropertyResult,
    Result,
    Run,
    Trouble,
    Unmountable,
    WorkloadResult,
)
from bob.search.merged import merged as in_a_table
from bob.search.searched import Kept, On, Said, Whole, asked_by, counted, from_json, key, merged, to_json, words_of
from bob.search.space import Part
from bob.search.spaces import search
from bob.subject import Stack, configuration
from bob.trace.completion import Completion
from bob.workload.language import parse
from bob.workload.operations import At, Finish, Workload
from bob.workload.pattern import UNSHADED_PATTERN

ENVIRONMENT = Environment("6.1", "debian-bookworm (k)", "tcg", "virtual", "7", "9", "e2fsprogs 1.47")
ON = On.of(configuration("ext4"), ENVIRONMENT, DeviceModel())
KEYS = [f"{number:012x}" for number in range(8)]
ASKS, OTHER = "a" * 12, "b" * 12


@st.composite
def wholes(draw: st.DrawFn) -> Whole:
    legal = draw(st.integers(0, 4) | st.integers(2**60, 2**60 + 2))
    explored = draw(st.integers(0, legal))
    return Whole(explored, legal, draw(st.integers(0, legal - explored)))


@st.composite
def searches(draw: st.DrawFn) -> Kept:
    whole = draw(st.dictionaries(st.sampled_from(KEYS), wholes(), max_size=6))
    said = []
    for name, asks in sorted(draw(st.sets(st.sampled_from([*product(["p", "q"], [ASKS, OTHER])])))):
        fails = {one for one in whole if draw(st.sampled_from([True, False, False]))}
        holds = {one for one in whole if one not in fails and draw(st.booleans())}
        witness = draw(st.sampled_from([None, "s/lot-001/witnesses/p.json"])) if fails else None
        said.append(Said(name, asks, frozenset(holds), frozenset(fails), witness, witness and "it is gone"))
    on = replace(ON, kernel=draw(st.sampled_from(["6.1", "6.12"])))
    return Kept(
        draw(st.sampled_from("123")), draw(st.sampled_from(["2026", "2027"])), "0.1", "small", on, whole, tuple(said)
    )


SEVERAL = st.lists(searches(), max_size=4).map(tuple)


@given(SEVERAL, SEVERAL, SEVERAL)
def test_files_are_put_together_in_any_order(a: tuple[Kept, ...], b: tuple[Kept, ...], c: tuple[Kept, ...]) -> None:
    assert merged(a, b) == merged(b, a)
    assert merged(merged(a, b), c) == merged(a, merged(b, c)) == merged(a, b, c)
    assert merged(merged(a), a) == merged(a)
    names = [(one.id, one.on) for one in merged(a, b)]
    assert len(set(names)) == len(names) and set(names) == {(one.id, one.on) for one in (*a, *b)}


@given(SEVERAL)
def test_of_one_search_the_last_word_counts(several: tuple[Kept, ...]) -> None:
    for one in merged(several):
        told = [each for each in several if (each.id, each.on) == (one.id, one.on)]
        assert one in told and one.told == max(each.told for each in told)


@given(SEVERAL, st.sets(st.sampled_from(KEYS)), st.booleans())
def test_each_workload_counts_once_and_those_of_the_probe_do_not(
    several: tuple[Kept, ...], own: set[str], is_broken: bool
) -> None:
    """Against sets, by hand."""
    holds = {
        one for kept in several for said in kept.said if (said.name, said.asks) == ("p", ASKS) for one in said.holds
    }
    fails = {
        one for kept in several for said in kept.said if (said.name, said.asks) == ("p", ASKS) for one in said.fails
    }
    again = set() if is_broken else fails & own
    more = ((holds | fails) - own) | again
    found = counted(several, "p", ASKS, own, is_broken=is_broken)
    if not more:
        assert found is None
        return
    assert found is not None
    assert found.workloads == len(more) <= len(KEYS)
    assert found.failing == len(fails & more)
    best = [max((kept.whole[one] for kept in telling(several, one)), key=lambda whole: whole.rank) for one in more]
    assert found.complete == sum(one.explored + one.unmountable == one.legal for one in best) <= found.workloads
    sums = (sum(one.explored for one in best), sum(one.legal for one in best), sum(one.unmountable for one in best))
    assert found.whole == Whole(*sums)
    assert {one.id for one in found.searches} == {kept.id for one in more for kept in telling(several, one)}
    shown = [said for kept in several for said in kept.said if said.name == "p" and said.asks == ASKS]
    assert (found.shown is not None) == any(said.witness and said.fails & more for said in shown)
    assert found.shown is None or found.shown.fails & more


def telling(several: tuple[Kept, ...], one: str) -> list[Kept]:
    """The searches that say of a workload whether it holds."""
    said = [(kept, each) for kept in several for each in kept.said if (each.name, each.asks) == ("p", ASKS)]
    return [kept for kept, each in said if one in each.holds | each.fails]


@given(SEVERAL)
def test_adding_what_is_there_adds_nothing(several: tuple[Kept, ...]) -> None:
    once, twice = (counted(kept, "p", ASKS, ()) for kept in (several, (*several, *several)))
    assert (once is None) == (twice is None)
    if once and twice:
        assert (once.workloads, once.failing, once.whole) == (twice.workloads, twice.failing, twice.whole)


@given(searches())
def test_what_is_kept_is_read_again(kept: Kept) -> None:
    assert from_json(json.loads(json.dumps(to_json(kept)))) == kept


SMALL = Kept(
    "1", "2026", "0.1", "small", ON, {KEYS[0]: Whole(3, 4, 1), KEYS[1]: Whole(1, 4)},
    (Said("p", ASKS, frozenset(KEYS[:1]), frozenset(KEYS[1:2]), "w.json", "gone"),),
)  # fmt: skip


def damaged(change: Callable[[Any], object]) -> Any:
    document = json.loads(json.dumps(to_json(SMALL)))
    change(document)
    return document


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("on"),
        lambda document: document["on"].pop("kernel"),
        lambda document: document["on"].update(more=1),
        lambda document: document.update(told=None),
        lambda document: document["workloads"].append(document["workloads"][0]),
        lambda document: document["workloads"].append(["zz", 0]),
        lambda document: document["workloads"].append([KEYS[5], -1]),
        lambda document: document["workloads"].append([KEYS[5], True]),
        lambda document: document["whole"].append([3, 2, 0]),
        lambda document: document["whole"].append([-1, 2, 0]),
        lambda document: document["whole"].append([1, 2]),
        lambda document: document["properties"][0]["holds"].append(2),
        lambda document: document["properties"][0]["holds"].append(1),
        lambda document: document["properties"][0].update(asks="anything"),
        lambda document: document["properties"][0].update(witness=7),
    ],
)
def test_what_is_damaged_is_refused(change: Callable[[Any], object]) -> None:
    assert from_json(damaged(lambda _document: None)) == SMALL
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        from_json(damaged(change))


WORKLOAD = Workload(
    "w", parse("write /a 0 4096; mkdir /d"), parse("append /a 100; create /d/n"), Finish("natural", natural=True)
)


def test_a_workload_goes_by_all_but_its_names() -> None:
    others = [
        replace(WORKLOAD, setup=parse("write /a 0 4096")),
        replace(WORKLOAD, setup=WORKLOAD.setup[::-1]),
        replace(WORKLOAD, operations=parse("append /a 101; create /d/n")),
        replace(WORKLOAD, operations=parse("append /a 100"), finish=Finish("f", parse("create /d/n"))),
        replace(WORKLOAD, finish=Finish("natural", natural=True, phase=2.5)),
        replace(WORKLOAD, finish=Finish("natural")),
        replace(WORKLOAD, finish=Finish("sync", parse("sync"))),
        replace(WORKLOAD, at=At.END),
    ]
    assert len({key(one) for one in (WORKLOAD, *others)}) == 1 + len(others)
    alike = replace(WORKLOAD, name="v", finish=replace(WORKLOAD.finish, name="n"), pattern=UNSHADED_PATTERN)
    assert key(alike) == key(WORKLOAD)


def test_a_property_goes_by_what_it_asks() -> None:
    every = [probe.property for probe in shipped_probes()]
    assert len({asked_by(one) for one in every}) == len(every)
    one: Property = every[0]
    assert asked_by(replace(one, name="mine", meaning="in other words", family="f")) == asked_by(one)


def test_verdicts_are_put_together_on_one_kernel_and_configuration_only() -> None:
    made, model = configuration("ext4"), DeviceModel()
    stack = Stack("two", (1 << 25, 1 << 25), (("a",),), (("b",),), "/dev/x")
    others = [
        On.of(configuration("ext3"), ENVIRONMENT, model),
        On.of(configuration("ext4", "-O ^has_journal"), ENVIRONMENT, model),
        On.of(configuration("ext4", "", "data=journal"), ENVIRONMENT, model),
        On.of(configuration("ext4", device=1 << 26), ENVIRONMENT, model),
        On.of(configuration("ext4", stack=stack), ENVIRONMENT, model),
        On.of(made, replace(ENVIRONMENT, kernel="6.12"), model),
        On.of(made, replace(ENVIRONMENT, mkfs_version="e2fsprogs 1.48"), model),
        On.of(made, ENVIRONMENT, DeviceModel(CACHES["none"])),
        On.of(made, ENVIRONMENT, DeviceModel(atomic_write_bytes=4096)),
        On.of(made, ENVIRONMENT, DeviceModel(completion=Completion.OLDEST_FIRST)),
    ]
    assert len({ON, *others}) == 1 + len(others)
    elsewhere = replace(ENVIRONMENT, accelerator="kvm", image="debian-bookworm (other)", qemu="8", libvirt="10")
    assert On.of(replace(made, name="mine"), elsewhere, model) == ON
    assert On.of(configuration("ext4", device=made.fs.device), ENVIRONMENT, model) == ON


def test_two_builds_of_a_kernel_of_the_users_own_are_two() -> None:
    built = [replace(ENVIRONMENT, image=f"debian-bookworm+6.1 ({which})") for which in ("k", "l")]
    found = {On.of(configuration("ext4"), one, DeviceModel()) for one in (*built, ENVIRONMENT)}
    assert len(found) == 3


def test_what_was_asked_for_is_told() -> None:
    drawn = search(None, ("append-any",), 2, Part(2, 3, 40, 7))
    assert words_of(drawn, 100) == (
        "bounds shapes, 2 operations, those that ask for append-any, 40 drawn by seed 7, part 2 of 3, budget 100"
    )
    assert words_of(search("ace"), 50) == "bounds ace, 1 operation, budget 50"
    assert words_of(search(None, (), 2), 50) == "bounds small, up to 2 operations, budget 50"
    assert "2 operations, drawn by seed 1 for 60 s" in words_of(search(None, (), 2, seconds=60), 50)


# Results of lots as one: the worst verdict wins, nothing is counted twice or left out, the first witness is shown

RUN = Run("whole", "then", "now", "0", 1, 100)
NAMES = ["a", "b", "collateral"]
CAUSES = [Cause("durable", block, "lost", "none") for block in ("data", "inode table", "superblock")]
VERDICTS = st.sampled_from([Verdict.FAILS, Verdict.HOLDS, Verdict.UNKNOWN])

FINDINGS = st.builds(
    Finding,
    st.sampled_from(CAUSES),
    st.just("words"),
    st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(tuple),
    st.lists(st.sampled_from(["append", "create"]), unique=True).map(tuple),
    st.integers(1, 9),
    st.sampled_from(["a; b", "a; c", "a; bb"]),
    st.just("natural"),
    st.integers(2, 3),
    st.just("evidence"),
    st.just("witnesses/finding-1.json"),
)


@st.composite
def lots(draw: st.DrawFn) -> list[tuple[str, Result]]:
    found = []
    for number in range(draw(st.integers(1, 4))):
        cells = []
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1)):
            verdict, states = (
                draw(VERDICTS),
                States(draw(st.integers(0, 9)), 9, 20, draw(st.sampled_from([None, "writes"]))),
            )
            cells.append(
                PropertyResult(
                    name,
                    "family",
                    verdict,
                    states,
                    (WorkloadResult(f"{number}{name}", "natural", verdict, states),),
                    witness=f"witnesses/{name}.json" if verdict is Verdict.FAILS else None,
                    evidence=f"{number}" if verdict is Verdict.FAILS else None,
                    reason="lost" if verdict is Verdict.UNKNOWN else None,
                )
            )
        told = draw(st.lists(FINDINGS, max_size=3, unique_by=lambda one: one.cause))
        column = ConfigurationResult(
            "fs", "fs", "", "", "rw", tuple(cells), Unmountable(draw(st.integers(0, 3))), (f"note {number % 2}",),
            troubles=(Trouble(TroubleKind.CHECKER, 2, f"block {number} is bad", "witnesses/checker.json"),),
            examined=1, examinable=2, findings=tuple(told),
        )  # fmt: skip
        environment = Environment("6.1", "image", "tcg", "virtual", "7", "9", "1")
        run = replace(RUN, id=str(number))
        found.append((f"lot-{number}", Result(run, environment, DeviceModel(), (column,))))
    return found


@given(lots())
def test_lots_are_one(several: list[tuple[str, Result]]) -> None:
    whole = in_a_table(several, NAMES, RUN)
    [column] = whole.configurations
    assert whole.run == RUN
    every = [(folder, cell) for folder, result in several for cell in result.configurations[0].properties]
    assert [cell.name for cell in column.properties] == [name for name in NAMES if name in {c.name for _f, c in every}]
    for cell in column.properties:
        parts = [(folder, part) for folder, part in every if part.name == cell.name]
        verdicts = [part.verdict for _folder, part in parts]
        worst = next(one for one in (Verdict.FAILS, Verdict.UNKNOWN, Verdict.HOLDS) if one in verdicts)
        assert cell.verdict is worst
        assert [one.name for one in cell.workloads] == [one.name for _folder, part in parts for one in part.workloads]
        assert cell.states.explored == sum(part.states.explored for _folder, part in parts)
        assert (cell.states.exhaustive == "writes") == all(part.states.exhaustive for _folder, part in parts)
        shown = [(folder, part) for folder, part in parts if part.verdict is Verdict.FAILS]
        assert cell.witness == (f"{shown[0][0]}/{shown[0][1].witness}" if shown else None)
        assert cell.evidence == (shown[0][1].evidence if shown else None)
        assert (cell.reason is not None) == (worst is Verdict.UNKNOWN)
    assert column.unmountable.states == sum(one.configurations[0].unmountable.states for _folder, one in several)
    assert [(one.states, one.witness) for one in column.troubles] == [
        (2 * len(several), "lot-0/witnesses/checker.json")
    ], "words that differ in numbers only are one trouble"
    assert column.notes == tuple(f"note {number}" for number in range(min(2, len(several))))
    assert (column.examined, column.examinable) == (len(several), 2 * len(several))


@given(lots())
def test_a_cause_that_several_lots_show_is_one_finding(several: list[tuple[str, Result]]) -> None:
    [column] = in_a_table(several, NAMES, RUN).configurations
    every = [(folder, one) for folder, result in several for one in result.configurations[0].findings]
    assert {one.cause for one in column.findings} == {one.cause for _folder, one in every}
    assert len({one.cause for one in column.findings}) == len(column.findings)
    sizes = [(one.operations, len(one.workload), one.workload) for one in column.findings]
    assert sizes == sorted(sizes)
    for finding in column.findings:
        parts = [(folder, one) for folder, one in every if one.cause == finding.cause]
        assert set(finding.rows) == {row for _folder, one in parts for row in one.rows}
        assert len(set(finding.rows)) == len(finding.rows)
        assert set(finding.missing) == {kind for _folder, one in parts for kind in one.missing}
        assert finding.shown_by == sum(one.shown_by for _folder, one in parts)
        least = min((one.operations, len(one.workload), one.workload) for _folder, one in parts)
        assert (finding.operations, len(finding.workload), finding.workload) == least
        folder = next(folder for folder, one in parts if (one.operations, len(one.workload), one.workload) == least)
        assert finding.witness == f"{folder}/witnesses/finding-1.json"
