"""A column of the table of bob's answers. The table has a column for each configuration (a file system with its
options). It has a row for each property (a rule about crashes). A cell has the answer for one property: the verdict
(such as HOLDS or FAILS), with its evidence. A column judges each workload by each property that the workload tests. For
each property that fails (a × in the table), the column has the best witness. A *witness* is a document about one crash
state that breaks the property."""

import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bob.agent.loss import Loss
from bob.answer.answer import Answer, ByRecording, ClaimWords, Way
from bob.answer.result import TROUBLE, UNMOUNTABLE, SubjectResult, beside
from bob.blocks.naming import BlockName
from bob.claim.claim import Judgeable
from bob.claim.idempotence import IDEMPOTENT, Idempotent, judged
from bob.claim.mounting import Sound, unmountable
from bob.claim.property.judged_case import JudgedCase, WorkloadVerdict
from bob.claim.property.of_property import OfProperty
from bob.claim.property.readings import OutcomeReadings
from bob.claim.property.rules import Property
from bob.claim.verdict import Verdict
from bob.crash.case import Case
from bob.crash.coverage import States, total
from bob.crash.neighbours import causes
from bob.judge.findings import Findings, Keep
from bob.observe.easiest import Easiest
from bob.observe.observation import Observation, shape
from bob.observe.observations import ExploredState, Observations, TroubleKind, alike, without_numbers
from bob.subject import Subject, promises
from bob.text import compact, plural
from bob.witness import document as witness
from bob.witness.document import EarlierCrash, ShownState
from bob.workload.operations import Workload

EarlierCrashes = Callable[[], tuple[EarlierCrash, ...]]


@dataclass(frozen=True, slots=True)
class RecoveryCrash:
    """The facts that bob needs to judge crashes during one recovery. ``expected`` is the tree of files after
    the recovery if no crash interrupts it. ``depth`` is 1 if the recovery follows a crash of a workload, 2 if it
    follows a crash of such a recovery, and so on. ``single`` returns the trees that the first crash could have left if
    no other crash had followed. ``earlier`` returns the crashes before the recovery."""

    expected: Observation
    depth: int = 1
    single: Callable[[], Iterable[Observation]] = tuple
    earlier: EarlierCrashes = tuple


class Column:
    """The verdicts on one configuration. With ``by_cause``, the column also groups breaches with the same cause into
    findings."""

    def __init__(
        self,
        configuration: Subject,
        properties: Sequence[Property],
        environment: Mapping[str, str],
        keep: Keep,
        keep_traceback: Callable[[str, str], object] = lambda _title, _trace: None,
        *,
        by_cause: bool = False,
    ) -> None:
        self._keep_traceback = keep_traceback
        self._configuration = configuration
        self._properties = properties
        self._environment = environment
        self._keep = keep
        self._results: dict[str, list[ByRecording]] = {prop.name: [] for prop in properties}
        self._best: defaultdict[str, Easiest[ShownState]] = defaultdict(Easiest)
        self._refused: dict[str, str] = {}
        self._cases = 0
        self._unmountable = Easiest[ShownState]()
        self._effective = ""
        self._losses: list[str] = []
        self._troubles: defaultdict[tuple[str, str], Easiest[ShownState]] = defaultdict(Easiest)
        self._normal: dict[str, None] = {}
        self._passing: dict[str, None] = {}
        self._shapes: Counter[tuple[str, str]] = Counter()  # numbers of outcomes, by the base and the shape of the tree
        self._examined: set[tuple[str, str]] = set()
        self._findings = Findings(self._witness) if by_cause else None
        self._recoveries: defaultdict[int, list[States]] = defaultdict(list)

    def refuse(self, workload: Workload, reason: str, fall: Loss | None = None) -> None:
        """Record the ``reason`` why ``workload`` was not judged. Properties that this workload tests then cannot get
        the verdict HOLDS. ``fall`` is the panic or hang of the guest that prevented the judgement (None: neither
        happened)."""
        if fall is not None:
            self._losses.append(f"{workload.title}: {reason}")
        for prop in self._properties:
            if JudgedCase.asks(prop, workload):
                self.refuse_property(prop, reason)

    def broke(self, workload: Workload, broken: Exception) -> None:
        self.refuse(workload, self._told(workload, broken))

    def _told(self, workload: Workload, broken: Exception) -> str:
        """Save the traceback of ``broken``, an error of bob itself while it judged ``workload``. Return one line about
        the error. Such an error does not end the run (docs/design.md, section 2)."""
        self._keep_traceback(workload.title, "".join(traceback.format_exception(broken)))
        where = traceback.extract_tb(broken.__traceback__)[-1]
        said = str(broken).strip() or type(broken).__name__
        place = f"{Path(where.filename).name}, line {where.lineno}"
        return f"bob itself failed to judge it: {said.splitlines()[0]} ({place})"

    def refuse_property(self, prop: Property, reason: str) -> None:
        """Record the ``reason`` why bob could not do a part of the test of ``prop``. So ``prop`` cannot get the verdict
        HOLDS."""
        self._results.setdefault(prop.name, [])
        self._refused.setdefault(prop.name, reason)

    def add(self, case: Case, observed: Observations, readings: OutcomeReadings | None = None) -> None:
        """Judge the workload of ``case`` by each property that the workload tests. ``observed`` has the crash states,
        each with its outcome (what a mount shows). ``readings`` has what bob already knows about the outcomes: which
        operations survived (None: bob knows nothing)."""
        workload = case.workload
        self._effective = case.recording.effective_options
        if observed.earlier_loss is not None:
            self._losses.append(f"{workload.title}: {observed.earlier_loss}; another guest started it again")
        try:
            bench = JudgedCase.of(case, observed, readings)
        except Exception as broken:
            self.broke(workload, broken)
            return
        if refused := self._add_unmountable(case, bench.unmountable, observed):
            self._unmountable.explain(_explained(refused, bench))
        self._add_troubles(case, observed)
        for prop in self._properties:
            try:
                said = bench.judge(prop)
            except Exception as broken:
                self.refuse_property(prop, self._told(workload, broken))
                continue
            if said is None:
                continue
            self._take(prop, workload, said)
            if said.evidence is None:
                continue
            state, found = said.evidence.state, said.evidence.violation
            there = bench.observation(said.evidence.outcome)
            showing = ShownState(case, state, OfProperty(prop.name, found.question, prop), found.evidence, found=there)
            best = self._best[prop.name]
            if best.add(state, showing, before=(not found.is_clear, len(workload.operations))):
                best.explain(_explained(showing, bench))
            if self._findings is not None:
                self._find(self._findings, case, bench, prop, said)

    def _take(self, prop: Property, workload: Workload, said: WorkloadVerdict) -> None:
        name, finish = workload.name, workload.finish.name
        result = ByRecording(
            name, finish, said.verdict, said.states, said.violations, said.reason, unknown_torn=said.unknown_torn
        )
        self._results.setdefault(prop.name, []).append(result)

    def _find(self, findings: Findings, case: Case, bench: JudgedCase, prop: Property, said: WorkloadVerdict) -> None:
        """Add a breach of ``prop``, described by its verdict ``said``, to the findings (groups of breaches with the
        same cause). If bob itself fails here, the breach still counts for the verdict on ``prop``."""
        try:
            findings.add(case, bench, prop, said)
        except Exception as broken:
            told = self._told(case.workload, broken)
            self._losses.append(f"{case.workload.title}: the cause of its breach of {prop.name} is not known: {told}")

    def add_recovery(self, case: Case, observed: Observations, crash: RecoveryCrash) -> None:
        """Judge a crash during the recovery from an earlier crash. ``observed`` has the crash states that this crash
        can leave."""
        observations = observed.findings.observations()
        refusing = [
            seen for seen in observed.states if seen.outcome is not None and not observations[seen.outcome].mounted
        ]
        self._add_unmountable(case, refusing, observed, crash.earlier)
        self._add_troubles(case, observed, crash.earlier)
        said, shown = judged(observed, crash.expected, crash.single)
        self._take(IDEMPOTENT, case.workload, said)
        self._recoveries[crash.depth].append(said.states)
        if shown is not None:
            state, evidence = shown
            showing = ShownState(case, state, Idempotent(), evidence, earlier=crash.earlier)
            self._best[IDEMPOTENT.name].add(state, showing, before=(crash.depth,))

    def _add_unmountable(
        self, case: Case, states: Sequence[ExploredState], observed: Observations, earlier: EarlierCrashes = tuple
    ) -> ShownState | None:
        """Add the number of ``states``, which do not mount, to the column's count of such states. Return the state that
        is easiest to explain. Return None if ``states`` is empty, or if an earlier workload already had such states."""
        self._cases += 1
        found, count = unmountable(states, observed.findings.observation)
        if found is None:
            return None
        showing = ShownState(case, found.state, found.claim, found.evidence, earlier=earlier)
        is_first = self._unmountable.add(showing.state, showing, count, before=(self._cases,))
        return showing if is_first else None

    def _add_troubles(self, case: Case, observed: Observations, earlier: EarlierCrashes = tuple) -> None:
        self._normal.update(dict.fromkeys(observed.normal))
        self._passing.update(dict.fromkeys(observed.passing))
        for number, outcome in enumerate(observed.findings.found):
            if (told := shape(outcome)) is not None:
                self._shapes[case.base.name, told] += 1
                if number in observed.examined:
                    self._examined.add((case.base.name, told))
        for trouble in observed.troubles:
            state = observed.states[trouble.state].state
            showing = ShownState(case, state, Sound(TroubleKind(trouble.kind)), trouble.words, earlier=earlier)
            self._troubles[alike(trouble)].add(state, showing, before=(len(case.workload.operations),))

    def cells(self) -> tuple[Answer, ...]:
        """Return the answers for the column's cells in the table, one for each property. Save the witnesses of the
        properties that fail."""
        of_recovery = [IDEMPOTENT] if IDEMPOTENT.name in self._results else []
        return tuple(self._cell(prop) for prop in (*self._properties, *of_recovery))

    def result(self, cells: Sequence[Answer]) -> SubjectResult:
        return replace(
            SubjectResult.of(self._configuration, self._effective, self._environment["mkfs_version"]),
            answers=tuple(cells),
            beside=tuple(self._beside()),
            notes=(*self._notes(), *self._promises(cells)),
            examined=sum(self._shapes[one] for one in self._examined),
            examinable=self._shapes.total(),
            findings=() if self._findings is None else self._findings.kept(self._keep),
        )

    def _notes(self) -> Iterator[str]:
        if self._configuration.note:
            yield self._configuration.note
        yield from self._losses
        if len(self._recoveries) > 1:
            yield from (_of_depth(depth, states) for depth, states in sorted(self._recoveries.items()))
        # Two notes count as one if their words differ only in numbers.
        for words in {without_numbers(words): words for words in self._normal}.values():
            yield f"not a finding, as it also happens on a disk without any recorded write: {words}"
        for words in {without_numbers(words): words for words in self._passing}.values():
            yield f"not a finding, as the kernel did not say it again about the same disk: {words}"

    def _promises(self, cells: Sequence[Answer]) -> Iterator[str]:
        """Yield a sentence for each promise about crashes that a layer (a device-mapper or md device) of the
        configuration makes. The sentence says whether the layer keeps the promise, as far as bob has seen. A row of the
        table tests each promise. Promises whose row was not requested are left out."""
        told = {cell.name: cell for cell in cells}
        for layer, promise in promises(self._configuration.layers):
            if promise.row in told:
                said = _promised(f"its promise ({promise.row})", told[promise.row])
                yield f"{layer} {said}: {promise.says} ({promise.source})"

    def _beside(self) -> Iterator[Answer]:
        """Yield the answers without a row in the table: about crash states that do not mount, and about warnings and
        errors after a mount. Save their witnesses."""
        if self._unmountable:
            yield beside(UNMOUNTABLE, UNMOUNTABLE, [self._way(UNMOUNTABLE, self._unmountable)])
        ways: defaultdict[str, list[Way]] = defaultdict(list)
        for (kind, _words), found in sorted(self._troubles.items(), key=lambda pair: pair[0]):
            name = f"{kind}-{len(ways[kind]) + 1}" if ways[kind] else kind
            ways[kind].append(self._way(name, found))
        yield from (beside(TROUBLE, kind, some) for kind, some in ways.items())

    def _cell(self, prop: Property) -> Answer:
        found = cell(prop, self._results[prop.name], self._refused.get(prop.name))
        if prop.name not in self._best:
            return found
        way = self._way(prop.name, self._best[prop.name])
        return replace(found, ways=(replace(way, states=sum(one.violations for one in found.recordings)),))

    def _way(self, name: str, found: Easiest[ShownState]) -> Way:
        return Way(found.shown.evidence, found.states, self._keep(name, self._witness(found.shown)))

    def _witness(self, showing: ShownState, writes: Sequence[BlockName] | None = None) -> dict[str, Any]:
        return witness.write(showing, environment=self._environment, writes=writes)


def _promised(promise: str, answer: Answer) -> str:
    """Return in words whether a layer keeps ``promise``. If it does, these are words about the crash states that bob
    explored and could mount."""
    if answer.verdict is not Verdict.HOLDS:
        return f"{'breaks' if answer.verdict is Verdict.FAILS else 'may keep'} {promise}"
    hidden = answer.states.unmountable
    return f"keeps {promise} in all explored crash states" + (f" that mount; {compact(hidden)} do not" * bool(hidden))


def _of_depth(depth: int, parts: Sequence[States]) -> str:
    states = total(parts)
    times = plural(depth, "crash") if depth == 1 else f"{depth} crashes in a row"
    return (
        f"{times} during recovery: {plural(len(parts), 'recovery', 'recoveries')} crashed, "
        f"{compact(states.explored)} of {compact(states.legal_sectors)} legal states explored, "
        f"{compact(states.explored_writes or 0)} of {compact(states.legal_writes)} of them without torn writes, by "
        f"{plural(states.mounted, 'mount')}"
    )


def _explained(showing: ShownState, bench: JudgedCase) -> ShownState:
    claim = showing.claim
    assert isinstance(claim, Judgeable)
    found = causes(showing.case.plan.points, showing.state, partial(claim.kept_in, bench))
    return replace(showing, causes=found)


def cell(prop: Property, results: Sequence[ByRecording], refused: str | None) -> Answer:
    """Return the answer about ``prop`` for its cell of the table, from the ``results`` of all recordings. ``refused``
    says why some of the property's workloads could not be recorded; None if all were."""
    verdicts = {result.verdict for result in results}
    reason = refused or next((result.reason for result in results if result.verdict is Verdict.UNKNOWN), None)
    if Verdict.FAILS in verdicts:
        verdict, reason = Verdict.FAILS, None
    elif reason is not None or not results:
        verdict, reason = Verdict.UNKNOWN, reason or "no workload asks for it"
    else:
        verdict = Verdict.HOLDS
    states = total([result.states for result in results])
    if refused:
        states = replace(states, exhaustive=None)  # bob did not explore the states of workloads that it did not record
    return Answer(claim_words(prop), verdict, states, recordings=tuple(results), reason=reason)


def claim_words(prop: Property) -> ClaimWords:
    return ClaimWords("property", prop.name, prop.family, prop.meaning)
