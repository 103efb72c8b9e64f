"""The command line: one module per command, and only here are exit codes and colours known.

main        the program; commands, ending   how commands are found, and how bob ends
options     what several commands take; output, display, tally   what they print, and show on the way
ci, github  what a CI is told; defaults   what bob.toml says, as defaults of options
checks      what bob doctor looks at; help_page   writes docs/cli.md; man   writes manual pages
"""
