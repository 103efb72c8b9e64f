"""Expectations of users of ``bob try`` about the tree after a crash: their language, their evaluation, and the claim
that each crash state satisfies them."""
