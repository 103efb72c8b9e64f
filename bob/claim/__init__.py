"""Claims that bob checks on crash states. Each kind of claim has one module or package, and kinds.py has the table of
kinds."""
