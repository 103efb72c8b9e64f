"""The argument of the commands of ``bob trace``: a block log."""

from pathlib import Path

from bob.errors import UsageError
from bob.options import option
from bob.run.option_paths import EXISTING_FILE
from bob.trace.log import LogReader

LOG: Path = option("LOG", "", EXISTING_FILE)


def opened_log(log: Path, *, past_count: bool) -> LogReader:
    """Return a reader of the log in the file ``log``. Raise UsageError if it cannot be read, and the errors of
    :class:`LogReader`."""
    try:
        return LogReader(log, past_count=past_count)
    except OSError as error:
        raise UsageError(f"cannot read {log}: {error.strerror}") from error
