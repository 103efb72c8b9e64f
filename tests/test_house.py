"""What may know what: the pure rooms never reach the guest (docs/design.md, section 6)."""

from __future__ import annotations

import subprocess
import sys

import pytest

PURE = ("trace", "crash", "judge", "rows", "report", "workload", "blocks", "story", "expect", "apm")

IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
print(*sorted(name for name in sys.modules if name.startswith(("bob.guest", "bob.image", "libvirt", "paramiko"))))
"""


@pytest.mark.parametrize("room", PURE)
def test_a_pure_room_is_imported_without_the_guest(room: str) -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL, f"bob.{room}"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
