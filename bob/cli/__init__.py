"""The command line: one module per command, and only here are exit codes and colours known.

main        the program; commands, ending   how commands are found, and how bob ends
options     click's options, made from what a command declares
output      what commands print; display, tally   what they show on the way; run_directories   and what they keep
tables      a run that makes a table, on one kernel or several; model_runs   the runs that models are made from
ci, github  what a CI is told
checks      what bob doctor looks at; help_page   writes docs/cli.md; man   writes manual pages
"""
