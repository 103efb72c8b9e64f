"""Workloads that a Python file makes (docs/search.md). bob calls the file's function ``workload(fs, choose)`` once for
each sequence of choices. The file runs on this machine, and ``fs`` simulates a file system in memory. The file may
define a *signature*, a value that describes the state of a run. If two runs have equal signatures at the same place in
the code, they would continue in the same way. bob then stops the second run."""

import ast
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from random import Random
from traceback import walk_tb
from types import FrameType, ModuleType
from typing import Any

from bob.errors import UsageError
from bob.schema import OneLine, decode, mistakes_in
from bob.search.alike import in_normal_names
from bob.search.bounds import load, promised, together
from bob.search.choices import Choose, Place, check_end, first, following, value_of, whereabouts
from bob.search.space import Space, is_asked
from bob.workload.language import write_one
from bob.workload.operations import At, Operation, Workload
from bob.workload.python_calls import RefusedCall, SimulatedFileSystem, Stopped

WORKLOAD, SETUP, PROMISES, SIGNATURE = "workload", "setup", "promises", "signature"  # names that a file may define
TREE = "tree"  # with signature = "tree", bob itself makes the signature
_IS_PYTHON = "expected a Python file with a workload"
_FORM = "bob calls workload(fs, choose), and also setup(fs) and signature(fs) if the file has them"


class Ended(Enum):
    DONE = auto()
    REFUSED = auto()  # the file did an operation that a file system refuses
    SEEN = auto()  # an earlier run had the same signature at the same place


@dataclass(frozen=True, slots=True)
class Ran:
    """A run of a file. ``setup`` has the operations that make the initial tree, and ``operations`` has all later
    operations. ``places`` are the choices of the run, and ``ended`` says how it ended. If the simulated file
    system refuses an operation, ``refused`` names this operation and its line in the Python file."""

    setup: tuple[Operation, ...]
    operations: tuple[Operation, ...]
    places: tuple[Place, ...]
    ended: Ended
    refused: str = ""


class _FileRefusal(UsageError):
    """A mistake in the user's file. The message names the line."""


class PythonFile:
    """The Python file ``name`` with the content ``text``, ready to run. Raises UsageError if the text is not Python."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self._known_as = f"<{name}>"
        try:
            with mistakes_in(name, _IS_PYTHON):
                self._tree = ast.parse(text, self._known_as)
                self._code = compile(self._tree, self._known_as, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise UsageError(f"{name}, line {error.lineno}: {error.msg}", hint=_IS_PYTHON) from None
        self._setup: tuple[Operation, ...] | None = None
        self.unlike = ""  # the kind of a variable that bob cannot compare between runs

    def promises(self) -> tuple[str, ...]:
        """Return the names that the file assigns to its variable ``promises``, without running the file. A promise says
        what survives a crash after a call such as fsync."""
        named: tuple[str, ...] = ()
        for node in self._tree.body:
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == PROMISES for target in targets):
                named = self._named(node.value, node.lineno)
        return named

    def _named(self, value: ast.expr | None, line: int) -> tuple[str, ...]:
        try:
            names = decode(tuple[OneLine, ...], ast.literal_eval(value)) if value is not None else ()
        except (ValueError, TypeError):
            names = ()
        with mistakes_in(f"{self.name}, line {line}", None):
            if not names:
                raise UsageError(
                    "promises must be a list of names", hint='for example promises = ["fsync-file.size", "sync.entry"]'
                )
            promised(names)
        return names

    def run(
        self, again: Sequence[Place] = (), pick: Callable[[int], int] = first, seen: set[Hashable] | None = None
    ) -> Ran:
        """Run the file. The run first makes the choices in ``again``. At each choice after these, ``pick`` gets the
        number of options and returns the index of an option.

        ``seen`` has the positions in the code that earlier runs have reached, each with the signature of the run at
        this position. The run stops at a position that is in ``seen`` with the same signature, and adds all other
        positions to ``seen``. Without ``seen``, the run never stops early. Raises UsageError for a mistake in the
        file."""
        module = self._begun()
        setup = self._set_up(module)
        fs = SimulatedFileSystem(self.name, setup)

        def goes_on(frame: FrameType) -> bool:
            return seen is None or self._is_new(frame, module, fs, choose, seen)

        choose = Choose(again, lambda: tuple(fs.performing.done), pick, goes_on)
        ended, refused = Ended.DONE, ""
        try:
            returned = module[WORKLOAD](fs, choose)
            if returned is not None:
                raise UsageError(
                    f"workload() must return nothing, and returned a value of type {type(returned).__name__}",
                    hint="workload() only calls fs and choose; a yield in it makes it return a generator",
                )
        except RefusedCall as error:
            ended, refused = Ended.REFUSED, self._told(error).message
        except Stopped:
            ended = Ended.SEEN
        except (Exception, SystemExit) as error:
            raise self._told(error, choose.places) from None
        for stopped in (fs.stopped, choose.stopped):  # the file may have caught the exception
            if stopped is not None and stopped.error is not None:
                raise self._told(stopped.error, choose.places, stopped) from None
        if choose.left is not None:
            raise self._told(choose.left)
        return Ran(setup, tuple(fs.performing.done), tuple(choose.places), ended, refused)

    def _begun(self) -> Mapping[str, Any]:
        """Execute the file as a new module, and return the module's names. Each run uses a new module, so that it
        leaves nothing to the next run."""
        module = ModuleType(self._known_as)
        sys.modules[self._known_as] = module  # the module dataclasses looks for the module of a class there
        try:
            exec(self._code, vars(module))
        except (Exception, SystemExit) as error:
            raise self._told(error) from None
        found = vars(module)
        if not callable(found.get(WORKLOAD)):
            raise UsageError(f"{self.name}: the function workload(fs, choose) is missing", hint=_FORM)
        return found

    def _set_up(self, module: Mapping[str, Any]) -> tuple[Operation, ...]:
        fs = SimulatedFileSystem(self.name)
        if SETUP in module:
            self._call(module[SETUP], fs)
        made = tuple(fs.performing.done)
        if self._setup is None:
            with mistakes_in(f"{self.name}, in setup(fs)", None):
                SimulatedFileSystem(self.name, made)
            self._setup = made
        if made != self._setup:
            raise UsageError(
                f"{self.name}: setup(fs) makes different trees in different runs",
                hint="setup(fs) must not depend on choices, a clock, random numbers or the order of a set",
            )
        return made

    def _is_new(
        self, frame: FrameType, module: Mapping[str, Any], fs: SimulatedFileSystem, choose: Choose, seen: set[Hashable]
    ) -> bool:
        signature = module.get(SIGNATURE)
        if signature is None:
            return True
        found = self._signature(signature, fs)
        try:
            place = whereabouts(frame, self._known_as, (fs, choose))
        except (TypeError, RecursionError) as error:
            self.unlike = str(error) if isinstance(error, TypeError) else "list of lists without an end"
            return True
        if (place, found) in seen:
            return False
        seen.add((place, found))
        return True

    def _signature(self, signature: Any, fs: SimulatedFileSystem) -> Hashable:
        if signature == TREE:
            return fs.state()
        if not callable(signature):
            raise UsageError(
                f"invalid signature {signature!r}", hint='expected signature = "tree", or def signature(fs):'
            )
        before = len(fs.performing.done)
        value = self._call(signature, fs)
        if len(fs.performing.done) != before:
            raise _FileRefusal(
                f"{self.name}: signature(fs) calls {fs.done()[before]!r}", hint="signature(fs) may only look at fs"
            )
        try:
            return value_of(value)
        except TypeError as error:
            raise _FileRefusal(
                f"{self.name}: signature(fs) returned a {error}",
                hint="return numbers or texts, or lists, tuples, dictionaries or sets of these",
            ) from None

    def _call(self, function: Callable[[SimulatedFileSystem], Any], fs: SimulatedFileSystem) -> Any:
        try:
            value = function(fs)
        except (Exception, SystemExit, Stopped) as error:
            mistake = fs.stopped.error if fs.stopped is not None else None
            raise self._told(mistake or error, (), error) from None
        if fs.stopped is not None and fs.stopped.error is not None:
            raise self._told(fs.stopped.error, (), fs.stopped)
        return value

    def _told(
        self, mistake: BaseException, places: Sequence[Place] = (), raised: BaseException | None = None
    ) -> _FileRefusal:
        if isinstance(mistake, _FileRefusal):
            return mistake
        trace = walk_tb((raised or mistake).__traceback__)
        lines = [line for frame, line in trace if frame.f_code.co_filename == self._known_as]
        place = f"{self.name}, line {lines[-1]}" if lines else self.name
        if isinstance(mistake, UsageError):
            return _FileRefusal(f"{place}: {mistake.message}", hint=mistake.hint)
        words = str(mistake) if isinstance(mistake, RefusedCall) else f"{type(mistake).__name__}: {mistake}"
        taken = ", ".join(str(one.taken) for one in places)
        hint = f"it was run with the choices {taken} (0 is the first option)" if taken else _FORM
        return _FileRefusal(f"{place}: {' '.join(words.split()).removesuffix(':')}", hint=hint)


class Choosing(Space):
    """The workloads of the Python file ``name``. Each workload has the operations of a run up to a call (such as fsync)
    that promises that earlier changes are durable. The crash comes after this call. Workloads that differ only in names
    count as one. Raises UsageError for a mistake in the file."""

    def __init__(self, name: str, text: str) -> None:
        self._file = PythonFile(name, text)
        self.name = name
        names = self._file.promises()  # the default: the promises of the bounds ``small``, and that of msync
        chosen = promised(names) if names else (*load("small").promises, *promised(["msync.data"]))
        self.asked = (*chosen, *together(chosen))

    def check(self) -> None:
        """Run the file once, with the first option of each choice. Raises UsageError for a mistake in this run."""
        self._file.run()

    def every(self, length: int) -> Iterator[Workload]:
        """Yield the workloads of all sequences of choices, workloads with fewer operations first. Yield nothing if
        ``length`` is not 1: the Python file itself decides how many operations a workload has."""
        if length != 1:
            return
        asks: dict[Hashable, bool] = {}
        reached: set[Hashable] = set()
        found: list[Workload] = []
        how_many, first_refused = Counter[str](), ""
        again: tuple[Place, ...] | None = ()
        while again is not None:
            ran = self._file.run(again, seen=reached)
            how_many[ran.ended.name] += 1
            with mistakes_in(self.name, None):
                check_end(sum(how_many[one.name] for one in Ended), ran.places)
            first_refused = first_refused or ran.refused
            keys = []
            for key, workload in self._made(ran):
                keys.append(key)
                if key not in asks:
                    asks[key] = is_asked(self.asked, workload)
                    found += [workload] if asks[key] else []
            how_many["IDLE"] += ran.ended is not Ended.SEEN and not any(asks[key] for key in keys)
            again = following(ran.places)
        self.notes = tuple(_notes(how_many, first_refused, self._file.unlike))
        yield from sorted(found, key=lambda workload: len(workload.operations))

    def draw(self, length: int, random: Random, seen: set[Hashable]) -> tuple[Hashable, Workload] | None:
        if length != 1:
            return None
        made = [(key, one) for key, one in self._made(self._file.run(pick=random.randrange)) if key not in seen]
        new = [(key, one) for key, one in made if is_asked(self.asked, one)]
        return random.choice(new) if new else None

    def _made(self, ran: Ran) -> Iterator[tuple[Hashable, Workload]]:
        """Yield a key and a workload for each prefix of the operations of ``ran``. Two workloads have equal keys if
        they differ only in names."""
        for count in range(1, len(ran.operations) + 1):
            operations = ran.operations[:count]
            name = "; ".join(map(write_one, operations))
            yield in_normal_names(ran.setup, operations), Workload(name, ran.setup, operations, at=At.END)


def _notes(how_many: Mapping[str, int], first_refused: str, unlike: str) -> Iterator[str]:
    runs = sum(how_many[one.name] for one in Ended)
    yield f"{runs:,} sequence{'' if runs == 1 else 's'} of choices"
    if refused := how_many[Ended.REFUSED.name]:
        yield f"{refused:,} ended at a call that a file system refuses; the first: {first_refused}"
    if seen := how_many[Ended.SEEN.name]:
        yield f"{seen:,} ended where an earlier one had the same signature"
    if idle := how_many["IDLE"]:
        yield f"{idle:,} tested nothing: their calls promise nothing about the operations before"
    if unlike:
        yield f"signature was not used where a variable is a {unlike}: bob cannot compare it"
