"""bob's agent, run by ``python3 -S`` from one file. It imports the standard library of Python 3.9 alone."""
