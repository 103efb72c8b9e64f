"""Properties of operations: their rules (rules.py), and the oracle that decides which operations an observation shows
(presence.py)."""
