"""Which of the recorded calls are the program's own."""

from bob.agent.inside.world import WORLD
from bob.run.program_recording import calls_of


def chroot(path: str) -> str:
    escaped = "".join(f"\\x{byte:02x}" for byte in path.encode())
    return f'7 1700000000.000001 chroot("{escaped}") = 0\n'


def test_that_bob_goes_into_the_world_is_no_call_of_the_program_but_its_own_chroot_is() -> None:
    assert [call.name for call in calls_of(chroot(WORLD))] == []
    assert [call.name for call in calls_of(chroot(WORLD) + chroot("/root/x"))] == ["chroot"]
