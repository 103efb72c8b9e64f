"""Claims that bob holds against crash states: one module or package for each kind, and their table in kinds.py."""
