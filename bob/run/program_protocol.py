"""Translate the system calls of a recorded program into bob's own operations. A *model* says which trees a crash may
leave after such operations. It knows only these operations, and not the system calls themselves. The operations lead
from the tree after the setup to the tree after a clean end."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from bob.agent.shared import ROOT, WORLD
from bob.errors import UsageError
from bob.guest.spec import Clock
from bob.observe.observation import Node, letters
from bob.program.program import Program, ProgramFile
from bob.program.transcript import ProgramCase
from bob.program.untraced import ASYNCHRONOUS
from bob.protocol.arguments import STORE
from bob.protocol.moments import moment_files, moments
from bob.protocol.outside_files import files_outside
from bob.protocol.protocol import LARGEST, protocol, without
from bob.protocol.replay import ReplayedProgram, other_modes, replayed, unlike
from bob.run.pool import ProgramGuests
from bob.run.program_recording import look_at_ends
from bob.text import printable

MOST_CHANGES = 20_000  # most calls of a program that change or sync something
MOST_BYTES = LARGEST  # most bytes of all files, with holes: bob builds their contents in memory, in blocks
MOST_NAMED = 4


class CannotBeModelled(Exception):
    """bob cannot ask models about the program. The message says why, in words for the user."""


def protocol_of(
    case: ProgramCase, before: Mapping[str, Node], after: Mapping[str, Node]
) -> tuple[ReplayedProgram, tuple[str, ...]]:
    """Return the calls of a program as a workload of bob's own operations, and notes for the user. Each note names
    something that the program did and that the workload leaves out. ``before`` is the tree after the setup, and
    ``after`` the tree after a clean end. Raise CannotBeModelled if bob cannot follow a call that changes the tree."""
    program, said = case.work, case.transcript
    try:
        effects = protocol(said.calls, ROOT, before, after)
        effects, logged = without(effects, program.is_log)
        if (extent := effects.extent) > MOST_BYTES:
            files, most = (f"{-(-size // 2**20):,} MiB" for size in (extent, MOST_BYTES))
            raise CannotBeModelled(f"too large for models: files of {files} with holes; the most is {most}")
        again = replayed(program.name, effects, before, said.tellings)
    except (ValueError, IndexError, KeyError) as error:
        raise CannotBeModelled(f"bob cannot follow its calls: {error}") from None
    unknown_calls = [call.name for call in said.calls if call.name in ASYNCHRONOUS and call.result is not None]
    if untold := list(dict.fromkeys([*effects.untold, *unknown_calls])):
        raise CannotBeModelled(f"not traced: {named(untold)}")
    if wrong := unlike(again.history, without_logs(program, before, after)):
        raise CannotBeModelled(f"its calls do not explain the tree after a clean end: {named(wrong)}")
    if again.outputs[-1] != said.output:
        raise CannotBeModelled("its calls do not explain its output")
    if len(again.calls) > MOST_CHANGES:
        raise CannotBeModelled(f"too large for models: {len(again.calls):,} calls that change or sync something")
    left = [f"these states leave out: {named(list(dict.fromkeys(effects.left_out)))}"] if effects.left_out else []
    if modes := other_modes(again.history, without_logs(program, before, after)):
        left.append(f"these states do not have the modes after a clean end: {named(modes)}")
    if flagged := flags_of({**before, **after}):
        left.append(f"these states leave out flags of files: {named(flagged)}")
    if logged:
        left.append(f"{_are_left_out(logged, 'its logs')}: {named(program.logs)}")
    if others := files_outside(said.calls, ROOT, WORLD):
        left.append(f"{_are_left_out(len(others), 'files elsewhere')}: {named(list(dict.fromkeys(others)))}")
    if any(call.name == STORE for call in said.calls):
        left.append("a store through a mapping counts as done just before the program's next call")
    return again, tuple(left)


def _are_left_out(calls: int, files: str) -> str:
    return (
        f"these states leave out {calls:,} calls on {files}"
        if calls > 1
        else f"these states leave out a call on {files}"
    )


def both_ends(guests: ProgramGuests, case: ProgramCase) -> tuple[Mapping[str, Node], Mapping[str, Node]]:
    """Return two trees: the tree after the setup, and the tree after a clean end of the program. Raise CannotBeModelled
    unless bob can see both trees."""
    ends = guests.ask(case.work, Clock.REAL, partial(look_at_ends, case=case), title="both ends")
    trees = [end.tree for end in ends if end.mounted and end.tree is not None]
    unseen = next((end.unseen for end in ends if end.unseen), None)
    if unseen or len(trees) != len(ends):
        words = "bob cannot see the tree after the setup or after a clean end"
        raise CannotBeModelled(f"{words}: {unseen}" if unseen else words)
    return trees[0], trees[1]


def moments_of(guests: ProgramGuests, case: ProgramCase) -> tuple[ProgramFile, ProgramFile]:
    """Return bob's own checker, for a program that lacks one, and the file that tells this checker about the recording
    ``case``. Raise UsageError if bob cannot follow the program's calls."""
    guests.progress.step(f"following the calls of {case.work.name}, since it has no checker")
    try:
        again, _notes = protocol_of(case, *both_ends(guests, case))
        return moment_files(moments(again))
    except (CannotBeModelled, ValueError) as error:
        raise UsageError(
            f"without a checker, bob must follow the program's calls: {error}", hint="give one by --check COMMAND"
        ) from None


def flags_of(tree: Mapping[str, Node]) -> list[str]:
    """Return in words the inode flags and project numbers of the files and directories in ``tree``."""
    found = []
    for path, node in sorted(tree.items()):
        words = [letters(node.flags), f"project {node.project}" if node.project else ""]
        if any(words):
            found.append(f"{' '.join(filter(None, words))} ({path})")
    return found


def without_logs(program: Program, before: Mapping[str, Node], tree: Mapping[str, Node]) -> Mapping[str, Node]:
    """Return ``tree``, but with the log files of the tree ``before``. Log files (not write-ahead logs) are the files
    that match the program's patterns ``logs``. Models leave out what a program writes to its log files. Therefore bob
    replaces these files before it compares the tree with the trees of models.

    Another file in ``tree`` may have the inode number that a log file has in ``before``. Therefore each log file gets a
    new number, unless it is a hard link to a file that is not a log."""
    if not program.logs:
        return tree
    own = {path: node for path, node in tree.items() if not program.is_log(path)}
    others = {node.inode for path, node in before.items() if not program.is_log(path)}
    return own | {
        path: node if node.inode in others else replace(node, inode=-node.inode)
        for path, node in before.items()
        if program.is_log(path)
    }


def named(words: Sequence[str]) -> str:
    """Return a text with the first few of ``words``, and with the number of words that are left out."""
    more = len(words) - MOST_NAMED
    return ", ".join(map(printable, words[:MOST_NAMED])) + (f" and {more} more" if more > 0 else "")
