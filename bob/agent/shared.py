"""Names and types that are used both by the agent in the guest and by its client on the host. Only modules in bob/agent
import :mod:`bob.agent.inside`; all other modules of bob import these names from here."""

from bob.agent.inside.built_trees import CHUNK, HOLE
from bob.agent.inside.documents import LayerDocument, Manner, OperationsDocument, ScriptsDocument, SubjectDocument
from bob.agent.inside.foreign_machine import BOOT
from bob.agent.inside.mounts import ROOT
from bob.agent.inside.nodes import NodesDocument, seconds_of_check
from bob.agent.inside.port import PORT_NAME, USES_PORT
from bob.agent.inside.ring_buffer import kind_at, places
from bob.agent.inside.sandboxed import START
from bob.agent.inside.world import HOME, LOWER, WORLD, WORLD_SERIAL

__all__ = [
    "BOOT", "CHUNK", "HOLE", "HOME", "LOWER", "PORT_NAME", "ROOT", "START", "USES_PORT", "WORLD", "WORLD_SERIAL",
    "LayerDocument", "Manner", "NodesDocument", "OperationsDocument", "ScriptsDocument", "SubjectDocument", "kind_at",
    "places", "seconds_of_check",
]  # fmt: skip
