"""The effort of finding the outcomes of a workload's crash states."""

from dataclasses import dataclass

from bob.subject import DEFAULT_AUDIT


@dataclass(frozen=True, slots=True)
class Effort:
    """The limits of one exploration: ``budget`` in mounts, the ``seed`` of all draws. ``audit`` is the share (0 to 1)
    of predicted or recalled states to mount all the same. Unless ``predicting``, only mounted states become known. If
    ``closely``, outcomes include everything that a program could see."""

    budget: int
    seed: int
    audit: float = DEFAULT_AUDIT
    predicting: bool = True
    closely: bool = False
