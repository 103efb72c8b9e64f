"""The numbered crash states of a workload, their outcomes so far, and their mounts. An *outcome* is what a mount of a
crash state showed."""

from collections.abc import Container, Iterable, Sequence

from bob.crash.image import Composer
from bob.crash.state import CrashState, departure
from bob.observe.easiest import Easiest
from bob.observe.mount_cache import Disks
from bob.observe.observations import Complaint
from bob.observe.session import MountedState, Session


class Ledger:
    """The crash ``states``, in order of their addition. ``found`` maps a state's index to the number of its
    outcome, which bob has seen or predicted."""

    def __init__(self) -> None:
        self.states: list[CrashState] = []
        self.found: dict[int, int] = {}
        self._numbers: dict[CrashState, int] = {}
        self._easiest: dict[int, Easiest[int]] = {}

    def add(self, states: Iterable[CrashState]) -> range:
        first = len(self.states)
        self.states += states
        for number in range(first, len(self.states)):
            self._numbers.setdefault(self.states[number], number)
        return range(first, len(self.states))

    def number_of(self, state: CrashState) -> int | None:
        return self._numbers.get(state)

    def rank(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._easiest.setdefault(self.found[number], Easiest()).add(self.states[number], number)

    def easiest(self) -> list[int]:
        return [one.shown for one in self._easiest.values()]

    def easiest_first(self) -> list[int]:
        return [one.shown for one in sorted(self._easiest.values(), key=lambda one: (one.rank, one.shown))]

    def speaker(self, outcome: int) -> int:
        return self._easiest[outcome].shown

    def is_easier(self, state: CrashState, outcome: int) -> bool:
        return departure(state) < self._easiest[outcome].rank


# Mounts between two audits, since an audit, which compares the scratch image with its base, takes as long as some
# mounts.
AUDIT_EVERY = 100


class LedgerMounts:
    """The mounts of the states of a ``ledger``.

    In the guest, a disk in memory contains one state after the other. This disk is called the scratch image. After each
    state, bob undoes the changes of the scratch image. After a batch of mounts, an *audit* tests that the scratch image
    equals its base image (the disk before the recording) again. After a successful audit, bob trusts all outcomes that
    it has seen for this workload. After :meth:`believe_all`, it trusts all other outcomes, too. ``outcomes`` has only
    trusted outcomes.

    ``here`` has the states that were mounted for this workload. ``mounted`` also has the states whose disk was mounted
    for another workload. Workloads run at the same time. If two workloads have a state with the same disk, chance
    decides which of them mounts it. ``on_host`` has the states that the host has recovered since the last
    :meth:`bob.observe.rounds.Rounds.settle`. ``only_on_host`` has all states that the host has recovered, but that no
    guest has recovered."""

    def __init__(self, session: Session, composer: Composer, ledger: Ledger, disks: Disks | None) -> None:
        self.outcomes: dict[int, int] = {}
        self.mounted: set[int] = set()
        self.here: set[int] = set()
        self.new_disks: Disks = {}
        self.complaints: dict[int, Complaint] = {}
        self.on_host: set[int] = set()
        self.only_on_host: set[int] = set()
        self._session = session
        self._composer = composer
        self._ledger = ledger
        self._disks = disks
        self._unaudited = 0

    @property
    def recalled(self) -> list[int]:
        """The states whose disk was mounted for another workload and not for this one."""
        return sorted(self.mounted - self.here)

    def mount(
        self, batch: Sequence[int], *, audit: bool = False, anew: Container[int] = (), in_guest: bool = False
    ) -> dict[int, MountedState]:
        """Mount the states ``batch``, and return what bob observed. If a state's disk was already mounted for another
        workload, do not mount it, but return its known outcome. States in ``anew`` are mounted in any case. If
        ``audit`` is True, or if many mounts had no audit, do an audit afterwards. If ``in_guest`` is True, the guest
        runs the file system's check before the mount; otherwise the host may run it."""
        composer, states = self._composer, self._ledger.states
        disks = self._disks if self._disks is not None else {}
        keys = {} if self._disks is None else {number: composer.disk(states[number]) for number in batch}
        answers = {
            number: self._session.recall(sight)
            for number, disk in keys.items()
            if number not in anew and (sight := disks.get(disk)) is not None
        }
        fresh = [number for number in batch if number not in answers]
        self._unaudited += len(fresh)
        audit = audit or self._unaudited >= AUDIT_EVERY
        if fresh or (audit and self._unaudited):
            deltas = [composer.delta(states[number]) for number in fresh]
            found = self._session.mount(deltas, composer.payload_since(0), audit=audit, in_guest=in_guest)
            answers.update(zip(fresh, found, strict=True))
        self.mounted.update(batch)
        self.here.update(fresh)
        for number in batch:
            if answers[number].on_host:
                self.only_on_host.add(number)
            else:
                self.only_on_host.discard(number)
        for number in fresh:
            if answers[number].on_host:
                self.on_host.add(number)
            if (complaint := answers[number].complaint) is not None:
                self.complaints[number] = complaint
            if number in keys and (sight := self._session.sight(answers[number])) is not None:
                self.new_disks[keys[number]] = sight
        if audit:
            self._unaudited = 0
            found_of = self._ledger.found
            self.outcomes.update((number, found_of[number]) for number in self.here & found_of.keys())
            self.outcomes.update((number, answers[number].outcome) for number in fresh)
        return {number: answers[number] for number in batch}

    def believe_all(self) -> None:
        self.outcomes.update(self._ledger.found)

    def believe_own(self) -> None:
        """Keep only the outcomes that this workload's mounts showed, since bob no longer trusts other outcomes. This
        drops outcomes that bob predicted, or knows from another workload, and outcomes of states that only the host has
        recovered."""
        own = self.here - self.only_on_host
        self.outcomes = {number: outcome for number, outcome in self.outcomes.items() if number in own}
