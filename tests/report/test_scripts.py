"""The scripts that make the references: each one tells what it does, where it was called in no way that it knows."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
SCRIPTS = [path for path in sorted((CHECKOUT / "reports").iterdir()) if path.is_file() and os.access(path, os.X_OK)]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_each_script_tells_how_it_is_called(script: Path) -> None:
    done = subprocess.run([script, "--help"], capture_output=True, text=True, check=False, cwd=CHECKOUT)
    assert done.returncode == 2
    assert f"reports/{script.name}" in done.stdout
    assert not done.stderr
