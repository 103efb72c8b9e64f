"""Write a model as a class for ALICE's replayer (github.com/madthanu/alice), from the template ``alice.py.j2``, and
list what that class cannot express. A model is a set of clauses (promises about crash states)."""

from collections.abc import Iterable, Sequence
from textwrap import fill

from bob.apm import clauses
from bob.apm.clauses import Clause
from bob.apm.export.prose import origin
from bob.apm.model import Model
from bob.claim.property.vocabulary import Call, What
from bob.report.templating import environment
from bob.workload.kinds import MODELLED_KINDS, ChangeKind

_WIDTH = 116
_NOT_RECORDED = (ChangeKind.SETXATTR, ChangeKind.ZERO)
_KINDS = len(MODELLED_KINDS) - len(_NOT_RECORDED)  # kinds that ALICE records; tables say "any" for all of them
_BY_ALICE = clauses.matching(
    "durable fsync-file|fdatasync-file data|size", "durable fsync-directory|fdatasync-directory entries"
)  # ALICE's disk operation ``sync`` puts this before everything that follows, whatever a class says

_ALWAYS = (
    "ALICE does not record attributes, modes, owners, or holes that fallocate makes. It stops at a program that calls "
    "syncfs or sync_file_range. It cannot replay the rename of a directory. It takes a symbolic link for a file or a "
    "directory.",
    "ALICE does not distinguish O_SYNC from O_DSYNC. A write with either has what the model promises for both.",
    "When ALICE replays a write, the file grows to the end of the write. So a write here needs that size, in addition "
    "to what the model says. In bob's trees, too, a write does not show without its size, with one exception: a file "
    "that is truncated within a block and grows again. There ALICE shows zeros even if the model allows the old data, "
    "and it shows new data only with its size.",
    "The pieces of a write are those of ALICE's splits, by count or aligned, but never smaller than a sector. bob's "
    "own pieces are those of ('aligned', 512). A file grows to the ends of 4 KiB blocks, and to its last size. If "
    "several calls wrote parts of a piece, it still counts as one.",
    "If data is missing but the size is there, the size alone leaves zeros. If the model allows stale contents, "
    "garbage is a separate write. The gap before a write past the end of a file shows only zeros.",
)


def alice_module(model: Model) -> str:
    """Return the model as the text of a Python file (2.7 and 3, ASCII). It has the class ``FileSystem``, and does not
    import bob."""
    promised = model.promised
    orders = promised if clauses.OWN_FIRST in promised else clauses.kept_by_logs(promised)
    template = environment().get_template("alice.py.j2")
    return template.render(
        heading=_safe(f"The persistence model {model.name}."),
        about=fill(_safe(model.about), _WIDTH),
        origin=[_item(f"{key}: {value}") for key, value in origin(model.source)] or ["an unknown origin"],
        limits=[_item(sentence) for sentence in not_sayable(model)],
        name=ascii(model.name),
        whole=_table(promised, clauses.Whole, ("kind",), "unit"),
        never=_table(promised, clauses.Never, ("kind",), "fill"),
        durable=_table(promised, clauses.Durable, ("call",), "what"),
        ordered=_table(orders, clauses.Ordered, ("relation", "before"), "after"),
    )


def not_sayable(model: Model) -> list[str]:
    """Return, as sentences, what an ALICE class cannot express of this model."""
    promised, found = model.promised, []
    if weaker := [clause for clause in _BY_ALICE if clause not in promised]:
        found.append(
            "ALICE's own «sync» orders what an fsync covers before everything that follows. A model that promises "
            f"less cannot use it. This model promises less: it lacks {_named(weaker)}. So this file turns the return "
            "of an fsync into another operation (a stdout without text), which by itself orders nothing. An explorer "
            "that inserts ALICE's own syncs checks a stronger model than this one."
        )
    else:
        found.append(
            "ALICE's own «sync» orders what an fsync covers before everything that follows. A model that promises "
            "less cannot use it. This model promises that much. Still, this file turns the return of an fsync into "
            "another operation (a stdout without text), so that only the model's clauses order operations."
        )
    if missing := [
        part
        for part in clauses.TreePart
        if clauses.Intact(part) not in promised and part not in (clauses.TreePart.ATTRIBUTES, clauses.TreePart.KEPT)
    ]:
        found.append(
            f"The model allows a crash to leave {' or '.join(missing)} that no operation made. ALICE never makes such "
            "states, so it checks a stronger model."
        )
    if clauses.OWN_FIRST not in promised and any(
        isinstance(clause, clauses.Ordered) and clause.is_of_a_name for clause in promised
    ):
        found.append(
            "An order of changes of one file that ends with its name does not hold if the file was synced before. This "
            "file leaves out such orders, so ALICE checks a weaker model."
        )
    if any(isinstance(clause, clauses.Ordered) and clause.unless_synced for clause in promised):
        found.append(
            "The model has orders that a sync may overtake. This file leaves them out, so ALICE checks a weaker model."
        )
    if odd := [
        what
        for what in clauses.WHATS
        if (clauses.Durable(Call.O_SYNC, what) in promised) != (clauses.Durable(Call.O_DSYNC, what) in promised)
    ]:
        found.append(
            f"O_SYNC and O_DSYNC differ in this model ({', '.join(odd)}). Here each promises only what both promise."
        )
    if unshown := [fill for fill in clauses.Fill if clauses.Never(ChangeKind.OVERWRITE, fill) not in promised]:
        found.append(
            f"The model allows {' and '.join(unshown)} where an overwrite's data belongs. This file does not make them."
        )
    unsaid = promised - _said(promised)
    if lesser := [clause for clause in clauses.every_written() if clause in unsaid]:
        found.append(
            "This file says nothing about parts of an append (its size among them), about the blocks that a truncate "
            "frees, or about changes that no call asks for alone. So it allows more than the model, which promises "
            f"{_named(lesser)}."
        )
    return [*found, *_ALWAYS]


def _is_lesser(clause: Clause) -> bool:
    return clause in (*clauses.IN_TURN, clauses.JOURNALED, clauses.SYNCED) or (
        not isinstance(clause, clauses.Intact) and bool(clauses.saying_more(clause))
    )


def _said(promised: frozenset[Clause]) -> frozenset[Clause]:
    return clauses.closed(frozenset(clause for clause in promised if not _is_lesser(clause)))


def _table(promised: frozenset[Clause], form: type[Clause], keys: Sequence[str], value: str) -> str:
    """Return a table of the promised clauses that belong to the class ``form``, as text. A line stands for clauses that
    differ only in the field ``value``. It has the words of the fields ``keys``, a colon, and then the words of the
    field ``value``, such as "rename: whole"."""
    found: dict[str, list[str]] = {}
    for clause in clauses.every_clause():
        if isinstance(clause, form) and clause in promised and not _is_unknown(clause):
            found.setdefault(" ".join(getattr(clause, key) for key in keys), []).append(getattr(clause, value))
    return "\n".join(f"{key}: {'any' if len(words) == _KINDS else ' '.join(words)}" for key, words in found.items())


def _is_unknown(clause: Clause) -> bool:
    if _is_lesser(clause):
        return True
    match clause:
        case clauses.Ordered(before, after):
            return before in _NOT_RECORDED or after in _NOT_RECORDED
        case clauses.Whole(kind):
            return kind in _NOT_RECORDED
        case clauses.Durable(_call, what):
            return what in (What.ATTRIBUTES, What.OTHER_ATTRIBUTES)
    return False


def _named(clauses: Iterable[Clause]) -> str:
    return ", ".join(f"«{clause.name}»" for clause in clauses)


def _item(sentence: str) -> str:
    return fill(_safe(sentence), _WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def _safe(text: str) -> str:
    plain = text.translate({ord("«"): "'", ord("»"): "'", ord("’"): "'"})
    return plain.replace("\\", "\\\\").replace('"', "'").encode("ascii", "backslashreplace").decode().strip()
