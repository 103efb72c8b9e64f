"""What a user of ``bob try`` expects of the tree after a crash.

syntax.py, language.py  how it is written
evaluate.py             whether it holds in an observation
expected.py             the claim
"""
