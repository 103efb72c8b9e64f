"""``bob doctor``: says whether a *probe* (an experiment that crashes a file system in a guest) can run on this machine,
and if not, what to install."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from bob.cli.checks import Check, Health, checks
from bob.cli.commands import command
from bob.cli.output import console, is_stdout, present
from bob.errors import Exit
from bob.run import option_table as table
from bob.schema import Document

_STYLES = {Health.OK: "bob.holds", Health.MISSING: "bob.fails", Health.NOTE: "bob.unknown"}
_NAME_WIDTH = 31


class DoctorDocument(Document, frozen=True, tag_field="schema", tag="bob.doctor/1"):
    """The JSON document of `bob doctor`: all checks, and whether this machine is ready for a probe."""

    ready: bool
    checks: tuple[Check, ...]


@command()
def doctor(json_file: Path | None = table.JSON) -> Exit:
    """Check everything that a probe needs, and say how to get what is missing.

    A `note` is about something that bob can do without, or will make itself. A guest starts for a moment.

    \b
    Examples:
      bob doctor
      bob doctor --json - | jq '.checks[] | select(.state == "missing")'

    \b
    Exit codes:
      0   a probe can run
      4   something is missing
    """
    screen, found = console(), []
    for check in checks():
        found.append(check)
        if not is_stdout(json_file):
            _print(screen, check)
    missing = [check.name for check in found if check.state is Health.MISSING]
    end = f"a probe cannot run: {', '.join(missing)}" if missing else "a probe can run"
    document = DoctorDocument(not missing, tuple(found))
    present(json_file, document, lambda screen: screen.print(f"\n{end}", soft_wrap=True))
    return Exit.MISSING_PROGRAM if missing else Exit.DONE


def _print(screen: Console, check: Check) -> None:
    state = Text(f"{check.state.value:<8}", _STYLES[check.state])
    screen.print(state, f"{check.name:<{_NAME_WIDTH - 1}} ", check.found, sep="", soft_wrap=True)
    if check.hint and check.state is not Health.OK:
        screen.print(f"{'':8}{'hint':<{_NAME_WIDTH}}{check.hint}", style="bob.dim", soft_wrap=True)
