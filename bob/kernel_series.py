"""Kernels of one series and flavour of Debian, such as 6.1.0-56-amd64 and 6.1.0-57-amd64."""

import re

_DEBIAN = re.compile(
    r"(?P<series>\d+\.\d+)\.\d+(-(0\.deb\d+\.)?\d+|\+(deb\d+(u\d+)?|bpo))-(?P<flavour>((cloud|rt)-)?amd64)"
)  # 6.1.0-57-amd64, 6.12.48+deb13-amd64, 6.1.0-0.deb11.21-amd64


def series(release: str) -> str:
    """Return the series of a Debian kernel by its ``release`` (of uname), such as ``6.1 amd64``. Any other kernel is a
    series of its own: two of one version may differ in their code."""
    found = _DEBIAN.fullmatch(release)
    return f"{found['series']} {found['flavour']}" if found else release


def is_same_series(one: str, other: str) -> bool:
    """Return whether the kernels of two releases differ in their package alone."""
    return series(one) == series(other)
