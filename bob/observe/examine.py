"""A closer look at some crash states that mount: the file system's checker, and the removal of all that is there.

Each takes as long as many mounts, so a few outcomes of each workload are examined, drawn by the seed, each in the state
that is easiest to explain. A checker looks at what holds a tree together, not at what is in the files: so no two of
them have the same *shape*, that is, trees that differ in the contents of files only. The result says how many outcomes
were examined, of how many, counting those with the shape of one that was.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random

from bob.crash.plan import Plan
from bob.observe.rounds import Rounds
from bob.observe.session import Complaint, Session
from bob.store import Troubled, alike

MOST_EXAMINED = 2
"""So many outcomes of a workload are examined at most."""
CONTENTS = ("content", "xattrs", "mtime")
"""What a shape leaves out of a name."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What is wrong with states that mounted, by their indexes; ``normal`` is what is wrong, too, where no write of the
    recording was lost or kept, which no crash has done. ``outcomes``, out of ``of``, have the shape of one that was
    examined."""

    troubles: tuple[Troubled, ...]
    normal: tuple[str, ...]
    outcomes: int
    of: int


def examined(session: Session, rounds: Rounds, plan: Plan, seed: int) -> Examined:
    """Examine some outcomes of ``rounds``, which are settled; with it, what the kernel said of each that was mounted.

    Raises as :meth:`Session.examine` does.
    """
    there = [number for number in rounds.easiest() if _is_whole(session, rounds.outcomes[number])]
    by_shape: dict[str, list[int]] = {}
    for number in Random(f"{seed} examined").sample(there, len(there)):
        by_shape.setdefault(_shape(session, rounds.outcomes[number]), []).append(number)
    alike_in_shape = list(by_shape.values())[:MOST_EXAMINED]
    chosen = sorted(several[0] for several in alike_in_shape)
    composer = plan.composer
    deltas = [composer.delta(rounds.states[number]) for number in chosen]
    found = session.examine(deltas, composer.payload_since(0)) if chosen else []
    wrong = [(number, complaint) for number, complaints in zip(chosen, found, strict=True) for complaint in complaints]
    wrong += [(number, complaint) for number, complaint in rounds.complaints.items() if number in rounds.outcomes]
    pristine = plan.controls[0]
    usual: list[Complaint] = []
    if wrong:  # or else nobody asks for the control
        control = rounds.states.index(pristine) if pristine in rounds.states else None
        usual += session.examine([composer.delta(pristine)], composer.payload_since(0))[0]
        usual += [rounds.complaints[control]] if control in rounds.complaints else []
    normal = {alike(complaint): complaint.words for complaint in usual}
    return Examined(
        tuple(Troubled(number, *complaint) for number, complaint in wrong if alike(complaint) not in normal),
        tuple(sorted({normal[alike(complaint)] for _number, complaint in wrong if alike(complaint) in normal})),
        sum(map(len, alike_in_shape)),
        len(there),
    )


def _is_whole(session: Session, outcome: int) -> bool:
    """Whether a state with this outcome mounted at once, and all could be read."""
    return session.findings.observation(outcome).mounted


def _shape(session: Session, outcome: int) -> str:
    """The tree of an outcome but for the contents of its files, as text."""
    tree = json.loads(session.findings.found[outcome])["tree"] or {}
    shape = {path: {key: value for key, value in entry.items() if key not in CONTENTS} for path, entry in tree.items()}
    return json.dumps(shape, sort_keys=True)
