"""Claims that bob holds against crash states: one module or package for each kind, and the table of kinds in
kinds.py."""
