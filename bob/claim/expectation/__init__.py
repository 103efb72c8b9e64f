"""Expectations of the tree after a crash by users of ``bob try``: their language, evaluation and claim."""
