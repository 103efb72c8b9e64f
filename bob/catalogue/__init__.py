"""The rows that a matrix may have: those of Table 1, and finer ones that models are made from.

sets.py         the sets of rows, and the probes of each
pairs.py        is X persisted before Y, for kinds of changes and how they are related
durability.py   what each call makes durable
units.py        up to which unit changes are whole
places.py       where a row stands in a grid: hundreds of rows are too many for one list
"""
