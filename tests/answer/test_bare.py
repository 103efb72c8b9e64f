"""What layers make worse, or better, stands in notes of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from bob.answer.answer import Answer, ClaimWords, Way
from bob.answer.bare import beside_bare
from bob.answer.result import UNMOUNTABLE, SubjectResult, beside
from bob.claim.verdict import Verdict
from bob.crash.coverage import NOTHING

H, F, U = Verdict.HOLDS, Verdict.FAILS, Verdict.UNKNOWN


def subject(stack: str, verdicts: Mapping[str, Verdict], *, mounts: bool = True, options: str = "") -> SubjectResult:
    answers = tuple(Answer(ClaimWords("property", name), verdict, NOTHING) for name, verdict in verdicts.items())
    refused = () if mounts else (beside(UNMOUNTABLE, UNMOUNTABLE, [Way("no superblock", 3)]),)
    name = f"ext4 {stack}".strip()
    return SubjectResult(name, "ext4", mount_options=options, answers=answers, beside=refused, stack=stack)


BARE = subject("", {"a": H, "b": F, "c": H, "d": U})


def refusing(subject: SubjectResult, *errors: str) -> SubjectResult:
    return replace(subject, beside=(beside(UNMOUNTABLE, UNMOUNTABLE, [Way(error, 3) for error in errors]),))


def test_states_that_do_not_mount_for_another_reason_are_not_the_same() -> None:
    torn = "Structure needs cleaning: JBD2: journal transaction 5 on loop-8 is corrupt."
    bare = refusing(BARE, torn)
    like, unlike = (
        refusing(subject("on x", {"a": H}), error)
        for error in (torn.replace("5", "6"), "Invalid argument: EXT4-fs (loop): VFS: Can't find ext4 filesystem")
    )
    assert [one.notes for one in beside_bare([like, unlike, bare])[:2]] == snapshot(
        [
            ("the same as ext4 without layers in 1 of 1 rows",),
            (
                "some crash states do not mount for another reason than on ext4 without layers: Invalid argument",
                "the same as ext4 without layers in 1 of 1 rows",
            ),
        ]
    )


@pytest.mark.parametrize(
    ("stacked", "notes"),
    [
        (
            subject("on x", {"a": F, "b": H, "c": F, "d": F, "untouched": F}),
            snapshot(("worse than ext4 without layers: a, c", "better than ext4 without layers: b")),
        ),
        (
            subject("on x", {"a": H, "b": F, "c": U, "d": H, "untouched": H}),
            snapshot(("the same as ext4 without layers in 2 of 5 rows",)),
        ),
        (
            subject("on x", {"a": H, "b": F}, mounts=False),
            snapshot(("worse than ext4 without layers: some crash states do not mount",)),
        ),
        (subject("on x", {"a": F}, options="data=journal"), ()),
    ],
)
def test_rows_are_compared_with_those_of_one_disk(stacked: SubjectResult, notes: tuple[str, ...]) -> None:
    first, second = beside_bare([stacked, BARE])
    assert second == BARE
    assert first.notes == notes
