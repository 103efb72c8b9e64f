"""``python -m bob``: the command line."""

import sys

from bob.errors import missing_package

try:
    from bob.cli.main import main
except ModuleNotFoundError as error:  # before bob can parse or draw anything
    missing = missing_package(error)
    if missing is None:
        raise
    print(f"bob: {missing.message}\nhint: {missing.hint}", file=sys.stderr)
    sys.exit(missing.exit_code)

main()
