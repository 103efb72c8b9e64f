"""What is told of packages that cannot be installed, by what apt said of them."""

from __future__ import annotations

import pytest

from bob.image.world import mistake_in

CONFLICT = """\
Some packages could not be installed. This may mean that you have
requested an impossible situation or if you are using the unstable
distribution that some required packages have not yet been created
or been moved out of Incoming.
The following information may help to resolve the situation:

The following packages have unmet dependencies:
 exim4-config : Conflicts: postfix but 3.7.11-0+deb12u1 is to be installed
 exim4-daemon-light : Conflicts: mail-transport-agent
 postfix : Conflicts: mail-transport-agent
E: Unable to correct problems, you have held broken packages.
E: setup failed: E: apt-get --yes install exim4-daemon-light postfix python3 failed
E: mmdebstrap failed to run
"""
"""Of apt 2.6, which was asked for postfix and exim4-daemon-light."""
SEVERAL = CONFLICT.replace(
    " postfix : ", "             Depends: libc6 (>= 99) but 2.36-9 is to be installed\n other : \n postfix : "
)


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (CONFLICT, ["exim4-config: Conflicts: postfix but", "exim4-daemon-light:", "postfix: Conflicts: mail-tran"]),
        (SEVERAL, ["Depends: libc6", "and 1 more"]),
        ("E: Unable to locate package no-such\n", ["'no-such'"]),
        ("E: Package 'gone' has no installation candidate\n", ["'gone'"]),
    ],
)
def test_what_is_wrong_with_packages_is_in_the_message(said: str, named: list[str]) -> None:
    mistake = mistake_in(f"I: installing...\n{said}I: removing tempdir\n", "bookworm")
    assert mistake is not None and "bookworm" in mistake.message and "app.toml" in (mistake.hint or "")
    assert all(name in mistake.message for name in named)
    assert "\n" not in mistake.message


@pytest.mark.parametrize("said", ["", "E: Failed to fetch http://192.0.2.1/x  Connection refused\n"])
def test_where_something_else_is_wrong_packages_are_not_accused(said: str) -> None:
    assert mistake_in(said, "bookworm") is None
