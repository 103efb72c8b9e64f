"""A crash state for people without bob: the image is the state, byte for byte, and the script is one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import samples_of_runs as samples
from witness.test_witness import document, stored

from bob.errors import StoreError
from bob.trace.model import SECTOR_BYTES
from bob.witness import document as witness
from bob.witness.keep import keep, text


def test_the_image_is_the_crash_state(tmp_path: Path) -> None:
    read = witness.read(stored(tmp_path, document()))
    image, script = keep(read, tmp_path / "kept")
    wanted = bytearray(samples.BASE.image())
    for sector, data in read.runs:
        wanted[sector * SECTOR_BYTES : sector * SECTOR_BYTES + len(data)] = data
    assert image.read_bytes() == bytes(wanted)
    assert os.access(script, os.X_OK)
    subprocess.run(["sh", "-n", str(script)], check=True)


def test_the_script_says_what_it_shows(tmp_path: Path) -> None:
    read = witness.read(stored(tmp_path, document()))
    told = text(read)
    assert f"# Found after the crash: {read.evidence}" in told
    assert "#   1 write /a 0 512" in told
    assert 'mount -t ext4 -o loop,data=ordered "$copy" "$mnt"' in told
    for line in told.splitlines():
        assert not line.startswith("# ") or "$(" not in line


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot write"):
        keep(witness.read(stored(tmp_path, document())), tmp_path / "file" / "kept")
