"""A closer look at some crash states that mount: the file system's checker, and the removal of all that is there.

Each takes as long as many mounts, so a few outcomes of each workload are examined, drawn by the seed, each in the state
that is easiest to explain. A checker looks at what holds a tree together, not at what is in the files: so no two of
them have the same *shape*, that is, trees that differ in the contents of files only. The shape of the tree before the
operations comes up in nearly every workload, so it is left to those in which nothing else does.

What the kernel said of a state counts if it says so again when the state is mounted anew. Or else no witness would show
it: a warning may hang on what happened to be in the kernel's memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from bob.crash.plan import Plan
from bob.observe.easiest import Easiest
from bob.observe.observation import shape
from bob.observe.observations import StateTrouble, alike
from bob.observe.rounds import Rounds
from bob.observe.session import Complaint, Session

MOST_EXAMINED = 3
"""So many outcomes of a workload are examined at most."""
ATTEMPTS, PAUSE_SECONDS = 3, 6.0
"""So often is it tried to have the kernel say a thing again, with pauses in between: of many messages it prints only so
many in 5 s (DEFAULT_RATELIMIT_INTERVAL in include/linux/ratelimit_types.h)."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What is wrong with states that mounted, by their indexes; ``normal`` is what is wrong, too, where no write of the
    recording was lost or kept, which no crash has done; ``passing`` what the kernel said once, and not again of the
    same disk. ``outcomes`` are the numbers of those that were examined."""

    troubles: tuple[StateTrouble, ...]
    normal: tuple[str, ...]
    passing: tuple[str, ...]
    outcomes: tuple[int, ...]


NOT_EXAMINED = Examination((), (), (), ())


def examined(session: Session, rounds: Rounds, plan: Plan, seed: int) -> Examination:
    """Examine some outcomes of ``rounds``, which are settled; with it, what the kernel said of each that was mounted.

    Raises as :meth:`Session.examine` does.
    """
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
    if wrong:  # or else no caller asks for the control
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
    """The states of which the kernel complained, by what it said."""
    found: dict[tuple[str, str], list[int]] = {}
    for number, complaint in rounds.mounts.complaints.items():
        if number in rounds.mounts.outcomes:
            found.setdefault(alike(complaint), []).append(number)
    yield from found.values()


def _is_said_again(session: Session, rounds: Rounds, plan: Plan, number: int) -> bool:
    """Whether the kernel says of a state what it has said, when it is mounted anew."""
    said = alike(rounds.mounts.complaints[number])
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_SECONDS)
        [again] = session.mount([plan.composer.delta(rounds.ledger.states[number])], plan.composer.payload_since(0))
        if again.complaint is not None and alike(again.complaint) == said:
            return True
    return False
