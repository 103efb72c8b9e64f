"""Properties of operations: rules (rules.py), and the oracle that reads an observation (presence.py)."""
