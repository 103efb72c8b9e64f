"""Recipes in, observations out: the crash states of one workload in one guest."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

from bob.config import Configuration
from bob.crash.image import Run
from bob.guest.agent_client import Agent
from bob.observe.observation import Observation, decode
from bob.record.base import Base, put_base

PREPARE_TIMEOUT = 120.0
STATE_TIMEOUT = 60.0
"""How long one crash state may take before its guest counts as hung, and how long preparing may (host seconds)."""


class Session:
    """The scratch device of one workload in one guest.

    An *outcome* is a number for an observation: states with equal observations have the same number.
    """

    def __init__(
        self, agent: Agent, configuration: Configuration, base: Base, floor: Sequence[Run], payload: bytes
    ) -> None:
        self._agent = agent
        self._chunks: dict[int, bytes] = {}
        self._sent = len(payload)
        self.outcomes: list[Observation] = []
        put_base(agent, base)
        packed = zlib.compress(payload, 1)
        fs = configuration.fs
        recovery = {
            "fs": fs.driver,
            "options": configuration.mount_options,
            "check": list(fs.check),
            "repair": list(fs.repair),
        }
        agent.ask(
            "observe_prepare",
            timeout=PREPARE_TIMEOUT,
            base=base.name,
            recovery=recovery,
            floor=_flat(floor),
            payload=len(packed),
            blob=packed,
        )

    def observe(self, deltas: Sequence[Sequence[Run]], payload: bytes) -> list[int]:
        """The outcome of each state; ``payload`` is all of it, of which the guest is sent what it does not have.

        Raises GuestLost when the guest does not come back with all of them.
        """
        new = payload[self._sent :]
        self._sent = len(payload)
        header, blob = self._agent.ask(
            "observe",
            timeout=STATE_TIMEOUT + len(deltas),
            states=[_flat(delta) for delta in deltas],
            blob=zlib.compress(new, 1) if new else b"",
        )
        contents = zlib.decompress(blob)
        position = 0
        for length in header["chunks"]:
            self._chunks[len(self._chunks)] = contents[position : position + length]
            position += length
        self.outcomes.extend(decode(json.loads(found), self._chunks) for found in header["new_outcomes"])
        numbers: list[int] = header["outcomes"]
        return numbers


def _flat(runs: Sequence[Run]) -> list[int]:
    return [number for run in runs for number in run]
