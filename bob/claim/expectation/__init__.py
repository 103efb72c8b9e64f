"""Expectations of users of ``bob try`` about the tree after a crash: their language, evaluation and claim."""
