"""The effort that bob spends to find the outcomes of a workload's crash states. An *outcome* is what a mount of a crash
state shows."""

from collections.abc import Callable
from dataclasses import dataclass

from bob.observe.observation import Observation
from bob.subject import DEFAULT_AUDIT


@dataclass(frozen=True, slots=True)
class Effort:
    """The limits of one exploration. ``budget`` is the largest number of mounts, and ``seed`` the seed of all random
    draws. bob can predict the outcome of a state, or know it from another workload. ``audit`` is the part (0 to 1) of
    such states that bob mounts all the same, as a test. If ``predicting`` is False, bob predicts nothing, and mounts
    every state whose outcome it reports. If ``closely`` is True, outcomes include everything that a program could see,
    also all times and flags. If ``only_durable`` is True, bob only mounts states with nothing but the durable writes.

    A mixture is a set of torn states. In each of them, every sector of data is from one of two observed states
    (:mod:`bob.observe.mixtures`). ``mixing`` gets the observations of these two states, and returns whether bob can
    judge claims (what each crash state should satisfy) on the whole mixture. If not, bob does not use the mixture.
    Without ``mixing``, bob looks for no mixtures."""

    budget: int
    seed: int
    audit: float = DEFAULT_AUDIT
    predicting: bool = True
    closely: bool = False
    only_durable: bool = False
    mixing: Callable[[Observation, Observation], bool] | None = None
