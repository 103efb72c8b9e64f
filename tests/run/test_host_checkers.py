"""Sandboxes of a run that check file systems: which workers have one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from bob.progress import Silent
from bob.run import host_checkers
from bob.run.host_checkers import CheckerSandboxes


class Told(Silent):
    """Collects the steps."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def step(self, text: str) -> None:
        self.steps.append(text)


def test_a_host_that_one_worker_doubts_checks_for_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    class Sandboxes:
        def __init__(self, _progress: object) -> None:
            pass

        @contextmanager
        def agent(self, *_: object) -> Iterator[object]:
            made.append(object())
            yield made[-1]

    monkeypatch.setattr(host_checkers, "Sandboxes", Sandboxes)
    monkeypatch.setattr(host_checkers.bubblewrap, "is_installed", lambda: True)
    progress, image = Told(), object()
    sandboxes = CheckerSandboxes(image, True, progress)  # type: ignore[arg-type]
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other, ThreadPoolExecutor(1) as third:
        first: Any = one.submit(sandboxes.of_this_worker).result()
        second: Any = other.submit(sandboxes.of_this_worker).result()
        assert [first.agent, second.agent] == made
        second.fail("it is gone")
        assert one.submit(sandboxes.of_this_worker).result() is first, "a lost sandbox is no doubt about the others"
        first.doubt("a guest recovered otherwise")
        for worker in (one, other, third):
            assert worker.submit(sandboxes.of_this_worker).result() is None
    assert len(made) == 2
    before = "guests run the file system's check: "
    assert progress.steps == [f"{before}it is gone", f"{before}a guest recovered otherwise"]
