"""Whatever a crash has left of what a program did, bob explains it without breaking, and names no innocent call."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from bob.judge.looked import AnsweredTrees
from bob.judge.reliance import Reliances
from bob.observe.observation import Node, Presence
from bob.protocol.presence import presence
from bob.protocol.protocol import protocol
from tests.protocol.test_protocol import Performed, perform, steps


def mixed(rng: Random, done: Performed, knows_inodes: bool) -> dict[str, Node]:
    """Of each path what was there at some moment, or nothing; in files a block of what was there at another one."""
    paths = sorted({path for tree in done.trees for path in tree})
    found = {"/": done.trees[0]["/"]}
    for path in paths[1:]:
        tree, other = rng.choice(done.trees), rng.choice(done.trees)
        if path in tree and path.rpartition("/")[0] in ("", *found):
            node = tree[path]
            if path in other and rng.random() < 0.3 and node.kind == other[path].kind == "file":
                node = replace(node, content=node.content[:512] + other[path].content[512 : len(node.content)])
            found[path] = node if knows_inodes else replace(node, inode=0)
    return found


@settings(deadline=None, max_examples=150)
@given(st.lists(steps, min_size=1, max_size=10), st.integers(0, 2**32))
@example([("write", "/b", b"xy", "O_TRUNC", 0), ("unlink", "/b"), ("write", "/b", b"ab", "O_TRUNC", 0)], 1)
def test_no_tree_breaks_an_explanation_and_no_reason_contradicts_its_tree(
    script: list[tuple[object, ...]], seed: int
) -> None:
    """Some files are not followed, and of some runs bob knows no inodes."""
    rng = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        done = perform(Path(folder), script)
    knows_inodes = rng.random() < 0.5
    first, last = (
        {path: replace(node, inode=node.inode * knows_inodes) for path, node in done.trees[at].items()}
        for at in (0, -1)
    )
    effects = protocol(done.calls, str(done.root), first, last)
    for file in effects.files[1:]:
        file.followed = file.followed and rng.random() < 0.7
    trees = [mixed(rng, done, knows_inodes) for _ in range(6)]
    unmade = frozenset(range(rng.randint(0, 2 * len(done.calls)), len(done.calls)))
    window = AnsweredTrees(told=b"", accepted=[1, 2, 3, 4, 5], tree=trees.__getitem__)
    reliances = Reliances([window], done.calls, effects, unmade=lambda _place, _outcome: unmade)
    told = reliances.relied_on([(0, 0)])
    assert not reliances.explaining.notes
    [one] = told
    says = presence(effects, trees[0], unmade)
    assert all(says[call] is not Presence.FULL for call in one.explanation.missing)
    assert all(says[call] is not Presence.NONE for call in one.explanation.there)
