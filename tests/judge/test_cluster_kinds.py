"""The kinds of a cluster's vulnerabilities are those of PACE's Table 2."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from bob.answer.answer import ClusterHarm
from bob.judge.cluster_kinds import cluster_kind
from bob.program.answer import Consequence

HEALED = "k0 is lost (a window: after 20 s all is well)"


CASES = [*product(Consequence, (b"", b"k0=it\n"), (False, True), ((), (1,), (0, 2)))]


@pytest.mark.parametrize(("consequence", "told", "is_healed", "behind"), CASES)
def test_the_kind_says_what_the_check_says(
    consequence: Consequence, told: bytes, is_healed: bool, behind: tuple[int, ...]
) -> None:
    found = cluster_kind(consequence, HEALED if is_healed else "k0 is lost", told, behind)
    words = {
        Consequence.LOST: "loss of new data" if told else "loss of old data",
        Consequence.CORRUPT: "silent corruption",
        Consequence.CANNOT_OPEN: "unavailability" if is_healed else "unavailable",
        Consequence.UNAVAILABLE: "unavailability" if is_healed else "unavailable",
    }.get(consequence)
    if words is None:
        assert found is None
        return
    assert found is not None and found.harm is ClusterHarm("window of " * is_healed + words)
    assert found.words == f"{'global' if len(behind) > 1 else 'local'}: {found.harm.value}"


def test_the_agent_says_that_a_cluster_has_healed_in_these_words() -> None:
    agent = (Path(__file__).parents[2] / "bob/agent/inside/nodes.py").read_text()
    [said] = re.findall(r"\(a window: [^)]*\)", agent)
    healed = cluster_kind(Consequence.LOST, f"it is lost {said.format(again=20)}", b"told", (0,))
    assert healed is not None and healed.harm is ClusterHarm.WINDOW_OF_LOSS
