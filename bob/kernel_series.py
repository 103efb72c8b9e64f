"""Kernels that differ in their package alone: Debian moves each of its series on by one, again and again."""

from __future__ import annotations

import re

_DEBIAN = re.compile(
    r"(?P<series>\d+\.\d+)\.\d+(-(0\.deb\d+\.)?\d+|\+(deb\d+(u\d+)?|bpo))-(?P<flavour>((cloud|rt)-)?amd64)"
)
"""A release as Debian's packages have it: 6.1.0-57-amd64, 6.12.48+deb13-amd64, 6.1.0-0.deb11.21-amd64."""


def series(release: str) -> str:
    """The series of Debian's kernels that ``release`` (as uname has it) is a package of, such as ``6.1 amd64``.

    Any other kernel is a series of its own: the same version may have been built of other code.
    """
    found = _DEBIAN.fullmatch(release)
    return f"{found['series']} {found['flavour']}" if found else release


def is_same_series(one: str, other: str) -> bool:
    """Whether the kernels of two releases differ in their package alone."""
    return series(one) == series(other)
