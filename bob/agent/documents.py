"""What the host tells the agent of a recording, for the rooms that ask."""

from bob.agent.inside.documents import LayerDocument, Manner, OperationsDocument, ScriptsDocument, SubjectDocument

__all__ = ["LayerDocument", "Manner", "OperationsDocument", "ScriptsDocument", "SubjectDocument"]
