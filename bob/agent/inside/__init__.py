"""bob's agent, run by ``python3 -S`` from one file; it needs Python 3.9's standard library alone, and nothing of
bob's."""
