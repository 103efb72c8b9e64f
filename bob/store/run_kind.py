"""The folder of a run, and the kind of the run. bob finds out the kind from the fields in the run's run.json."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Self

from bob.answer.document import from_json, to_json
from bob.answer.result import Result
from bob.errors import StoreError
from bob.schema import LATER, is_later
from bob.store.files import read_document, rewrite_document, write_document
from bob.text import plural

SCHEMA = "bob.run/1"
"""The version of a run's files. It is in run.json, and holds for all files of the run that lack a schema of their own.
Older versions of bob wrote no schema."""


class RunKind(StrEnum):
    """The kinds of runs. A kind has the name of the command that begins such a run, for example `bob probe`."""

    PROBE = "probe"
    MATRIX = "matrix"
    SEARCH = "search"
    TRY = "try"
    APP = "app"


_KINDS = {"columns": RunKind.MATRIX, "lots": RunKind.SEARCH, "expectations": RunKind.TRY, "program": RunKind.APP}


def kind_of(about: Mapping[str, Any]) -> RunKind:
    return next((kind for field, kind in _KINDS.items() if field in about), RunKind.PROBE)


def subject_of(about: Mapping[str, Any]) -> str:
    """Return the name of the thing that a run tests: a configuration, a program, or a set of configurations. ``about``
    is the content of the run's run.json. Return an empty string if ``about`` lacks this name, since another version of
    bob may have written run.json."""
    try:
        match kind_of(about):
            case RunKind.MATRIX:
                number = plural(len(about["columns"]), "configuration")
                return f"{about.get('set') or about.get('name') or ''} ({number})".strip()
            case RunKind.APP:
                return str(about["program"]["name"])
            case RunKind.TRY:
                return str(about["configuration"]["name"])
        return str(about["request"]["name"])
    except (LookupError, TypeError):
        return ""


def cannot_be_resumed(about: Mapping[str, Any]) -> bool:
    """Return whether a run is of `bob try`. ``about`` is the content of its run.json. That command always starts from
    the beginning."""
    return kind_of(about) is RunKind.TRY


def continued_by(path: Path, about: Mapping[str, Any]) -> str:
    """Return the hint for the user who has ``path``, a stopped run of `bob app` or `bob cluster`."""
    verb = "cluster" if is_cluster(about) else "app"
    return f"bob {verb} --resume {shlex.quote(str(path))} continues it"


def is_cluster(about: Mapping[str, Any]) -> bool:
    """Return whether a run is of `bob cluster`, whose program has several nodes."""
    return kind_of(about) is RunKind.APP and bool(about["program"].get("nodes"))


def instead_of_resuming(path: Path) -> str:
    """Return the hint for the user who asked to resume ``path``, a run directory that cannot be resumed."""
    quoted = shlex.quote(str(path))
    if (path / "result.json").exists():
        return f"bob show {quoted} shows what is finished; the same command starts again"
    return f"nothing in it is finished; bob runs remove {quoted} removes it, and the same command starts again"


def no_probe(path: Path, about: Mapping[str, Any]) -> StoreError:
    kind = kind_of(about)
    if kind is RunKind.TRY:
        return StoreError(f"{path} is a run of bob try, not of bob probe", hint=instead_of_resuming(path))
    if kind is RunKind.APP:
        verb = "cluster" if is_cluster(about) else "app"
        return StoreError(f"{path} is a run of bob {verb}, not of bob probe", hint=continued_by(path, about))
    return StoreError(f"another version of bob wrote {path}", hint="probe again")


class RunFolder:
    """A folder with a run.json. As soon as the run has a result, the folder also has a result.json."""

    kind: ClassVar[RunKind]

    def __init__(self, path: Path) -> None:
        self.path = path
        if not self.is_one(path):
            raise StoreError(f"{path} is not a run of bob {self.kind}", hint=f"bob {self.kind} --out DIR makes one")

    @classmethod
    def is_one(cls, path: Path) -> bool:
        return (path / "run.json").is_file() and kind_of(read_document(path / "run.json")) is cls.kind

    @classmethod
    def made(cls, path: Path, about: Mapping[str, Any], folders: Sequence[str] = ()) -> Self:
        """Make the run directory ``path`` with run.json (``about``) and the empty subfolders ``folders``. Raise
        StoreError if the directory exists and is not empty."""
        with _empty_folder(path):
            for folder in folders:
                (path / folder).mkdir()
            write_document(path / "run.json", {"schema": SCHEMA, **about})
        return cls(path)

    def about(self) -> dict[str, Any]:
        """Return the content of run.json. Raise StoreError if bob cannot read it, or a later bob wrote it."""
        about = read_document(self.path / "run.json")
        if is_later(found := about.get("schema", SCHEMA), SCHEMA):
            raise StoreError(f"{self.path} has schema {found!r}, and this bob reads {SCHEMA!r}", hint=LATER)
        return about

    def note(self, **more: Any) -> None:
        rewrite_document(self.path / "run.json", {**self.about(), **more})

    def reopen(self) -> None:
        """Mark the run as not finished, because a workload was lost."""
        about = self.about()
        if about.pop("finished", None) is not None:
            rewrite_document(self.path / "run.json", about)

    def save_result(self, result: Result) -> None:
        write_document(self.path / "result.json", to_json(result))

    def result(self) -> Result:
        return from_json(read_document(self.path / "result.json"))


@contextmanager
def _empty_folder(path: Path) -> Iterator[None]:
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise StoreError(f"{path} is not empty", hint="name another directory with --out")
        yield
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", hint="name another directory with --out") from None
