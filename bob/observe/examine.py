"""A closer look at some crash states that mount: the file system's checker, and the removal of all that is there.

Each takes as long as many mounts. A checker looks at what holds a tree together, not at what is in the files: so of a
configuration each *shape* is examined once, that is, each distinct tree but for the contents of its files; and of each
workload one outcome more, drawn by the seed. Each is examined in the state that is easiest to explain. The result says
how many outcomes were examined, of how many.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random

from bob.crash.plan import Plan
from bob.observe.rounds import Rounds
from bob.observe.session import Complaint, Session
from bob.store import Troubled, alike

DRAWN = 1
"""So many outcomes of a workload are examined whatever their shapes are."""
MOST_EXAMINED = 12
"""Of a workload with more new shapes than this the others are left to the next one."""
CONTENTS = ("content", "xattrs", "mtime")
"""What a shape leaves out of a name."""

Shapes = set[tuple[str, str]]
"""The shapes that were examined, each with the name of its base. Threads share it."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What is wrong with states that mounted, by their indexes; ``normal`` is what is wrong, too, where no write of the
    recording was lost or kept, which no crash has done. ``outcomes`` were examined out of ``of``."""

    troubles: tuple[Troubled, ...]
    normal: tuple[str, ...]
    outcomes: int
    of: int


def examined(session: Session, rounds: Rounds, plan: Plan, seed: int, base: str, known: Shapes) -> Examined:
    """Examine some outcomes of ``rounds``, which are settled; with it, what the kernel said of each that was mounted.

    ``known`` are the shapes that were examined over ``base`` and others; the new ones will be in it. Raises as
    :meth:`Session.examine` does.
    """
    there = [number for number in rounds.easiest() if _is_whole(session, rounds.outcomes[number])]
    drawn = Random(f"{seed} examined").sample(there, min(DRAWN, len(there)))
    new: dict[tuple[str, str], int] = {}
    for number in (*drawn, *there):
        new.setdefault((base, _shape(session, rounds.outcomes[number])), number)
    fresh = [shape for shape in new if shape not in known][:MOST_EXAMINED]
    chosen = sorted({*drawn, *(new[shape] for shape in fresh)})
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
    known.update(fresh)
    normal = {alike(complaint): complaint.words for complaint in usual}
    return Examined(
        tuple(Troubled(number, *complaint) for number, complaint in wrong if alike(complaint) not in normal),
        tuple(sorted({normal[alike(complaint)] for _number, complaint in wrong if alike(complaint) in normal})),
        len(chosen),
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
