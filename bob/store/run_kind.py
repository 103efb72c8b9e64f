"""The kind of a run, by its run.json: which command made it, what it is about, and what can be done with it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from bob.errors import StoreError
from bob.store.files import read_document


class RunKind(StrEnum):
    """The command that made a run directory."""

    PROBE = "probe"
    MATRIX = "matrix"
    SEARCH = "search"
    TRY = "try"
    APP = "app"


_KINDS = {"columns": RunKind.MATRIX, "lots": RunKind.SEARCH, "expectations": RunKind.TRY, "program": RunKind.APP}


def kind_of(about: Mapping[str, Any]) -> RunKind:
    """Return the kind of the run with this run.json."""
    return next((kind for field, kind in _KINDS.items() if field in about), RunKind.PROBE)


def is_of_kind(path: Path, kind: RunKind) -> bool:
    """Return whether ``path`` is a run directory of this ``kind``."""
    return (path / "run.json").is_file() and kind_of(read_document(path / "run.json")) is kind


def subject_of(about: Mapping[str, Any]) -> str:
    """Return what a run is about, in words; nothing if its run.json, of another version, does not say it."""
    try:
        match kind_of(about):
            case RunKind.MATRIX:
                return f"{about.get('set') or about.get('name') or ''} ({len(about['columns'])} configurations)".strip()
            case RunKind.APP:
                return str(about["program"]["name"])
            case RunKind.TRY:
                return str(about["configuration"]["name"])
        return str(about["request"]["name"])
    except (LookupError, TypeError):
        return ""


def cannot_be_resumed(about: Mapping[str, Any]) -> bool:
    """Return whether a run is one of `bob app` or `bob try`, which begin anew."""
    return kind_of(about) in (RunKind.APP, RunKind.TRY)


def instead_of_resuming(path: Path) -> str:
    """Return what to do with the run directory ``path`` of a command that cannot go on with one."""
    quoted = shlex.quote(str(path))
    if (path / "result.json").exists():
        return f"bob show {quoted} shows what is finished, and the same command asks anew"
    return f"nothing of it is finished; the same command asks anew, and bob runs remove {quoted} removes it"


def no_probe(path: Path, about: Mapping[str, Any]) -> StoreError:
    """Return the error for the run directory ``path`` if it is not that of a probe of this version."""
    match kind_of(about):
        case RunKind.TRY:
            return StoreError(f"{path} is the run of a quick question, not of a probe", hint=instead_of_resuming(path))
        case RunKind.APP:
            return StoreError(f"{path} is the run of a program, not of a probe", hint=instead_of_resuming(path))
    return StoreError(f"{path} was made by another version of bob", hint="probe again")
