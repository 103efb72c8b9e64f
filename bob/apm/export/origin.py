"""What a model was made from, for people: its runs, kernels, configuration, and how it was derived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_FEW = 4


def origin(source: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The ``source`` of a model as names and values; long lists, such as that of workloads, as their length."""
    found = []
    for key, value in source.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{name} {what}" for name, what in value.items() if what not in ("", 0))
        elif isinstance(value, Sequence) and not isinstance(value, str):
            value = ", ".join(map(str, value)) if len(value) <= _FEW else f"{len(value)} of them"
        if value not in (None, ""):
            found.append((key.replace("_", " "), str(value)))
    return found
