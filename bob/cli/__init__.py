"""The command line: one module for each command. Only this package knows exit codes and colours.

Several modules are shared by commands. ``commands`` and ``options`` connect to click. ``ending`` handles errors and
signals. ``output``, ``display`` and ``tally`` show results and progress. ``tables``, ``model_runs`` and
``run_directories`` serve the commands that write or read runs. ``ci`` and ``github`` report to a CI, and ``checks`` is
for bob doctor."""
