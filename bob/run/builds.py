"""Run the script ``build`` of a program's folder with the libraries of a guest, so that the programs that it makes run
there."""

import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bob.errors import MissingProgramError, UsageError
from bob.image import ensure, ensure_world, unpacked
from bob.program.folder import APP
from bob.program.program import BUILD
from bob.progress import Progress
from bob.sandbox import bubblewrap


def build_program(folder: Path, image_name: str, progress: Progress) -> list[str]:
    """Run the script ``build`` in a copy of ``folder``, in a sandbox without a network whose root has the packages of
    the guest image ``image_name``. Copy back the files that it made or changed, and return their paths. The output of
    the script goes to standard error. Raises UsageError if the script fails. Raises MissingProgramError if this machine
    cannot make a sandbox."""
    packages = APP.packages_to_build(folder)
    image = ensure(image_name, progress.step)
    why = bubblewrap.why_not() if bubblewrap.is_installed() else f"{bubblewrap.PACKAGE} is not installed"
    if why is not None:
        hint = f"run {folder / BUILD} in a container with the Debian of {image.name}, or link statically"
        raise MissingProgramError(f"bob cannot make a sandbox here: {why}", hint=hint)
    world = ensure_world(image, packages, progress.step)
    root = unpacked(world or image.root, bubblewrap.owner(), progress.step)
    progress.step(f"running {folder / BUILD} in the system of {image.name}")
    with tempfile.TemporaryDirectory(prefix="bob-build-") as scratch:
        top = Path(scratch)
        top.chmod(0o755)
        shutil.copytree(folder, top / "program")
        (top / "tmp").mkdir()
        if bubblewrap.owner() != os.geteuid():
            for path in (top, *top.rglob("*")):
                os.lchown(path, bubblewrap.owner(), bubblewrap.owner())
        inside = f"cd {bubblewrap.SHARED}/program && export TMPDIR={bubblewrap.SHARED}/tmp && exec ./{BUILD}"
        words = bubblewrap.confined(root, ["sh", "-c", inside], top)
        code = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(), check=False).returncode
        if code:
            hint = "build_packages in app.toml names the Debian packages that it needs; there is no network"
            raise UsageError(f"{folder / BUILD} failed ({code})", hint=hint)
        return _taken(top / "program", folder)


def _taken(made: Path, folder: Path) -> list[str]:
    """Copy the files that differ from ``made`` to ``folder``, and return their paths. Symlinks are left out."""
    taken = []
    for path in sorted(made.rglob("*")):
        there = folder / path.relative_to(made)
        if path.is_symlink() or not path.is_file():
            continue
        if there.is_file() and there.stat().st_mode == path.stat().st_mode and filecmp.cmp(path, there, shallow=False):
            continue
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, there)
        shutil.copymode(path, there)
        taken.append(str(path.relative_to(made)))
    return taken
