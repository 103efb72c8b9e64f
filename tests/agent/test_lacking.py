"""What a file system is said to lack is what its kernel refuses, or takes and does not do; and nothing else."""

from __future__ import annotations

import pytest

from bob.errors import UsageError
from bob.record.base import make_base
from bob.record.recorder import record
from bob.subject import configuration, file_systems
from bob.trace.completion import Completion
from bob.workload.lacking import LACKABLE
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload

from .conftest import Inhabited

pytestmark = pytest.mark.vm

EXAMPLES = {
    "link": ["link /a /b"],
    "symlink": ["symlink a /b"],
    "setxattr": ["setxattr /a user.x 10"],
    "chmod": ["chmod /a 600", "chown /a 1000:100"],
    "noreplace": ["rename /a /b noreplace"],
    "exchange": ["rename /a /c exchange"],
    "keep": ["fallocate /a 4096 8192 keep"],
    "punch": ["fallocate /a 0 4096 punch"],
    "zero": ["fallocate /a 0 4096 zero", "fallocate /a 0 4096 zero-keep"],
}
SETUP = tuple(parse("write /a 0 8192; create /c"))


@pytest.mark.parametrize("name", file_systems())
def test_what_it_lacks_is_what_the_kernel_refuses(recording: Inhabited, name: str) -> None:
    assert set(EXAMPLES) == set(LACKABLE)
    made = configuration(name)
    base = make_base(recording.agent, made, SETUP)
    refused: dict[str, set[bool]] = {}
    for word, texts in EXAMPLES.items():
        for text in texts:
            operations = tuple(parse(text))
            assert LACKABLE[word](operations[0])
            workload = Workload("one", SETUP, operations, Finish("sync", tuple(parse("sync"))))
            try:
                taken = record(recording.agent, made, base, workload, virtual=True, completion=Completion.PROMPT)
            except UsageError:
                is_refused = True
            else:
                after = taken.status_after.get("/a")
                # vfat takes a mode and an owner, and keeps neither.
                is_refused = word == "chmod" and after is not None and (after.mode, after.uid) == (0o755, 0)
            refused.setdefault(word, set()).add(is_refused)
    assert {word for word, said in refused.items() if said == {True}} == set(made.fs.lacks)
    assert all(len(said) == 1 for said in refused.values()), refused
