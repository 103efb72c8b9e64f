"""Where the files that bob ships are: beside the package (probes/, guest-images/, ...), in a wheel inside it."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def shipped(folder: str) -> Path:
    """The path of the shipped folder ``folder`` ("probes", "guest-images" or "reports/published")."""
    installed = _PACKAGE / "_data" / folder
    return installed if installed.is_dir() else _PACKAGE.parent / folder
