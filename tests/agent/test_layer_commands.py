"""A layer of the user's own may have any words: whatever is wrong with a command, the user gets one line that names it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.agent.inside.documents import LayerDocument
from bob.agent.inside.frames import Denial
from bob.agent.inside.layer_commands import StartedLayer

NOWHERE = "/nowhere/disk"


def started(*commands: list[str], device: str = "") -> StartedLayer:
    return StartedLayer(0, LayerDocument("mine", [0], 8, list(commands), [], [], device, [], [], "", []), [NOWHERE])


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["zero", "FOO", "8"], "zero FOO 8: No such file or directory"),
        (["zero", "DISK0", "many"], "zero DISK0 many: invalid literal for int"),
        (["zero", "DISK0", "8", "9"], "zero DISK0 8 9: too many values to unpack"),
        (["message", "DISK0", "none", "x"], "message DISK0 none x: invalid literal for int"),
        (["message", "DISK0", "0", "x"], "message DISK0 0 x: No such file or directory"),
        (["set", "DISK0", "queue/x", "1", "2"], "set DISK0 queue/x 1 2: too many values to unpack"),
        (["expect", "DISK0", "queue/x", "1", "2"], "expect DISK0 queue/x 1 2: too many values to unpack"),
        (["md-create", "level=1", "data=8", "missing"], "md-create level=1 data=8 missing: "),
        (
            ["md-create", "level=1", "data=8", "chunk=x", "DISK0"],
            "md-create level=1 data=8 chunk=x DISK0: invalid literal",
        ),
        (["md-create", "level=1", "data=8", "DISK0"], "md-create level=1 data=8 DISK0: No such file or directory"),
        (["dm", "TOP", "0", "9" * 30, "linear", "DISK0", "0"], f"dm TOP 0 {'9' * 30} linear DISK0 0: "),
        (["true", "\0"], "true \\x00: embedded null byte"),
        (["/etc/passwd"], "/etc/passwd: Permission denied"),
    ],
)
def test_what_is_wrong_with_a_command_is_one_line(command: list[str], words: str) -> None:
    with pytest.raises(Denial) as caught:
        started(command, device="/dev/null").start()
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


def test_a_device_that_is_not_a_disk_is_named() -> None:
    for device in ("/dev/null", "/etc/passwd"):
        with pytest.raises(Denial, match=f"{device} is not a block device"):
            started(["true"], device=device).start()


WORDS = st.one_of(
    st.sampled_from(["DISK0", "missing", "-1", "8", "level=1", "data=8", "chunk=0", ";"]), st.text(max_size=5)
)


@given(st.sampled_from(["zero", "set", "message", "md-create", "remove"]), st.lists(WORDS, max_size=5))
def test_any_words_are_refused_and_break_nothing(verb: str, words: list[str]) -> None:
    with pytest.raises(Denial):
        started([verb, *words]).start()
