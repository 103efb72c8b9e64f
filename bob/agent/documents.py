"""What the host tells the agent of a recording, for the rooms that ask."""

from bob.agent.inside.documents import Manner, OperationsDocument, ScriptsDocument, StackDocument, SubjectDocument

__all__ = ["Manner", "OperationsDocument", "ScriptsDocument", "StackDocument", "SubjectDocument"]
