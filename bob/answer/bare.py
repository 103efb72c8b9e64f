"""Compare configurations with layers, such as RAID, to the same file system without layers, on a disk of its own. A
*subject* is one configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bob.answer.answer import Way
from bob.answer.result import SubjectResult
from bob.claim.verdict import Verdict

_JUDGED = (Verdict.HOLDS, Verdict.FAILS)


def beside_bare(subjects: Sequence[SubjectResult]) -> tuple[SubjectResult, ...]:
    """Return ``subjects`` with notes. Each subject with layers gets notes on the rows (properties) that are worse or
    better than on the same file system without layers. For that, ``subjects`` must also contain a subject with the same
    options and without layers. A row counts only if both subjects have it, each with the verdict HOLDS or FAILS. A
    further note says whether the first crash state that does not mount has another error than without layers."""
    bare = {_options(one): one for one in reversed(subjects) if not one.stack}
    return tuple(
        replace(one, notes=(*one.notes, *_compared(one, bare[_options(one)])))
        if one.stack and _options(one) in bare
        else one
        for one in subjects
    )


def _options(subject: SubjectResult) -> tuple[str, str, str]:
    return subject.fs, subject.mkfs_options, subject.mount_options


def _compared(stacked: SubjectResult, bare: SubjectResult) -> Iterator[str]:
    before = {answer.name: answer.verdict for answer in bare.answers}
    now = {answer.name: answer.verdict for answer in stacked.answers}
    both = [name for name in now if now[name] in _JUDGED and before.get(name) in _JUDGED]
    worse = [name for name in both if (before[name], now[name]) == _JUDGED]
    better = [name for name in both if (now[name], before[name]) == _JUDGED]
    if worse:
        yield f"worse than {bare.name} without layers: {', '.join(worse)}"
    if better:
        yield f"better than {bare.name} without layers: {', '.join(better)}"
    refused, once = stacked.unmountable, bare.unmountable
    if refused is not None and once is not None and _error(refused) != _error(once):
        other = f"some crash states do not mount for another reason than on {bare.name} without layers"
        yield f"{other}: {_error(refused)}"
    if refused is not None and once is None:
        yield f"worse than {bare.name} without layers: some crash states do not mount"
    elif both and not worse and not better:
        yield f"the same as {bare.name} without layers in {len(both)} of {len(now)} rows"


def _error(refused: Way) -> str:
    """Return the error of a mount, without the kernel's messages, which differ from device to device."""
    return refused.evidence.partition(": ")[0]
