"""The package: an sdist, the wheel that is built from it, and bob from that wheel in an environment of its own.

Nothing is taken from a network: the dependencies that pyproject.toml declares, and theirs, are linked from the
environment that the tests run in, and nothing else is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bob import __version__
from bob.catalogue.probe_files import probe_names
from bob.errors import Exit

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
    if module.name != "bob.__main__":
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
    verdicts: list[str] = [cell.verdict.value for cell in run.result.configurations[0].properties]
    words: list[str] = [answer.expectation.text for answer in bob.try_("create /a", "mounts", fs="ext4").answers]
    folder: Path = bob.app("sqlite-rollback", fs="ext4")[1]
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
    assert 'Argument "fs" to "probe" has incompatible type "int"; expected "str"' in wrong
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
