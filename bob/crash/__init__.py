"""Which crash states are legal, in what order to try them, and what is on the medium in each.

Pure: a :class:`~bob.trace.model.Trace` in, recipes and sector contents out (docs/design.md, section 3).

- ``device``: what the recorded device promises (write cache, atomic unit)
- ``legal``: the growth points, and how many crash states there are, exactly
- ``state``: one crash state as a recipe, and its plain reading
- ``payload``, ``image``: the sectors of a state, its key and its delta to the base
- ``drafts``, ``sampling``, ``search``: the order of search under a budget, and what it covered
"""
