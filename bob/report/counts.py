"""Phrases that say how many of all possible states bob explored. A *legal* state is a state of the disk that a crash
may leave. A *torn* state has a part of some write; the other states have whole writes only."""

from bob.answer.result import Allowed, SubjectResult
from bob.crash.coverage import States
from bob.text import LARGEST_IN_DIGITS, compact, plural, share


def whole_states(states: States) -> str:
    """Return in words how many legal states of whole writes were explored. Examples are ``all 4,096``, ``812 of 2^20``,
    ``37 % of 2^122``, and ``all 4,090 that mount; 6 do not``. Return an empty text if no state is legal."""
    if not states.legal_writes:
        return ""
    some, refused = _some_whole(states), states.unmountable_writes
    if not refused:
        return some
    do_not = "do not" if _are_all_that_mount(states) else "do not mount"
    that_mount = " that mount" if _are_all_that_mount(states) else ""
    return f"{some}{that_mount}; {compact(refused)} {do_not}"


def torn_states(states: States) -> str:
    """Return the explored share of the legal torn states, such as ``12 %``. Return an empty text if the share is
    unknown."""
    found = states.explored_torn
    if found is None and states.exhaustive:
        found = states.explored - states.legal_writes
    return share(found, states.legal_torn) if found is not None and states.legal_torn > 0 else ""


def of_model(found: Allowed) -> str:
    """Return in words how many crash states of a model bob has tried, such as ``12 % of 4,096 that it allows``. A model
    describes the states that a crash may leave."""
    if found.is_all or found.allowed is None:
        return "all that it allows" if found.is_all else "not all that it allows"
    least = "" if found.is_counted else "at least "
    some = share(min(found.tried, found.allowed - 1), found.allowed)
    return f"{some} of {least}{compact(found.allowed)} that it allows"


def explored(states: States) -> str:
    """Return in words how much was explored (``all 4,096 whole states, 12 % of the torn ones``), and how many states do
    not mount."""
    if not states.legal_writes:
        return ""
    what = "whole states" if states.legal_torn else "states"
    told = f"{_some_whole(states)} {what}{' that mount' if _are_all_that_mount(states) else ''}"
    if torn := torn_states(states):
        told = f"{told}, {torn} of the torn ones"
    return f"{told}; {compact(states.unmountable)} do not mount" if states.unmountable else told


def _some_whole(states: States) -> str:
    legal, found = states.legal_writes, states.explored_writes
    if found is None:
        return f"all {compact(legal)}" if states.exhaustive else f"some of {compact(legal)}"
    if found == legal or _are_all_that_mount(states):
        return f"all {compact(found)}"
    large = found >= LARGEST_IN_DIGITS and found * 1000 >= legal
    return f"{share(found, legal) if large else compact(found)} of {compact(legal)}"


def _are_all_that_mount(states: States) -> bool:
    """Return whether some legal states of whole writes do not mount, and bob explored each one that does."""
    known = (states.explored_writes or 0) + states.unmountable_writes
    return states.unmountable_writes > 0 and known == states.legal_writes


def examined(column: SubjectResult) -> str:
    """Return a sentence that says on how many different outcomes (trees of files after the mount) bob made two tests.
    These are the removal of all files, and the file system's checker."""
    outcomes = f"{column.examined:,} of {plural(column.examinable, 'outcome')}"
    return f"bob removed all files, and ran the file system's checker if it knows one, on the trees of {outcomes}"
