"""The files that bob ships: beside the package (probes/, guest-images/, ...), or inside it in a wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def shipped(folder: str) -> Path:
    """Return the path of a shipped folder: "probes", "guest-images" or "reports/published"."""
    installed = _PACKAGE / "_data" / folder
    return installed if installed.is_dir() else _PACKAGE.parent / folder
