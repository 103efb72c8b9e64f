"""bob from Python: the second front end, beside the command line.

functions   ``bob.probe`` and the others
calls       makes such a function from its declared options: signature, help, checks
stub        writes bob/__init__.pyi for editors and mypy
"""
