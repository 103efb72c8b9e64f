"""The package: an sdist, the wheel that is built from it, and bob from that wheel in an environment of its own; what a
release refuses; and the Vagrantfile.

Nothing is taken from a network: the dependencies that pyproject.toml declares, and theirs, are linked from the
environment that the tests run in, and nothing else is.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from email import message_from_bytes
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bob import __version__
from bob.catalogue.probe_files import probe_names
from bob.catalogue.request import DEFAULT_IMAGE
from bob.errors import Exit
from bob.guest.spec import GuestSpec

ROOT = Path(__file__).parents[1]
DATA = ("probes", "guest-images", "reports/published", "reports/models/osdi14-linux-6.1")
SHIPPED = {"bob": "bob", **{name: f"bob/_data/{name}" for name in DATA}}
"""Folders of the working tree, and where a wheel has them."""


def files(folder: Path) -> Iterator[Path]:
    """The files below ``folder`` but for what Python makes, relative to it."""
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(folder)


def done(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """``command``, without what Python was told of this environment."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | environment
    return subprocess.run([str(one) for one in command], cwd=cwd, env=ours, capture_output=True, text=True, check=False)


def built(target: str, source: Path, folder: Path) -> Path:
    """The sdist or wheel of the tree ``source``."""
    ended = done(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder, cwd=source)
    assert ended.returncode == 0, ended.stderr
    [made] = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, unpacked."""
    archive = built("sdist", ROOT, tmp_path_factory.mktemp("sdist"))
    with tarfile.open(archive) as packed:
        packed.extractall(archive.parent, filter="data")
    return archive.parent / f"bob_prober-{__version__}"


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the sdist makes."""
    return built("wheel", sdist, tmp_path_factory.mktemp("wheel"))


def dependencies() -> set[str]:
    """The distributions that bob declares, and those that they do, by their names."""
    known: set[str] = set()
    left = ["bob-prober"]
    while left:
        for text in distribution(left.pop()).requires or ():
            wanted = Requirement(text)
            name = canonicalize_name(wanted.name)
            if name not in known and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
                known.add(name)
                left.append(name)
    return known


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with nothing of the working tree in it but ``clean``, an environment with the wheel."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder / "clean", with_pip=False)
    [packages] = (folder / "clean" / "lib").glob("python*/site-packages")
    for name in dependencies():
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(found.locate_file(top))))
    python = folder / "clean" / "bin" / "python"
    # With no index, pip refuses the wheel where something that it asks for is not there.
    ended = done(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", wheel, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return folder


def bob(elsewhere: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return done(elsewhere / "clean" / "bin" / "bob", *arguments, cwd=elsewhere, **environment)


def test_the_wheel_has_every_file_as_it_is(wheel: Path) -> None:
    expected: Mapping[str, Path] = {
        f"{there}/{path.as_posix()}": ROOT / here / path
        for here, there in SHIPPED.items()
        for path in files(ROOT / here)
    }
    with zipfile.ZipFile(wheel) as packed:
        found = {info.filename: info for info in packed.infolist() if ".dist-info/" not in info.filename}
        assert set(found) == set(expected)
        for name, path in expected.items():
            assert packed.read(name) == path.read_bytes(), name
            assert bool(found[name].external_attr >> 16 & 0o100) == bool(path.stat().st_mode & 0o100), name


def test_the_wheel_says_what_it_is_and_has_a_checksum_of_each_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        [about] = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        said = message_from_bytes(packed.read(about))
        scripts = packed.read(about.replace("METADATA", "entry_points.txt")).decode()
        record = packed.read(about.replace("METADATA", "RECORD")).decode()
        sums = {name: checksum for name, checksum, _size in csv.reader(record.splitlines()) if checksum}
        assert set(sums) == {name for name in packed.namelist() if not name.endswith("/RECORD")}
        for name, checksum in sums.items():
            digest = urlsafe_b64encode(sha256(packed.read(name)).digest()).rstrip(b"=").decode()
            assert checksum == f"sha256={digest}", name
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (said["Name"], said["Version"], said["Summary"]) == (project["name"], __version__, project["description"])
    assert set(said.get_all("Classifier", [])) >= set(project["classifiers"])
    assert said["Requires-Python"] == ">=3.11" and said["License-File"] == "LICENSE"
    asked = {
        canonicalize_name(Requirement(one).name) for one in said.get_all("Requires-Dist", []) if "extra" not in one
    }
    assert asked == {canonicalize_name(Requirement(one).name) for one in project["dependencies"]}
    assert {"[console_scripts]", "bob = bob.cli.main:main", "[pytest11]"} <= set(scripts.splitlines())
    assert said["Project-URL"] is None, "CONTRIBUTING.md says why"


def test_the_sdist_has_what_is_needed_to_go_on(sdist: Path) -> None:
    for name in ("run", "pyproject.toml", "constraints.txt", "LICENSE", "README.md", "docs/tutorial.md", "Vagrantfile"):
        assert (sdist / name).read_bytes() == (ROOT / name).read_bytes(), name
    assert set(files(ROOT / "tests")) == set(files(sdist / "tests"))
    assert not (sdist / ".venv").exists()


def test_doctor_runs_where_only_the_wheel_is(elsewhere: Path) -> None:
    ended = bob(elsewhere, "doctor")
    assert ended.returncode == Exit.DONE, ended.stdout + ended.stderr
    assert ended.stdout.endswith("a probe can run\n")
    assert "image debian-bookworm" in ended.stdout
    assert str(ROOT) not in ended.stdout


def test_everything_is_loaded_from_the_wheel(elsewhere: Path) -> None:
    script = """
import importlib, pkgutil, bob
for module in pkgutil.walk_packages(bob.__path__, "bob."):
    if module.name not in ("bob.__main__", "bob.cli.pytest_plugin"):  # pytest loads the latter
        importlib.import_module(module.name)
from bob.subject import file_systems, set_names
from bob.agent.client import agent_file
from bob.image import load_recipe, recipe_names
from bob.catalogue.probe_files import probe_names
from bob.report.published import osdi14, osdi14_reasons
assert agent_file() and set_names() and osdi14() and osdi14_reasons() and "ext4" in file_systems()
print(bob.__file__, *map(load_recipe, recipe_names()), *probe_names(), sep="\\n")
"""
    ended = done(elsewhere / "clean" / "bin" / "python", "-c", script, cwd=elsewhere)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(str(elsewhere / "clean"))
    assert ended.stdout.splitlines()[-len(probe_names()) :] == list(probe_names())
    assert str(ROOT) not in ended.stdout


USE = """
from pathlib import Path

import bob
from bob.errors import BobError
from bob.progress import Silent


class Mine(Silent):
    def step(self, text: str) -> None:
        print(text)


try:
    run = bob.probe("ext4", properties=["append-any"], budget=3, out=Path("run"), progress=Mine())
    verdicts: list[str] = [cell.verdict.value for cell in run.result.subjects[0].answers]
    words: list[str] = [answer.name for answer in bob.try_("create /a", "mounts", fs="ext4").answers]
    folder: Path = bob.app("sqlite-rollback", fs="ext4").folder
    print(bob.resume(folder).folder, bob.load("run").folder)
except BobError as error:
    print(error.hint or error.message)
bob.probe(fs=4)
"""


def test_its_types_are_known_to_who_uses_it(elsewhere: Path) -> None:
    (elsewhere / "use.py").write_text(USE)
    clean = elsewhere / "clean" / "bin" / "python"
    ended = done(sys.executable, "-m", "mypy", "--strict", "--python-executable", clean, "use.py", cwd=elsewhere)
    [wrong, told] = ended.stdout.splitlines()
    assert 'Argument "fs" to "probe" has incompatible type "int"; expected "str | PathLike[str]"' in wrong
    assert wrong.startswith(f"use.py:{len(USE.splitlines())}:") and told.startswith("Found 1 error")


def test_commands_find_their_files(elsewhere: Path) -> None:
    assert bob(elsewhere, "--version").stdout == f"bob {__version__}\n"
    assert bob(elsewhere, "probe", "new", "mine").returncode == Exit.DONE
    assert (elsewhere / "mine.toml").is_file()
    listed = bob(elsewhere, "image", "list", XDG_CACHE_HOME=str(elsewhere / "cache"))
    assert listed.returncode == Exit.DONE and "debian-bookworm" in listed.stdout


def test_a_broken_wheel_would_be_seen(sdist: Path, tmp_path: Path) -> None:
    """What hatchling leaves out without a word: a folder that is not named in pyproject.toml."""
    settings = (sdist / "pyproject.toml").read_text()
    (sdist / "pyproject.toml").write_text(settings.replace('probes = "bob/_data/probes"\n', ""))
    try:
        lacking = built("wheel", sdist, tmp_path)
    finally:
        (sdist / "pyproject.toml").write_text(settings)
    with pytest.raises(AssertionError):
        test_the_wheel_has_every_file_as_it_is(lacking)


# The release, and how bob is cited


def test_one_version_is_named_everywhere() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (
        str(cited["version"])
        == __version__
        == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    )
    assert cited["cff-version"] == "1.2.0" and cited["message"] and cited["title"] and cited["authors"]
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    assert headings[:2] == ["Unreleased", f"{__version__} - {cited['date-released']}"], (
        "the last release, and what is new"
    )
    assert {*re.findall(r"/bob:([0-9.]+)\"", (ROOT / "docs/machines.md").read_text())} <= {__version__}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [([], "release needs a directory"), (["--trial"], "release needs a directory"), (["{full}"], "is not empty")],
)
def test_a_release_that_cannot_be_is_refused(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "something").touch()
    ready = ROOT / ".venv" / "set-up"
    if not ready.is_file():
        pytest.skip("bob was not set up by ./run here")
    asked = [one.format(full=tmp_path) for one in arguments]
    ended = subprocess.run([ROOT / "run", "release", *asked], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr and "hint: " in ended.stderr


# The Vagrantfile: what it promises, and Vagrant's own word on it where Vagrant is installed. ./run does not install
# Vagrant, which takes some 300 MB with its Ruby: `apt-get install vagrant vagrant-libvirt`.

VAGRANTFILE = (ROOT / "Vagrantfile").read_text()
PROVIDERS = ("libvirt", "virtualbox")

needs_vagrant = pytest.mark.skipif(
    shutil.which("vagrant") is None, reason="vagrant is not installed: apt-get install vagrant vagrant-libvirt"
)


def test_it_has_room_for_a_guest_on_each_processor() -> None:
    [cpus], [memory] = (
        re.findall(r"^CPUS = (\d+)", VAGRANTFILE, flags=re.M),
        re.findall(r"^MEMORY_MIB = (\d+)", VAGRANTFILE, flags=re.M),
    )
    whole = GuestSpec.__dataclass_fields__["memory_mib"].default
    assert int(memory) >= int(cpus) * whole + 1024
    for provider in PROVIDERS:
        assert f"{provider}.cpus = CPUS" in VAGRANTFILE and f"{provider}.memory = MEMORY_MIB" in VAGRANTFILE


def test_guests_may_have_guests() -> None:
    assert "libvirt.nested = true" in VAGRANTFILE
    assert '"--nested-hw-virt", "on"' in VAGRANTFILE


def test_it_is_the_debian_of_the_image_and_run_provisions_it() -> None:
    assert f'config.vm.box = "debian/{DEFAULT_IMAGE.removeprefix("debian-")}64"' in VAGRANTFILE
    [script] = re.findall(r"<<~SHELL\n(.*?)^  SHELL$", VAGRANTFILE, flags=re.S | re.M)
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
    right = validated(VAGRANTFILE, provider, tmp_path)
    if f"provider '{provider}' could not be found" in right.stderr:
        pytest.skip("the plugin vagrant-libvirt is not installed: apt-get install vagrant-libvirt")
    assert (right.returncode, right.stdout) == (0, "Vagrantfile validated successfully.\n"), right.stderr
    slip = validated(VAGRANTFILE.replace(f"{provider}.cpus =", f"{provider}.cpuss ="), provider, tmp_path)
    assert slip.returncode != 0
    assert "cpuss" in slip.stderr
