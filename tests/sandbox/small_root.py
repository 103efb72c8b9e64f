"""A small root for sandboxes, copied from this machine: Python, a shell, and the programs that bob's agent starts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

FOLDERS = ("dev", "etc", "proc", "root", "run", "sys", "tmp", "var/tmp", "usr/bin", "usr/lib")
PROGRAMS = ("sh", "sleep", "chroot", "setpriv", "python3")
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


def make_small_root(top: Path, owner: int) -> None:
    """Fill the folder ``top``; all in it belongs to ``owner``. It takes some 60 MB."""
    for name in FOLDERS:
        (top / name).mkdir(parents=True, exist_ok=True)
    for name in ("bin", "lib", "lib64"):
        (top / name).symlink_to("usr/lib" if name == "lib64" else f"usr/{name}")
    (top / "usr/lib64").symlink_to("lib")
    found = [Path(path) for name in PROGRAMS if (path := shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin"))]
    assert len(found) == len(PROGRAMS), f"one of {', '.join(PROGRAMS)} is missing in /usr/bin"
    for path in found:
        shutil.copy2(path, top / "usr/bin" / path.name)
    asked = [found[-1], "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"]
    standard = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    skipped = shutil.ignore_patterns("test", "idlelib", "ensurepip", "dist-packages", "config-*")
    shutil.copytree(standard, top / standard.relative_to("/"), ignore=skipped, ignore_dangling_symlinks=True)
    for library in libraries([*found, *standard.glob("lib-dynload/*.so")]):
        place = top / library.relative_to("/")
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(library, place)
    (top / "etc/secret").write_text("of the root")
    for path in (top, *top.rglob("*")):
        os.lchown(path, owner, owner)


def libraries(files: list[Path]) -> set[Path]:
    """The shared libraries that these need, and the loader."""
    said = subprocess.run(["ldd", *files], capture_output=True, text=True, check=False).stdout
    return {Path(path) for path in _LIBRARY.findall(said)}
