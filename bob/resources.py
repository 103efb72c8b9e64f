"""The files that bob ships, such as probes/ and guest-images/. They are beside the package in a checkout, and inside
the package if bob is installed as a wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def shipped(folder: str) -> Path:
    """Return the path of the shipped ``folder``, such as "probes", "guest-images" or "reports/published"."""
    installed = _PACKAGE / "_data" / folder
    return installed if installed.is_dir() else _PACKAGE.parent / folder
