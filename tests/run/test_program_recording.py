"""Which of the recorded calls are the program's own, and what it is that the kernel falls while they are recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from bob.agent.inside.world import WORLD
from bob.agent.loss import GuestLost, KernelFell, Loss, LossCause
from bob.catalogue.request import ProbeRequest
from bob.errors import Exit
from bob.program.folder import named
from bob.progress import Silent
from bob.run import pool
from bob.run import program_recording as module
from bob.run.program_recording import calls_of
from bob.store.run_directory import RunDirectory
from bob.subject import configuration


def chroot(path: str) -> str:
    escaped = "".join(f"\\x{byte:02x}" for byte in path.encode())
    return f'7 1700000000.000001 chroot("{escaped}") = 0\n'


def test_that_bob_goes_into_the_world_is_no_call_of_the_program_but_its_own_chroot_is() -> None:
    assert [call.name for call in calls_of(chroot(WORLD))] == []
    assert [call.name for call in calls_of(chroot(WORLD) + chroot("/root/x"))] == ["chroot"]


@pytest.mark.parametrize(
    ("loss", "code"),
    [
        (Loss(LossCause.PANICKED, "[ 3.0] kernel BUG at fs/ext4/inline.c:235!"), Exit.DIFFERENT),
        (Loss(LossCause.VANISHED, "[ 3.0] kernel BUG at fs/ext4/inline.c:235!"), Exit.GUEST),
    ],
)
def test_a_kernel_that_falls_while_a_program_is_recorded_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: Loss, code: Exit
) -> None:
    def lost(*_: object) -> None:
        raise GuestLost(loss, "no answer")

    monkeypatch.setattr(pool, "each_in_a_guest", lost)
    monkeypatch.setattr(pool, "ensure_world", lambda *_: None)
    run = RunDirectory.create(tmp_path / "run", {})
    program, request = named("replace-rename"), ProbeRequest(configuration("ext4"))
    with pytest.raises(GuestLost if code is Exit.GUEST else KernelFell) as raised:
        module.record_program_run(pool.ProgramGuests(None, None, Silent()), program, request, run)  # type: ignore[arg-type]
    assert raised.value.exit_code is code
    console = run.path / "console.txt"
    assert console.exists() is (code is Exit.DIFFERENT)
    if console.exists():
        assert console.read_text() == loss.console
        assert str(console) in str(raised.value.hint)
