"""Write result documents (``bob.result/2``), and read these and older ones. A *subject* is a configuration of a file
system, or a model. A *recording* is one workload with the disk writes that bob recorded. A document lists each
recording of a subject once, in ``recordings``, with its crash states. An *answer* is a verdict on one claim (what each
crash state should satisfy). Answers refer to a recording by its index."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from typing import Any

from bob.agent.loss import Loss
from bob.answer import older
from bob.answer.answer import Answer, ByRecording
from bob.answer.result import SCHEMA, Result, SubjectResult
from bob.claim.verdict import Verdict
from bob.counts import Count
from bob.crash.coverage import States
from bob.errors import MalformedError, UsageError
from bob.fields import MISSHAPEN, said
from bob.observe.unknown_torn import TornCause
from bob.schema import LATER, adapt, decode, encode, is_later

SEVERAL = "bob.results/2"  # a list of results, as of several programs
_SEVERAL_PROGRAMS = "bob.apps/1"
_OLDER: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "bob.result/1": older.of_table,
    "bob.app/1": older.of_program,
    "bob.try/1": older.of_question,
}


@dataclass(frozen=True, slots=True)
class RecordingDocument:
    """A recording of a subject, as in a result document: the recorded workload, how it ends (``finish``), and its crash
    states. Each field means the same as in :class:`ByRecording`."""

    name: str
    finish: str
    states: States
    is_recorded: bool = True
    fall: Loss | None = None


@dataclass(frozen=True, slots=True)
class ByRecordingDocument:
    """The verdict that the crash states of one recording give on a claim. ``recording`` is the index of this recording
    in the document. The other fields mean the same as in :class:`ByRecording`."""

    recording: int
    verdict: Verdict
    violations: Count = 0
    reason: str | None = None
    needs_no_crash: bool = False
    unknown_torn: TornCause | None = None


def to_json(result: Result) -> dict[str, Any]:
    document = _lean(replace(result, subjects=()))
    return {"schema": SCHEMA, **document, "subjects": [_to_json(subject) for subject in result.subjects]}


def from_json(document: Any) -> Result:
    """Return the result in a document of this or an older schema. Raises MalformedError for anything else."""
    schema = document.get("schema") if isinstance(document, Mapping) else None
    reader = _OLDER.get(schema) if isinstance(schema, str) else None
    if schema != SCHEMA and reader is None:
        hint = LATER if is_later(schema, SCHEMA) else "is it a result document?"
        raise MalformedError(f"schema {schema!r} is not {SCHEMA!r}", hint=hint)
    try:
        today = document if reader is None else {"schema": SCHEMA, **reader(document)}
        subjects = tuple(map(_from_json, today["subjects"]))
        result = replace(decode(Result, {**today, "subjects": ()}, lean=True), subjects=subjects)
        _ = result.model  # raises UsageError for a device model that this bob does not know
    except UsageError as error:
        raise MalformedError(f"the result document is damaged: {error.message}", hint=error.hint) from None
    except MISSHAPEN as error:
        raise MalformedError(f"the result document is damaged: {said(error)}") from None
    return result


def results_in(document: Mapping[str, Any]) -> list[Result]:
    """Return the results in a document, which may hold one result or several. Raises MalformedError for anything
    else."""
    schema = document.get("schema")
    if schema not in (SEVERAL, _SEVERAL_PROGRAMS):
        return [from_json(document)]
    several = document.get("results" if schema == SEVERAL else "programs")
    if not isinstance(several, list | tuple):
        raise MalformedError("the result document is damaged: it lacks a list of results")
    return [from_json(one) for one in several]


def _to_json(subject: SubjectResult) -> dict[str, Any]:
    numbers: dict[RecordingDocument, int] = {}
    answers = []
    for answer in subject.answers:
        each = [(numbers.setdefault(adapt(RecordingDocument, one), len(numbers)), one) for one in answer.recordings]
        shown = [_lean(adapt(ByRecordingDocument, one, recording=number)) for number, one in each]
        answers.append({**_lean(replace(answer, recordings=())), "recordings": shown})
    document = _lean(replace(subject, answers=()))
    return {**document, "answers": answers, "recordings": [_lean(one) for one in numbers]}


def _from_json(document: Mapping[str, Any]) -> SubjectResult:
    recordings = [decode(RecordingDocument, one, lean=True) for one in document.get("recordings", ())]

    def by_recording(plain: Any) -> ByRecording:
        one = decode(ByRecordingDocument, plain, lean=True)
        if not 0 <= one.recording < len(recordings):
            raise ValueError(f"recording {one.recording} is out of range")
        recording = recordings[one.recording]
        return adapt(ByRecording, one, **{known.name: getattr(recording, known.name) for known in fields(recording)})

    answers = []
    for plain in document.get("answers", ()):
        each = tuple(map(by_recording, plain.get("recordings", ())))
        answers.append(replace(decode(Answer, {**plain, "recordings": ()}, lean=True), recordings=each))
    return replace(decode(SubjectResult, {**document, "answers": ()}, lean=True), answers=tuple(answers))


def _lean(value: Any) -> dict[str, Any]:
    """Return ``value`` as plain JSON, without the fields that have their default value."""
    document: dict[str, Any] = _without_defaults(value, encode(value))
    return document


def _without_defaults(value: Any, plain: Any) -> Any:
    if is_dataclass(value):
        told = ((one.name, getattr(value, one.name)) for one in fields(value) if not _is_default(one, value))
        return {name: _without_defaults(inner, plain[name]) for name, inner in told}
    if isinstance(value, tuple):
        return [_without_defaults(inner, one) for inner, one in zip(value, plain, strict=True)]
    return plain


def _is_default(known: Field[Any], value: Any) -> bool:
    inner = getattr(value, known.name)
    return bool(inner == (known.default_factory() if known.default_factory is not MISSING else known.default))
