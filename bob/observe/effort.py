"""The effort that bob spends to find the outcomes of a workload's crash states."""

from collections.abc import Callable
from dataclasses import dataclass

from bob.observe.observation import Observation
from bob.subject import DEFAULT_AUDIT


@dataclass(frozen=True, slots=True)
class Effort:
    """The limits of one exploration: the ``budget`` in mounts, and the ``seed`` of all draws. ``audit`` is the share (0
    to 1) of predicted or recalled states that bob mounts all the same. If not ``predicting``, bob knows only mounted
    states. If ``closely``, outcomes include everything that a program could see. ``mixing`` returns whether bob can
    judge claims on all mixtures of the data of two observations (:mod:`bob.observe.mixtures`). Only then does bob look
    for these mixtures."""

    budget: int
    seed: int
    audit: float = DEFAULT_AUDIT
    predicting: bool = True
    closely: bool = False
    mixing: Callable[[Observation, Observation], bool] | None = None
