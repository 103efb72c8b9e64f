"""Sandboxes on the host that run a file system's check on crash states (:mod:`bob.observe.host_checks`)."""

import threading
from contextlib import ExitStack

from bob.agent.loss import SandboxLost
from bob.errors import ImageError
from bob.guest.given_machine import GivenImage
from bob.image import Image
from bob.observe.host_checks import HostCheckers
from bob.progress import Progress
from bob.run.agents import Sandboxes
from bob.sandbox import bubblewrap


class CheckerSandboxes:
    """A set of sandboxes, one for each worker (a thread of the run that works with guests). The root directory in a
    sandbox is that of ``image``. Without sandboxes, guests run the check. There are no sandboxes if ``wanted`` is
    false, or if this machine cannot make one. In the second case, a message to ``progress`` says why. If a guest and
    the host recover a state differently, guests run all further checks."""

    def __init__(self, image: Image, wanted: bool, progress: Progress) -> None:
        self._image, self._progress = image, progress
        self._wanted = wanted and not isinstance(image, GivenImage)
        self._lock = threading.Lock()
        self._by_worker: dict[int, HostCheckers] = {}
        self._open = ExitStack()
        self._told: set[str] = set()

    def of_this_worker(self) -> HostCheckers | None:
        if not self._wanted:
            return None
        with self._lock:
            worker = threading.get_ident()
            if any(one.is_doubted for one in self._by_worker.values()):
                return None
            if worker not in self._by_worker:
                self._by_worker[worker] = self._made()
            return self._by_worker[worker]

    def close(self) -> None:
        """End all sandboxes."""
        with self._lock:
            self._wanted = False
            self._open.close()

    def _made(self) -> HostCheckers:
        checkers = HostCheckers(None, self._tell)
        if not bubblewrap.is_installed():
            self._tell(f"{bubblewrap.PACKAGE} is not installed")
            return checkers
        try:
            checkers.agent = self._open.enter_context(Sandboxes(self._progress.step).agent(self._image, None))
        except (SandboxLost, ImageError) as error:
            self._tell(error)
        return checkers

    def _tell(self, reason: object) -> None:
        if str(reason) not in self._told:
            self._told.add(str(reason))
            self._progress.step(f"guests run the file system's check: {reason}")
