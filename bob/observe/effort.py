"""How much is done to find the outcomes of a workload's crash states."""

from __future__ import annotations

from dataclasses import dataclass

from bob.subject import DEFAULT_AUDIT


@dataclass(frozen=True, slots=True)
class Effort:
    """What one exploration may spend.

    ``budget`` is in mounts, ``seed`` draws what is drawn, ``audit`` is the share (0 to 1) of what was predicted or
    recalled that is mounted all the same. Where not ``predicting``, up to ``budget`` crash states are mounted, and no
    others become known; the outcomes are the same. Where it is to look ``closely``, outcomes differ in
    all that a program could see.
    """

    budget: int
    seed: int
    audit: float = DEFAULT_AUDIT
    predicting: bool = True
    closely: bool = False
