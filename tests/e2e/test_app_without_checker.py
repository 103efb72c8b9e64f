"""A program without a checker: what a crash leaves that is as at no moment of its run is asked, and replays."""

from __future__ import annotations

from pathlib import Path

import pytest

from bob.catalogue.request import ProbeRequest
from bob.claim.verdict import Verdict
from bob.cli.ci import exit_of
from bob.errors import Exit, UsageError
from bob.program.answer import Consequence
from bob.program.folder import of_commands
from bob.progress import Silent
from bob.run.programs import preflight, try_program
from bob.run.replay import replay
from bob.subject import configuration

pytestmark = [pytest.mark.vm, pytest.mark.long, pytest.mark.usefixtures("warm_guests")]
REQUEST = ProbeRequest(configuration("ext4"), budget=40)
OVERWRITES = (
    "head -c 8192 /dev/zero | tr '\\0' n | dd of=f bs=8192 conv=notrunc,fsync iflag=fullblock 2>/dev/null; echo saved"
)
REPLACES = "head -c 8192 /dev/zero | tr '\\0' n > t; sync t; mv t f; sync .; echo saved"
SETUP = "head -c 8192 /dev/zero | tr '\\0' o > f"


def test_what_is_neither_before_nor_after_is_asked_and_replays(tmp_path: Path) -> None:
    result, _path = try_program(of_commands(OVERWRITES, setup=SETUP), [REQUEST], tmp_path / "run", Silent())
    [subject] = result.subjects
    assert (subject.answer.verdict, exit_of([result])) == (Verdict.UNKNOWN, Exit.UNKNOWN_CELLS)
    ways = {way.consequence: way for way in subject.answer.ways}
    assert ways.keys() == {Consequence.BETWEEN} and subject.answer.is_question
    assert "/f has other contents" in ways[Consequence.BETWEEN].evidence
    assert "1 question" in (subject.answer.reason or "")
    [shown] = replay(
        [tmp_path / "run" / str(subject.answer.witness)], image=None, connect=None, times=1, progress=Silent()
    )
    assert shown.confirmed == 1


def test_a_program_that_goes_from_one_moment_to_the_next_is_asked_nothing_of_its_own_files(tmp_path: Path) -> None:
    """But of the file that it is to rename, which is there as long as it is written."""
    result, _path = try_program(of_commands(REPLACES, setup=SETUP), [REQUEST], tmp_path, Silent())
    [subject] = result.subjects
    assert all("/t " in way.evidence and "/f" not in way.evidence for way in subject.answer.ways), subject.answer.ways


def test_a_program_that_changes_nothing_between_its_outputs_holds(tmp_path: Path) -> None:
    result, _path = try_program(of_commands("mkdir d; sync .; echo made"), [REQUEST], tmp_path, Silent())
    assert result.subjects[0].answer.verdict is Verdict.HOLDS and exit_of([result]) is Exit.DONE


def test_calls_that_cannot_be_followed_need_a_checker() -> None:
    """A change by a call that is not traced."""
    with pytest.raises(UsageError, match="must follow the program's calls"):
        preflight(of_commands("mknod n c 1 3; echo hi; chattr +i f", setup="touch f"), [REQUEST], Silent())
