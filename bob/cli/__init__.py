"""The command line: one module per command. Only this package knows exit codes and colours.

Its shared modules are commands and options (click), ending (errors, signals), and output, display and tally (results,
progress). Kinds of runs have tables, model_runs and run_directories; a CI has ci and github; bob doctor has checks.
"""
