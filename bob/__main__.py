"""``python -m bob``: the command line."""

from bob.cli.main import main

main()
