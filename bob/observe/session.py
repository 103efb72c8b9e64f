"""Recipes in, observations out: the crash states of one workload in one guest."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from bob.config import Configuration
from bob.crash.image import Run
from bob.guest.agent_client import Agent
from bob.observe.observation import Findings
from bob.record.base import put_base
from bob.trace.base import Base

PREPARE_TIMEOUT = 120.0
STATE_TIMEOUT = 60.0
"""How long one crash state may take before its guest counts as hung, and how long preparing may (host seconds)."""


class Session:
    """The scratch device of one workload in one guest.

    An *outcome* is the number of an observation in ``findings``: states with equal observations have the same one.
    """

    def __init__(
        self, agent: Agent, configuration: Configuration, base: Base, floor: Sequence[Run], payload: bytes
    ) -> None:
        self._agent = agent
        self.findings = Findings()
        self._sent = len(payload)
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
        self.findings.add(header["new_outcomes"], header["chunks"], zlib.decompress(blob))
        numbers: list[int] = header["outcomes"]
        return numbers


def _flat(runs: Sequence[Run]) -> list[int]:
    return [number for run in runs for number in run]
