"""Run mmdebstrap so that its processes and mounts end with the build."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from bob.errors import ImageError, MissingProgramError
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

# A line "I: doing this..." is a step. Steps with a path, and all other lines, are details for the log.
_STEP = re.compile(r"I: ([^/]*)\.\.\.")

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def check_programs() -> None:
    """Raise MissingProgramError if this machine lacks a program that a build needs, or Debian's archive keys. The error
    names the first program that is missing."""
    needed = PROGRAMS if _is_root() else PROGRAMS | USER_PROGRAMS
    for program, package in needed.items():
        if shutil.which(program) is None:
            raise MissingProgramError(
                f"{program} is needed to build a guest image", hint=f"install it: apt-get install {package}"
            )
    if not KEYRING.exists():
        raise MissingProgramError(
            "Debian's archive keys are needed to build a guest image",
            hint="install them: apt-get install debian-archive-keyring",
        )


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
    mirror = os.environ.get("BOB_MIRROR")
    command = [
        *_confined(),
        "mmdebstrap",
        f"--mode={'root' if _is_root() else 'unshare'}",
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
        raise ImageError(
            f"mmdebstrap failed: {_last_word(lines)}", hint=f"the whole output is in {log}; BOB_MIRROR sets the mirror"
        )


def _is_root() -> bool:
    return os.geteuid() == 0


def _confined() -> list[str]:
    """Return the words of a command line that run another command, mmdebstrap, which the caller appends. They make
    mmdebstrap end when this process ends, even if SIGKILL ends this process.

    If bob runs as root, mmdebstrap mounts file systems. So these words give mmdebstrap a mount namespace and a process
    namespace of its own, and both end with mmdebstrap. Since systemd makes mounts shared, a mount in the new namespace
    would also appear on the host. ``mount --make-rprivate`` prevents that. This command fails in a chroot, where the
    root is not a mount point, but a chroot does not need it.

    If bob runs as another user, mmdebstrap makes namespaces itself. If bob used unshare in this case, this would fail
    on Ubuntu, where AppArmor allows namespaces only to some programs, such as mmdebstrap."""
    mortal = ["setpriv", "--pdeathsig", "KILL"]
    if not _is_root():
        return mortal
    return [
        *mortal,
        *("unshare", "--mount", "--propagation", "unchanged", "--pid", "--fork", "--kill-child"),
        *("sh", "-c", 'mount --make-rprivate / 2>/dev/null; exec "$@"', "sh"),
    ]


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _last_word(lines: Sequence[str]) -> str:
    said = [line for line in lines if line and not line.startswith("I: ")]
    # mmdebstrap's own last error only names the command that failed; the error before it says why.
    errors = [line for line in said if line.startswith("E: ") and "failed to run" not in line]
    return (errors or said or ["it printed nothing"])[-1].removeprefix("E: ")
