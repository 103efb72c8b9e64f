"""The update protocol of a program as a diagram (OSDI'14, Figure 4). It shows the program's steps (calls and outputs),
the order that its syncs enforce, and its needs (what it relies on). Each row of the diagram shows one step or several
similar steps, such as the same step in all rounds of a loop. A step that a need is about has a row of its own."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum

from msgspec import structs

from bob.program.stack import caller
from bob.program.strace import SystemCall
from bob.protocol.contrast import Explanation, Reliance
from bob.protocol.effects import Deed, Effects
from bob.schema import Document, field, older
from bob.text import printable
from bob.workload import operations as ops

LONGEST_ROUND = 12  # steps
FEWEST_ROUNDS = 3
MOST_ROWS = 120  # in a picture; rows in the middle are only counted, unless a need is about them
MOST_NEEDS, MOST_ENDS = 8, 3  # needs in a picture; steps at either end of one need
ROOT = "/"


class StepKind(StrEnum):
    CHANGE = "change"
    SYNC = "sync"
    TOLD = "told"


class DiagramStep(Document, frozen=True):
    """A step of a program: one of its system calls. ``number`` is the index of this call among all recorded calls.
    ``verb``, ``path`` and ``more`` describe the call (such as "append", "/f", "512 bytes at 0"). ``told`` is the output
    that the call wrote, one character for each byte.

    ``program`` is the name of the program that made the call, and ``function`` the function in it (empty: unknown).
    ``process`` numbers the processes from 1, in the order of their first steps. If the step is a sync, ``covers`` has
    the numbers of all steps that this sync makes durable and that no earlier sync made durable."""

    number: int
    kind: StepKind
    verb: str
    path: str = ""
    more: str = ""
    told: str = ""
    program: str = ""
    process: int = field(default_factory=older(1))
    function: str = ""
    covers: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        more = repr(self.told.strip()) if self.kind is StepKind.TOLD else self.more
        return " ".join(word for word in (self.verb, more) if word)


@dataclass(frozen=True, slots=True)
class Protocol:
    configuration: str
    steps: tuple[DiagramStep, ...]


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a program relies on. ``sentence`` says it in words. The steps with the numbers ``first`` must
    persist before those with the numbers ``then``. If ``then`` is empty, the steps ``first`` must persist together. If
    ``is_durable``, ``then`` is a step that writes an output, and the steps ``first`` must be durable before this output
    is written."""

    sentence: str
    first: tuple[int, ...]
    then: tuple[int, ...] = ()
    is_durable: bool = False


@dataclass(frozen=True, slots=True)
class DiagramRow:
    """One row of a diagram, which shows one or several similar ``steps``. Either the steps follow each other, or they
    are the same step in each round of a loop; ``loop`` is the number of that loop. ``is_gap`` says that the row stands
    for many rows that are left out."""

    steps: tuple[DiagramStep, ...]
    loop: int | None = None
    is_gap: bool = False

    @property
    def first(self) -> DiagramStep:
        return self.steps[0]


@dataclass(frozen=True, slots=True)
class Diagram:
    """A diagram of a program's steps. ``rows`` are in program order. ``needs`` are what the program relies on. In these
    ``needs``, the numbers are indexes of rows, not numbers of steps. ``orders`` has an entry for each sync: (first row,
    last row, row of the sync). It says that the sync makes the rows from the first to the last durable. ``left_out`` is
    the number of needs that are not drawn."""

    rows: tuple[DiagramRow, ...]
    needs: tuple[Need, ...]
    orders: tuple[tuple[int, int, int], ...]
    left_out: int

    @property
    def modules(self) -> list[tuple[int, int]]:
        """Groups of adjacent rows whose steps are about one file, and are made by one process. Each group is (index of
        its first row, index after its last row). Rows with outputs, and gaps, are left out."""
        found: list[tuple[int, int]] = []
        for place, row in enumerate(self.rows):
            if row.first.kind is StepKind.TOLD or row.is_gap:
                continue
            if found and found[-1][1] == place and _module(self.rows[place - 1]) == _module(row):
                found[-1] = found[-1][0], place + 1
            else:
                found.append((place, place + 1))
        return found


def steps_of(calls: Sequence[SystemCall], effects: Effects, tellings: Mapping[int, bytes]) -> tuple[DiagramStep, ...]:
    """Return the steps of a program: its changes and syncs, and its outputs. ``effects`` describes what the ``calls``
    do. ``tellings`` has, by the number of a call, the output that the call wrote."""
    by_call: dict[int, list[Deed]] = {}
    for deed in effects.deeds:
        by_call.setdefault(deed.call, []).append(deed)
    processes: dict[int, int] = {}
    programs: dict[int, str] = {}
    found, pending = [], _UnsyncedSteps(effects)
    for number in sorted({*effects.words, *by_call, *tellings}):
        call = calls[number]
        process = processes.setdefault(call.pid, len(processes) + 1)
        said = effects.words.get(number, "")
        program, colon, words = said.partition(": ")
        if not colon or "/" in program:  # the words begin with a path, or a verb
            program, words = programs.get(call.pid, ""), said
        programs[call.pid] = program
        if number in tellings:
            step = DiagramStep(number, StepKind.TOLD, "tells", "", told=tellings[number].decode("latin-1"))
        elif number in by_call:
            deed = by_call[number][-1]
            step = structs.replace(_step(number, deed, effects), covers=pending.take(number, by_call[number]))
        else:
            step = DiagramStep(number, StepKind.CHANGE, words.partition(" (")[0], "")
        step = structs.replace(step, path=printable(step.path), more=printable(step.more))
        found.append(structs.replace(step, program=printable(program), process=process, function=caller(call.stack)))
    return tuple(found)


def need_of(explanation: Explanation, sentence: str, told: bytes, steps: Sequence[DiagramStep]) -> Need | None:
    """Return the need that an ``explanation`` shows. An explanation says why the program's checker refuses a crash
    state. A need says which steps must persist together, or which steps must persist before other steps or outputs.
    Return None if the calls of the explanation are not among the ``steps``. Also return None if the explanation's
    ``reliance`` is UNCLEAR or NOT_YET (:class:`bob.protocol.contrast.Reliance`). ``told`` is the output before the
    crash."""
    known = {step.number for step in steps}
    group = sorted(known & {*explanation.missing, *explanation.there})
    missing, there = (
        tuple(number for number in numbers if number in known)[:MOST_ENDS]
        for numbers in (explanation.missing, explanation.there)
    )
    match explanation.reliance:
        case Reliance.ORDER if missing and there:
            return Need(sentence, missing, there)
        case Reliance.WHOLE | Reliance.TOGETHER if group:
            ends = {*group[:MOST_ENDS], *group[-MOST_ENDS:]}
            return Need(sentence, tuple(sorted(ends)))
        case Reliance.DURABLE if missing:
            last = _last_told(told, steps)
            return Need(sentence, missing, () if last is None else (last,), is_durable=True)
    return None


def diagram(steps: Sequence[DiagramStep], needs: Iterable[Need] = ()) -> Diagram:
    """Return the diagram of ``steps``. If several needs concern the same steps, only the first need is kept."""
    distinct: dict[tuple[tuple[int, ...], tuple[int, ...]], Need] = {}
    for need in needs:
        distinct.setdefault((need.first, need.then), need)
    drawn = tuple(distinct.values())[:MOST_NEEDS]
    marked = {number for need in drawn for number in (*need.first, *need.then)}
    rows = _shortened(fold(steps, marked), marked)
    at = {step.number: place for place, row in enumerate(rows) for step in row.steps}
    return Diagram(
        rows=rows,
        needs=tuple(replace(need, first=_places(need.first, at), then=_places(need.then, at)) for need in drawn),
        orders=tuple(_orders(rows, at)),
        left_out=len(distinct) - len(drawn),
    )


def fold(steps: Sequence[DiagramStep], marked: Set[int] = frozenset()) -> tuple[DiagramRow, ...]:
    """Return the rows that show ``steps``. Similar steps share a row if they follow each other, or if they are the same
    step in each round of a loop. A loop is a sequence of steps that the program repeats, on the same files or on other
    files in the same directories. Each output, and each step whose number is in ``marked``, gets a row of its own."""
    exact = [_alike(step, step.path) for step in steps]
    loose = [_alike(step, step.path.rsplit("/", 1)[0]) for step in steps]
    free = [step.number not in marked and step.kind is not StepKind.TOLD for step in steps]
    rows: list[DiagramRow] = []
    at = loops = 0
    while at < len(steps):
        tried = (_round(exact, free, at, 2), _round(loose, free, at, FEWEST_ROUNDS))
        length, rounds = max(tried, key=lambda one: one[0] * (one[1] - 1))
        if rounds == 1:
            rows.append(DiagramRow((steps[at],)))
        elif length == 1:
            rows.append(DiagramRow(tuple(steps[at : at + rounds])))
        else:
            loops += 1
            rows += [DiagramRow(tuple(steps[at + one : at + length * rounds : length]), loops) for one in range(length)]
        at += length * rounds
    return tuple(rows)


class _UnsyncedSteps:
    """The steps that no sync has made durable so far. For this, bob relies only on the promises of POSIX. A sync of a
    file makes only the changes of its data durable. A sync of a directory makes only the changes of the names in it
    durable."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._data: dict[int, list[int]] = {}
        self._names: dict[str, list[int]] = {}

    def take(self, number: int, deeds: Iterable[Deed]) -> tuple[int, ...]:
        covered: list[int] = []
        for deed in deeds:
            operation = deed.operation
            match operation:
                case ops.Sync():
                    for waiting in (*self._data.values(), *self._names.values()):
                        covered += waiting
                        waiting.clear()
                case ops.Fsync(path) if self._effects.files[deed.file].kind == "directory":
                    covered += self._names.pop(path, [])
                case ops.Fsync() | ops.Msync():
                    covered += self._data.pop(deed.file, [])
                case ops.Write(how=ops.How.SYNC | ops.How.DSYNC):
                    pass  # a synchronous write makes its own data durable, and nothing else
                case ops.Write() | ops.Truncate() | ops.Fallocate() | ops.Chmod() | ops.Chown():
                    self._data.setdefault(deed.file, []).append(number)
                case _:
                    for folder in {ops.parent(path) for path in _names(operation)}:
                        self._names.setdefault(folder, []).append(number)
        return tuple(sorted(set(covered)))


def _step(number: int, deed: Deed, effects: Effects) -> DiagramStep:
    match deed.operation:
        case ops.Write(path, int(offset), length, how):
            is_append = (deed.file, number) in effects.growing
            sync = {ops.How.SYNC: ", O_SYNC", ops.How.DSYNC: ", O_DSYNC"}.get(how, "")
            verb = "append" if is_append else "overwrite"
            return DiagramStep(number, StepKind.CHANGE, verb, path, f"{length:,} bytes at {offset:,}{sync}")
        case ops.Fsync(path, data_only):
            return DiagramStep(number, StepKind.SYNC, "fdatasync" if data_only else "fsync", path)
        case ops.Msync(path):
            return DiagramStep(number, StepKind.SYNC, "msync", path)
        case ops.Sync(this_only):
            return DiagramStep(number, StepKind.SYNC, "syncfs" if this_only else "sync", ROOT)
        case ops.Truncate(path, size):
            return DiagramStep(number, StepKind.CHANGE, "truncate", path, f"to {size:,} bytes")
        case ops.Rename(old, new, ops.Replacing.EXCHANGE):
            return DiagramStep(number, StepKind.CHANGE, "exchange", old, f"and {new}")
        case ops.Rename(old, new):
            return DiagramStep(number, StepKind.CHANGE, "rename", old, f"to {new}")
        case ops.Link(old, new):
            return DiagramStep(number, StepKind.CHANGE, "link", old, f"as {new}")
        case ops.Symlink(target, path):
            return DiagramStep(number, StepKind.CHANGE, "symlink", path, f"to {target}")
        case ops.Fallocate(path, offset, length):
            return DiagramStep(number, StepKind.CHANGE, "fallocate", path, f"{length:,} bytes at {offset:,}")
    operation = deed.operation
    verb = type(operation).__name__.casefold()
    return DiagramStep(number, StepKind.CHANGE, verb, str(getattr(operation, "path", "")))


def _names(operation: ops.Operation) -> tuple[str, ...]:
    match operation:
        case ops.Rename(old, new):
            return old, new
        case ops.Link(_old, new):
            return (new,)
        case ops.Create() | ops.Mkdir() | ops.Symlink() | ops.Mknod() | ops.Unlink() | ops.Rmdir():
            return (operation.path,)
    return ()


def _last_told(told: bytes, steps: Iterable[DiagramStep]) -> int | None:
    """Return the number of the step that wrote the last byte of the output ``told``. Return None if no step did."""
    so_far = b""
    for step in steps:
        so_far += step.told.encode("latin-1")
        if step.told and so_far == told:
            return step.number
    return None


def _alike(step: DiagramStep, place: str) -> tuple[object, ...]:
    return step.kind, step.verb, step.process, place


def _round(tokens: Sequence[object], free: Sequence[bool], at: int, fewest: int) -> tuple[int, int]:
    """Look for steps that repeat from index ``at`` on. Return (length of a round, number of rounds) for the repetition
    that saves the largest number of rows in the diagram. The result (1, 1) means that no step repeats. ``tokens`` and
    ``free`` have one entry for each step. Two steps count as the same if their entries in ``tokens`` are equal. A step
    may be part of a repetition only if its entry in ``free`` is True. A repetition of a single step has at least
    ``fewest`` rounds."""
    best = (1, 1)
    for length in range(1, LONGEST_ROUND + 1):
        end = at + length
        while end < len(tokens) and tokens[end] == tokens[end - length] and free[end]:
            end += 1
        rounds = (end - at) // length
        enough = rounds >= (fewest if length == 1 else FEWEST_ROUNDS)
        if enough and all(free[at : at + length]) and length * (rounds - 1) > best[0] * (best[1] - 1):
            best = length, rounds
    return best


def _shortened(rows: Sequence[DiagramRow], marked: Set[int]) -> tuple[DiagramRow, ...]:
    """Return the ``rows`` of a diagram. If there are too many, keep the first and the last rows. Also keep each row
    with a step whose number is in ``marked``, with the row before it and the row after it. Gaps stand for the other
    rows."""
    if len(rows) <= MOST_ROWS:
        return tuple(rows)
    ends = MOST_ROWS // 3
    kept = {*range(ends), *range(len(rows) - ends, len(rows))}
    for place, row in enumerate(rows):
        if any(step.number in marked for step in row.steps):
            kept |= {place - 1, place, place + 1}
    found: list[DiagramRow] = []
    for place, row in enumerate(rows):
        if place in kept:
            found.append(row)
        elif found and found[-1].is_gap:
            found[-1] = replace(found[-1], steps=(*found[-1].steps, *row.steps))
        else:
            found.append(DiagramRow(row.steps, is_gap=True))
    return tuple(found)


def _places(numbers: Iterable[int], at: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(sorted({at[number] for number in numbers if number in at}))


def _orders(rows: Sequence[DiagramRow], at: Mapping[int, int]) -> Iterable[tuple[int, int, int]]:
    for place, row in enumerate(rows):
        if row.is_gap:
            continue
        covered = sorted({at[number] for step in row.steps for number in step.covers if number in at} - {place})
        if covered and covered[0] < place:
            yield covered[0], max(one for one in covered if one < place), place


def _module(row: DiagramRow) -> tuple[object, ...]:
    paths = {step.path for step in row.steps}
    where = row.first.path if len(paths) == 1 else ops.parent(row.first.path) + "/*"
    return row.first.program, row.first.process, where, row.loop
