"""Workloads for a file system without links."""

from __future__ import annotations

from bob.catalogue.probe_files import shipped_probes
from bob.workload.lacking import LACKABLE, without
from bob.workload.language import parse, write_one
from bob.workload.operations import Finish, Fsync, Operation, Workload

NO_LINKS = ("link", "symlink", "setxattr")


def workload(setup: str, operations: str, *finish: Operation) -> Workload:
    return Workload("w", tuple(parse(setup)), tuple(parse(operations)), Finish("f", finish))


def test_what_it_lacks_is_left_out() -> None:
    asked = workload("create /a; link /a /other", "append /a 10; link /a /b; symlink a /c; unlink /a")
    kept = without(asked, NO_LINKS)
    assert kept is not None
    assert [write_one(one) for one in (*kept.setup, *kept.operations)] == ["create /a", "append /a 10", "unlink /a"]
    assert without(asked, ()) == asked


def test_what_rests_on_it_is_left_out_too() -> None:
    assert without(workload("create /a", "link /a /b"), NO_LINKS) is None
    assert without(workload("create /a", "append /a 5; link /a /b; append /b 3"), NO_LINKS) is None
    assert without(workload("create /a; link /a /b", "rename /b /c"), NO_LINKS) is None
    assert without(workload("create /a", "append /a 5; link /a /b", Fsync("/b")), NO_LINKS) is None
    assert without(workload("create /a; link /a /b", "append /a 5"), NO_LINKS) is not None
    assert without(workload("mkdir /d; create /a", "link /a /d/b; rename /d /e; unlink /e/b"), NO_LINKS) is None
    assert without(workload("mkdir /d; create /a", "link /a /d/b; rename /d /e; unlink /a"), NO_LINKS) is not None


def test_a_file_that_only_it_opens_is_not_written_to() -> None:
    made = workload("create /a", "append /a 5; tmpfile / as t; append t 5; link t /b")
    assert without(made, ("tmpfile",)) is None
    assert without(workload("create /a", "append /a 5; tmpfile / as t; close t"), ("tmpfile",)) is None
    kept = without(
        workload("write /a 0 5", "append /a 5; mknod /p fifo; reflink /a /b; unlink /a"), ("mknod", "reflink")
    )
    assert kept is not None
    assert [write_one(one) for one in kept.operations] == ["append /a 5", "unlink /a"]


def test_every_property_is_still_asked() -> None:
    for probe in shipped_probes(()):
        kept = [one for workload in probe.workloads if (one := without(workload, NO_LINKS)) is not None]
        assert kept, probe.property.name
        done = [one for workload in kept for one in (*workload.setup, *workload.operations)]
        assert not any(LACKABLE[name](one) for name in NO_LINKS for one in done)
