"""Properties of operations. rules.py has their rules. presence.py has the oracle, which decides from an observation
(the files that bob sees after a crash) which operations survived."""
