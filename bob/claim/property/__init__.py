"""Properties of operations. rules.py has their rules. presence.py has the oracle: it decides from an observation (the
files that bob sees after a crash) which operations survived."""
