"""The kind of a cluster's vulnerability, as Table 2 of the paper PACE (OSDI'16) names it: the consequence, and whether
old trees on a single node are enough. bob takes both from what the check says."""

import re

from bob.answer.answer import ClusterHarm, ClusterKind
from bob.program.answer import Consequence

_HEALED = re.compile(r"\(a window: after \d+ s all is well\)$")  # bob's agent says so (bob/agent/inside/nodes.py)
_HARMS = {
    Consequence.LOST: (ClusterHarm.LOSS, ClusterHarm.WINDOW_OF_LOSS),
    Consequence.CORRUPT: (ClusterHarm.CORRUPTION, ClusterHarm.WINDOW_OF_CORRUPTION),
    Consequence.CANNOT_OPEN: (ClusterHarm.UNAVAILABLE, ClusterHarm.WINDOW_OF_UNAVAILABILITY),
    Consequence.UNAVAILABLE: (ClusterHarm.UNAVAILABLE, ClusterHarm.WINDOW_OF_UNAVAILABILITY),
}


def cluster_kind(consequence: Consequence, evidence: str, told: bytes, behind: tuple[int, ...]) -> ClusterKind | None:
    """Return the kind of a vulnerability with this ``consequence`` and the checker's words ``evidence``. Before the
    crash, the client had written ``told``; the nodes ``behind`` have an old tree. Return None if the exit code of the
    checker does not say the kind."""
    if consequence not in _HARMS:
        return None
    harm = _HARMS[consequence][_HEALED.search(evidence) is not None]
    if not told:  # nothing was acknowledged, so what is lost is older
        harm = {
            ClusterHarm.LOSS: ClusterHarm.LOSS_OF_OLD,
            ClusterHarm.WINDOW_OF_LOSS: ClusterHarm.WINDOW_OF_LOSS_OF_OLD,
        }.get(harm, harm)
    return ClusterKind(harm, len(behind) > 1)
