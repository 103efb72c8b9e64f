"""Run mmdebstrap in the way that this machine permits, so that its processes and mounts end with the build."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from bob.errors import MissingProgramError
from bob.image.failure import VARIABLE, explained
from bob.image.recipe import Recipe

#: The programs of a build, and the Debian package of each.
PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "mkfs.erofs": "erofs-utils",
    "cpio": "cpio",
    "ssh-keygen": "openssh-client",
    "setpriv": "util-linux",
    "unshare": "util-linux",
}
USER_PROGRAMS = {"newuidmap": "uidmap"}  # an ordinary user, who builds in a user namespace, needs this, too
FAKE_PROGRAMS = {"fakechroot": "fakechroot", "fakeroot": "fakeroot"}  # a user without the right to mount or chroot does


class BuildMode(StrEnum):
    """A way to build a Debian root. All ways but the last two need the right to make namespaces."""

    ROOT = "as root, in namespaces of its own"
    USER = "in a user namespace"
    CHROOT = "as root, without mounts"  # as in an ordinary container
    FAKE = "with fakechroot"  # as in a container without any capability

    @property
    def word(self) -> str:
        return {
            BuildMode.ROOT: "root",
            BuildMode.USER: "unshare",
            BuildMode.CHROOT: "root",
            BuildMode.FAKE: "fakechroot",
        }[self]


def build_mode() -> BuildMode:
    """Return the best way that works here. This function tries each one with a trivial program."""
    if _is_root():
        if _works([*_NAMESPACES, "true"]):
            return BuildMode.ROOT
        return BuildMode.CHROOT if _works(["chroot", "/", "true"]) else BuildMode.FAKE
    # By mmdebstrap, since Ubuntu's AppArmor permits a user namespace to it and not to unshare.
    is_there = shutil.which("mmdebstrap") is not None
    return BuildMode.FAKE if is_there and not _works(["mmdebstrap", "--unshare-helper", "true"]) else BuildMode.USER


def _works(command: Sequence[str]) -> bool:
    try:
        return not subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60).returncode
    except (OSError, subprocess.SubprocessError):
        return False


# A line "I: doing this..." is a step. Steps with a path, and all other lines, are details for the log.
_STEP = re.compile(r"I: ([^/]*)\.\.\.")
_MEND_LINKS = """
root=$1 find "$1" -lname "$1/*" -exec sh -c '
for link; do to=$(readlink "$link"); ln -sfnT "${to#"$root"}" "$link"; done' sh {} +
"""
_NAMESPACES = ("unshare", "--mount", "--propagation", "unchanged", "--pid", "--fork", "--kill-child")

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def programs() -> dict[str, str]:
    """Return the programs that a build needs on this machine, and the Debian package of each."""
    more = {BuildMode.USER: USER_PROGRAMS, BuildMode.FAKE: FAKE_PROGRAMS}
    return PROGRAMS | more.get(build_mode(), {})


def check_programs() -> None:
    """Raise MissingProgramError if this machine lacks a program that a build needs, or Debian's archive keys. The error
    names the first program that is missing."""
    for program, package in programs().items():
        if shutil.which(program) is None:
            raise MissingProgramError(
                f"{program} is needed to build a guest image", hint=f"install it: apt-get install {package}"
            )
    if not KEYRING.exists():
        raise MissingProgramError(
            "Debian's archive keys are needed to build a guest image",
            hint="install them: apt-get install debian-archive-keyring",
        )


def joined(clean: str, disk: str) -> str:
    """Return the hook that runs the shell commands ``clean`` in the new root ("$1"), and then ``disk``, which make a
    disk of the root. fakechroot lets absolute symlinks lead to the root's place on this machine, and needs them like
    this. So they change in between."""
    return clean + (_MEND_LINKS if build_mode() is BuildMode.FAKE else "") + disk


def run(
    recipe: Recipe,
    packages: Sequence[str],
    hooks: Iterable[str],
    environment: Mapping[str, str],
    log: Path,
    progress: Callable[[str], None],
    setup: Iterable[str] = (),
) -> None:
    """Make a Debian root with ``packages`` from the recipe's suite. The shell commands ``setup`` run before the
    packages are installed. The commands ``hooks`` run afterwards, and copy files out of the root, which is then
    removed. mmdebstrap's output goes to the file ``log``, and ``progress`` is called with each step. The environment
    variable BOB_MIRROR replaces mmdebstrap's mirror. Raises ImageError if mmdebstrap fails."""
    mirror = os.environ.get(VARIABLE)
    command = [
        *_confined(),
        "mmdebstrap",
        f"--mode={build_mode().word}",
        "--format=null",
        f"--keyring={KEYRING}",
        "--variant=minbase",
        f"--architectures={recipe.architecture}",
        f"--include={','.join(packages)}",
        *(f"--setup-hook={hook}" for hook in setup),
        *(f"--customize-hook={hook}" for hook in hooks),
        recipe.suite,
        "-",
        *([mirror] if mirror else []),
    ]
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches bob alone, which then kills this session
        )
        lines = []
        try:
            assert process.stdout is not None
            for line in process.stdout:
                output.write(line)
                output.flush()
                lines.append(line.strip())
                if step := _STEP.fullmatch(line.strip()):
                    progress(step[1])
            status = process.wait()
        finally:
            _end(process)
    if status:
        raise explained(lines, recipe, log, (log.parent, Path(environment["TMPDIR"])))


def _is_root() -> bool:
    return os.geteuid() == 0


def _confined() -> list[str]:
    """Return the words of a command line that run another command, mmdebstrap, which the caller appends. They make
    mmdebstrap end when this process ends, even if SIGKILL ends this process.

    If bob builds as root in namespaces, these words make the namespaces for mmdebstrap, and both end with mmdebstrap.
    Since systemd makes mounts shared, a mount in the new namespace would also appear on the host. ``mount
    --make-rprivate`` prevents that. This command fails in a chroot, where the root is not a mount point, but a chroot
    does not need it.

    An ordinary user's mmdebstrap makes namespaces itself. If bob used unshare in this case, this would fail on Ubuntu,
    where AppArmor allows namespaces only to some programs, such as mmdebstrap. Without namespaces nothing is mounted,
    but a SIGKILL of bob leaves what mmdebstrap has started."""
    mortal = ["setpriv", "--pdeathsig", "KILL"]
    if build_mode() is not BuildMode.ROOT:
        return mortal
    return [*mortal, *_NAMESPACES, "sh", "-c", 'mount --make-rprivate / 2>/dev/null; exec "$@"', "sh"]


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
