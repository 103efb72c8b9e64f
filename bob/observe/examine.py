"""Examinations of some crash states that mount. bob runs the file system's checker on such a state, and removes all
files in it.

Each examination takes as long as many mounts. So bob examines only a few outcomes. (An *outcome* is what a mount of a
crash state showed.) bob draws one outcome for each *shape* (a tree without the contents of its files). A complaint of
the kernel may depend on the kernel's memory, and not on the state alone. So it counts only if the kernel repeats it on
another mount of the same state."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from bob.crash.plan import Plan
from bob.observe.easiest import Easiest
from bob.observe.observation import shape
from bob.observe.observations import Complaint, StateTrouble, alike
from bob.observe.rounds import Rounds
from bob.observe.session import Session

MOST_EXAMINED = 3  # examined outcomes of a workload
ATTEMPTS, PAUSE_SECONDS = 3, 6.0
"""Mounts of a state to see a complaint again, and the pause before each. The kernel limits its messages in 5 s
(DEFAULT_RATELIMIT_INTERVAL in include/linux/ratelimit_types.h)."""


@dataclass(frozen=True, slots=True)
class Examination:
    """The troubles of states that mounted: what the examination found, and complaints of the kernel that recurred on
    another mount. If a trouble also occurs in the control state (a disk without any write of the recording), it is in
    ``normal``, not in ``troubles``. ``passing`` has complaints of the kernel that did not recur. ``examined`` has the
    numbers of the examined outcomes."""

    troubles: tuple[StateTrouble, ...]
    normal: tuple[str, ...]
    passing: tuple[str, ...]
    examined: tuple[int, ...]


NOT_EXAMINED = Examination((), (), (), ())


def examined(session: Session, rounds: Rounds, plan: Plan, seed: int) -> Examination:
    """Examine some outcomes of ``rounds``. Call :meth:`Rounds.settle` before, so that bob trusts all outcomes. If
    the kernel complained about a state, mount that state again. Raises the errors of :meth:`Session.examine`."""
    outcomes, complaints, states = rounds.mounts.outcomes, rounds.mounts.complaints, rounds.ledger.states
    found_of = session.findings.found
    there = [number for number in rounds.ledger.easiest() if shape(found_of[outcomes[number]]) is not None]
    by_shape: dict[str | None, int] = {}
    for number in Random(f"{seed} examined").sample(there, len(there)):
        by_shape.setdefault(shape(found_of[outcomes[number]]), number)
    pristine = plan.controls[0]
    control = rounds.ledger.number_of(pristine)
    before = None if control is None else outcomes[control]
    if before is not None and len(by_shape) > 1:
        by_shape.pop(shape(found_of[before]), None)
    chosen = sorted(list(by_shape.values())[:MOST_EXAMINED])
    composer = plan.composer
    deltas = [composer.delta(states[number]) for number in chosen]
    found = session.examine(deltas, composer.payload_since(0)) if chosen else []
    wrong = [(number, complaint) for number, complaints in zip(chosen, found, strict=True) for complaint in complaints]
    passing: list[str] = []
    for numbers in _alike(rounds):
        first = Easiest[int]()
        for number in numbers:
            first.add(states[number], number)
        if _is_said_again(session, rounds, plan, first.shown):
            wrong += [(number, complaints[number]) for number in numbers]
        else:
            passing.append(complaints[first.shown].words)
    usual: list[Complaint] = []
    if wrong:  # without a trouble there is nothing to compare with a control
        usual += session.examine([composer.delta(pristine)], composer.payload_since(0))[0]
        usual += [complaints[control]] if control is not None and control in complaints else []
    normal = {alike(complaint): complaint.words for complaint in usual}
    return Examination(
        tuple(StateTrouble(number, *complaint) for number, complaint in wrong if alike(complaint) not in normal),
        tuple(sorted({normal[alike(complaint)] for _number, complaint in wrong if alike(complaint) in normal})),
        tuple(passing),
        tuple(outcomes[number] for number in chosen),
    )


def _alike(rounds: Rounds) -> Iterator[list[int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for number, complaint in rounds.mounts.complaints.items():
        if number in rounds.mounts.outcomes:
            found.setdefault(alike(complaint), []).append(number)
    yield from found.values()


def _is_said_again(session: Session, rounds: Rounds, plan: Plan, number: int) -> bool:
    said = alike(rounds.mounts.complaints[number])
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_SECONDS)
        [again] = session.mount(
            [plan.composer.delta(rounds.ledger.states[number])], plan.composer.payload_since(0), in_guest=True
        )
        if again.complaint is not None and alike(again.complaint) == said:
            return True
    return False
