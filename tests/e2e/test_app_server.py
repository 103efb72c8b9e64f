"""A server that is crashed while a client works against it over loopback (docs/apps.md): Redis keeps what it has
acknowledged if it syncs before it answers, and the files that it has not synced at each answer are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from bob.catalogue.request import ProbeRequest
from bob.claim.verdict import Verdict
from bob.program.answer import Consequence
from bob.program.folder import named
from bob.progress import Silent
from bob.run.programs import try_program
from bob.subject import configuration

pytestmark = [pytest.mark.vm, pytest.mark.long, pytest.mark.usefixtures("warm_guests")]
UNSYNCED = "changed, but not synced, when the program wrote each of its 4 outputs: /appendonlydir/"


@pytest.mark.parametrize("name", ["redis", "redis-everysec"])
def test_a_server_keeps_what_it_acknowledged_where_it_syncs_before_it_answers(tmp_path: Path, name: str) -> None:
    result, _path = try_program(
        named(name), [ProbeRequest(configuration("ext4", device=64 * 2**20), budget=12)], tmp_path / "run", Silent()
    )
    [subject] = result.subjects
    is_late = name == "redis-everysec"
    assert subject.answer.verdict is (Verdict.FAILS if is_late else Verdict.HOLDS), subject.answer
    assert {way.consequence for way in subject.answer.ways} == ({Consequence.LOST} if is_late else set())
    assert any(note.startswith(UNSYNCED) for note in subject.notes) == is_late, subject.notes
