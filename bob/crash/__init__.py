"""Legal crash states, the order of search, and the content of the medium in each.

Pure: a :class:`~bob.trace.model.Trace` in, recipes and sector contents out (docs/design.md, section 3).
"""
