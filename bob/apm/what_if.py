"""Change a model: add clauses (promises), or take clauses away. The user writes a change as a sign and a pattern, such
as ``-ordered append any same-file``. The sign ``+`` adds clauses, and ``-`` takes clauses away. The pattern stands for
the names of the clauses (docs/models.md). A word of the pattern may be ``any``, contain the wildcard ``*``, or list
alternatives with ``|`` between them. Some common changes have names (:data:`NAMED`)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from bob.apm import clauses
from bob.apm.builtin import ATOMIC_CONTENTS, SAFE_FLUSH, SAFE_RENAME
from bob.apm.clauses import Clause
from bob.apm.model import ClauseFinding, ClauseStatus, Model
from bob.claim.property.vocabulary import Call, Unit, What
from bob.errors import UsageError, meant
from bob.workload.kinds import Relation

Clauses = frozenset[Clause]
SIGNS = {"+": True, "-": False}


@dataclass(frozen=True, slots=True)
class NamedChange:
    """A change of models that has a name. ``made`` gets the clauses that a model promises, and returns two sets: the
    clauses that the change adds, and the clauses that it takes away."""

    about: str
    made: Callable[[Clauses], tuple[Clauses, Clauses]]


@dataclass(frozen=True, slots=True)
class WhatIf:
    before: Model
    after: Model
    new: Clauses
    gone: Clauses

    @property
    def weaker(self) -> Clauses:
        """The clauses of the new model that replace stronger clauses of the old model. Such a clause still promises an
        order of two changes. But now a sync of the later change may persist it before the earlier change."""
        return frozenset(clause for clause in self.new if clauses.without_exception(clause) in self.gone)


def what_if(model: Model, said: Sequence[str], name: str) -> WhatIf:
    """Change ``model``, and return the old model and the new one. ``said`` has the changes as the user wrote them,
    which are made one after the other. ``name`` is the name of the new model. If a change takes a clause away, it also
    takes away the stronger clauses that imply this clause. Raises UsageError if a change is invalid, contradicts itself
    or changes nothing. Also raises UsageError if several other clauses together still imply a clause that a change
    takes away."""
    promised, reasons = set(model.promised), dict[Clause, str]()
    for words in said:
        gives, takes = edit(words, frozenset(promised))
        if not (gives - promised or takes & promised):
            does = "promises that already" if gives else "does not promise that"
            raise UsageError(f"{words!r} changes nothing: {model.name} {does}", hint=f"bob apm show {model.name}")
        taken = takes | {more for clause in takes & promised for more in _saying_more(clause)}
        then = set(clauses.closed((promised - taken - clauses.saying_less(takes)) | gives))
        if left := sorted(clause.name for clause in takes & then):
            hint = "other clauses imply it: take away one of them, too"
            raise UsageError(f"{words!r} leaves {left[0]!r} promised", hint=hint)
        reasons |= dict.fromkeys(then ^ promised, f"what if: {words}")
        promised = then
    after, before = frozenset(promised), model.promised
    if after == before:
        raise UsageError(f"together, these leave {model.name} as it was", hint=f"bob apm show {model.name}")
    findings = {finding.clause: finding for finding in model.findings}
    for clause in sorted(after ^ before, key=lambda one: one.name):
        findings[clause] = ClauseFinding(clause, ClauseStatus.ASSUMED, clause in after, reason=reasons[clause])
    source = {"what_if": model.name, "changes": list(said)}
    about = f"what if: {model.name}, but {'; '.join(said)}"
    changed = replace(model, name=name, about=about, findings=tuple(findings.values()), source=source)
    return WhatIf(model, changed, after - before, before - after)


def edit(said: str, promised: Clauses) -> tuple[Clauses, Clauses]:
    """Return the clauses that a change adds, and those that it takes away. ``said`` is the user's text for the change.
    ``promised`` has the clauses that the model promises before the change. Raises UsageError if the text is invalid."""
    words = said.split()
    sign = SIGNS.get(said.strip()[:1])
    text = " ".join(words) if sign is None else " ".join(words)[1:].strip()
    named = NAMED.get(text.casefold())
    if named is not None:
        gives, takes = named.made(promised)
        return (gives, takes) if sign is not False else (takes, gives)
    if sign is None:
        hint = meant(text.casefold(), NAMED, "named changes")
        raise UsageError(f"invalid change {said!r}; expected +CLAUSE, -CLAUSE or a named change", hint=hint)
    try:
        found = frozenset(clauses.matching(text))
    except ValueError as slip:
        close = get_close_matches(text, [*NAMED, *(clause.name for clause in clauses.every_written())], n=1)
        raise UsageError(str(slip), hint=f"did you mean {close[0]!r}?" if close else _FORMS) from None
    if sign:
        return found, frozenset()
    weaker = {clause for clause in promised if clauses.without_exception(clause) in found}
    return frozenset(), found | weaker


def _saying_more(clause: Clause) -> tuple[Clause, ...]:
    """Return the stronger clauses that must go if ``clause`` is taken away. For example, if the blocks of a change no
    longer persist as a whole, the change does not persist as a whole either."""
    if isinstance(clause, clauses.Whole) and clause.kind in clauses.DATA_KINDS and clause.unit is Unit.BLOCK:
        return (clauses.Whole(clause.kind, Unit.WHOLE),)
    return clauses.saying_more(clause)


def lines(clauses: Iterable[Clause]) -> list[str]:
    """Return a few patterns that together stand for the names of ``clauses`` (see the module). If clauses differ only
    in one word, one pattern has the different words as alternatives."""
    groups: dict[tuple[str, ...], list[tuple[frozenset[str], ...]]] = {}
    for name in sorted(clause.name for clause in clauses):
        form, *words = name.split()
        is_weaker = form == "ordered" and len(words) > _WORDS[form]
        key = (form, *words[_WORDS[form] :]) if is_weaker else (form,)
        groups.setdefault(key, []).append(tuple(frozenset({word}) for word in words[: _WORDS[form]]))
    found = []
    for (form, *end), boxes in groups.items():
        for place in reversed(range(_WORDS[form])):
            boxes = _merged(boxes, place)
        for box in boxes:
            said = (_one(words, _ALL[form][place]) for place, words in enumerate(box))
            found.append(" ".join([form, *said, *end]))
    return found


def _merged(boxes: list[tuple[frozenset[str], ...]], place: int) -> list[tuple[frozenset[str], ...]]:
    together: dict[tuple[frozenset[str], ...], set[str]] = {}
    for box in boxes:
        together.setdefault((*box[:place], *box[place + 1 :]), set()).update(box[place])
    return [(*rest[:place], frozenset(words), *rest[place:]) for rest, words in together.items()]


def _one(words: frozenset[str], every: Sequence[str]) -> str:
    return clauses.ANY if len(words) == len(every) > 1 else "|".join(word for word in every if word in words)


def _forms() -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for clause in clauses.every_written():
        form, *words = clause.name.split()
        places = found.setdefault(form, [[] for _ in words])
        for place, word in zip(places, words, strict=True):
            if word not in place:
                place.append(word)
    return found


_ALL = _forms()
_WORDS = {form: len(places) for form, places in _ALL.items()}
_FORMS = "for example +ordered append rename-over same-file, -durable fsync-file any, -whole append any"

_ELSEWHERE = (Relation.SAME_DIRECTORY, Relation.OTHER_DIRECTORY)
_OWN_SYNCS = (Call.FSYNC_FILE, Call.FDATASYNC_FILE, Call.FSYNC_DIRECTORY, Call.FDATASYNC_DIRECTORY, Call.MSYNC)


def _given(clauses: Iterable[Clause]) -> Callable[[Clauses], tuple[Clauses, Clauses]]:
    given = frozenset(clauses)
    return lambda _promised: (given, frozenset())


def _only_its_file(promised: Clauses) -> tuple[Clauses, Clauses]:
    """Return the clauses to add and to take away so that the sync of a file persists only changes of this file. Three
    kinds of clauses are taken away. Clauses of the first kind promise that the sync persists changes of other files,
    too. Clauses of the second kind promise that all sizes are in one journal. Clauses of the third kind promise an
    order between changes of two files. The clauses of the third kind are replaced by clauses with the exception that a
    sync may break the order."""
    durable = {clauses.Durable(call, what) for call in _OWN_SYNCS for what in What if what.startswith("other-")}
    orders = {replace(one, unless_synced=False) for one in promised if isinstance(one, clauses.Ordered)}
    orders = {one for one in orders if one.relation in _ELSEWHERE}
    journal = promised & {clauses.JOURNALED, clauses.SYNCED}
    return frozenset(replace(one, unless_synced=True) for one in orders), frozenset(durable | orders | journal)


NAMED: Mapping[str, NamedChange] = {
    "fsync persists only its file": NamedChange(
        "a sync of a file or directory overtakes other earlier changes, which keep their order among themselves "
        "(ext3-fast of OSDI'14, section 4.6)",
        _only_its_file,
    ),
    "safe rename": NamedChange("an append to a file is there before a later rename of it", _given(SAFE_RENAME)),
    "safe file flush": NamedChange("fsync of a file also keeps the name it was created with", _given(SAFE_FLUSH)),
    "atomic contents": NamedChange(
        "each 4 KiB block of a write is all there or not at all, with the size that shows it", _given(ATOMIC_CONTENTS)
    ),
    "atomic appends": NamedChange(
        "an append is all there or not at all, with the size that shows it",
        _given(clauses.matching("whole append any", "never append any")),
    ),
    "directory operations in order": NamedChange(
        "creations, moves and removals of names persist in program order",
        _given(clauses.orders(clauses.DIRECTORY_KINDS, clauses.DIRECTORY_KINDS)),
    ),
    "everything in order": NamedChange(
        "changes persist in program order", _given(clauses.matching("ordered any any any"))
    ),
}  # by plain words; a ``-`` before these swaps what the change adds and takes away
