"""bob from Python: the second front end, beside the command line.

functions      what Python may call, as ``bob.probe`` ...
calls          makes such a function from what it declares: signature, help, and checked arguments
arguments      each argument is of its annotated type
stub           writes bob/__init__.pyi, which editors and mypy read
"""
