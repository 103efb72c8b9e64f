"""The series of a Debian kernel: all its packages of one version and flavour, such as 6.1.0-56-amd64 and
6.1.0-57-amd64."""

import re

_DEBIAN = re.compile(
    r"(?P<series>\d+\.\d+)\.\d+(-(0\.deb\d+\.)?\d+|\+(deb\d+(u\d+)?|bpo))-(?P<flavour>((cloud|rt)-)?amd64)"
)  # 6.1.0-57-amd64, 6.12.48+deb13-amd64, 6.1.0-0.deb11.21-amd64


def series(release: str) -> str:
    """Return the series, such as ``6.1 amd64``, of the Debian kernel with this ``release`` (of uname). Any other kernel
    is a series of its own, since two kernels of the same version may differ in their code."""
    found = _DEBIAN.fullmatch(release)
    return f"{found['series']} {found['flavour']}" if found else release


def is_same_series(one: str, other: str) -> bool:
    """Return whether the kernels with the releases ``one`` and ``other`` (of uname) differ only in their Debian
    package."""
    return series(one) == series(other)
