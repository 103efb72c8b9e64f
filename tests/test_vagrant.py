"""The Vagrantfile: what it promises, and Vagrant's own word on it where Vagrant is installed.

./run does not install Vagrant, which takes some 300 MB with its Ruby: `apt-get install vagrant vagrant-libvirt`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bob.guest.spec import GuestSpec
from bob.request import DEFAULT_IMAGE

FILE = Path(__file__).parents[1] / "Vagrantfile"
TEXT = FILE.read_text()
PROVIDERS = ("libvirt", "virtualbox")

needs_vagrant = pytest.mark.skipif(
    shutil.which("vagrant") is None, reason="vagrant is not installed: apt-get install vagrant vagrant-libvirt"
)


def test_it_has_room_for_a_guest_on_each_processor() -> None:
    [cpus], [memory] = (
        re.findall(r"^CPUS = (\d+)", TEXT, flags=re.M),
        re.findall(r"^MEMORY_MIB = (\d+)", TEXT, flags=re.M),
    )
    whole = GuestSpec.__dataclass_fields__["memory_mib"].default
    assert int(memory) >= int(cpus) * whole + 1024
    for provider in PROVIDERS:
        assert f"{provider}.cpus = CPUS" in TEXT and f"{provider}.memory = MEMORY_MIB" in TEXT


def test_guests_may_have_guests() -> None:
    assert "libvirt.nested = true" in TEXT
    assert '"--nested-hw-virt", "on"' in TEXT


def test_it_is_the_debian_of_the_image_and_run_provisions_it() -> None:
    assert f'config.vm.box = "debian/{DEFAULT_IMAGE.removeprefix("debian-")}64"' in TEXT
    [script] = re.findall(r"<<~SHELL\n(.*?)^  SHELL$", TEXT, flags=re.S | re.M)
    assert "./run doctor" in script
    assert "apt-get" not in script, "./run knows what is needed"


def validated(text: str, provider: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What ``vagrant validate`` says of the Vagrantfile ``text``; nothing is started, and no network is used."""
    (folder / "Vagrantfile").write_text(text)
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    # Vagrant's own check of the settings for VirtualBox asks first whether VirtualBox is there, and which.
    (tools / "VBoxManage").write_text("#!/bin/sh\necho 7.0.14r161095\n")
    (tools / "VBoxManage").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "VAGRANT_HOME": str(folder / "home"),
        "VAGRANT_DEFAULT_PROVIDER": provider,
        "VAGRANT_CHECKPOINT_DISABLE": "1",
    }
    command = ["vagrant", "validate"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@needs_vagrant
@pytest.mark.parametrize("provider", PROVIDERS)
def test_vagrant_validates_it(tmp_path: Path, provider: str) -> None:
    done = validated(TEXT, provider, tmp_path)
    if f"provider '{provider}' could not be found" in done.stderr:
        pytest.skip("the plugin vagrant-libvirt is not installed: apt-get install vagrant-libvirt")
    assert (done.returncode, done.stdout) == (0, "Vagrantfile validated successfully.\n"), done.stderr
    slip = validated(TEXT.replace(f"{provider}.cpus =", f"{provider}.cpuss ="), provider, tmp_path)
    assert slip.returncode != 0
    assert "cpuss" in slip.stderr
