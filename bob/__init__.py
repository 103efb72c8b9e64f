"""bob, the Block Order Breaker: which persistence properties does a file system have?

The way of the data is the layout of this package (docs/design.md, section 1)::

    record -> enumerate (crash) -> observe -> judge -> report -> derive (apm)
"""

__version__ = "0.1.0"
