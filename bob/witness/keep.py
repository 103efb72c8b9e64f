"""Write a crash state into files for people without bob. The files are an image of each disk, and a script that mounts
the image and shows the tree."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from bob.errors import StoreError
from bob.subject import Subject
from bob.trace.base import PIECE
from bob.trace.model import SECTOR_BYTES
from bob.witness.document import Witness
from bob.witness.stack_script import stack_script
from bob.workload.language import write_one

EACH_DISK = "bob replay --keep DIR writes the image of each disk"


def keep(witness: Witness, folder: Path) -> tuple[Path, ...]:
    """Write the crash image of each disk of ``witness``, and the script, into ``folder``. Return the paths of the
    images and then of the script. Raises StoreError if writing fails."""
    lengths, script = witness.base.disks, folder / "look.sh"
    whole = folder / "crash.img"
    images = [whole] if len(lengths) == 1 else [folder / name for name in _names(len(lengths))]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with whole.open("wb") as file:
            witness.base.write(file)
            for sector, data in witness.runs:
                file.seek(sector * SECTOR_BYTES)
                file.write(data)
        if len(images) > 1:
            _divide(whole, images, lengths)
            whole.unlink()
        script.write_text(text(witness))
        script.chmod(0o755)
    except OSError as error:
        raise StoreError(
            f"cannot write {error.filename or folder}: {error.strerror}", hint="is the disk full?"
        ) from None
    return *images, script


def _names(disks: int) -> list[str]:
    return [f"crash-{number}.img" for number in range(disks)]


def _divide(whole: Path, parts: Sequence[Path], lengths: Sequence[int]) -> None:
    with whole.open("rb") as file:
        for path, length in zip(parts, lengths, strict=True):
            with path.open("wb") as part:
                for start in range(0, length, PIECE):
                    data = file.read(min(PIECE, length - start))
                    if data.count(0) == len(data):
                        part.seek(len(data), os.SEEK_CUR)
                    else:
                        part.write(data)
                part.truncate(length)


def mount_words(made: Subject, more: str = "") -> str:
    """Return the beginning of the mount command for the configuration ``made``. The caller adds the device and the
    directory. The device is an image file; with layers such as RAID below the file system, it is the topmost layer's
    device. ``more`` has further mount options, separated by commas; the shell expands variables in them."""
    options = ",".join(word for word in ("" if made.layers else "loop", made.mount_options) if word)
    both = ",".join(word for word in (options and shlex.quote(options), more and f'"{more}"') if word)
    return f"mount -t {made.fs.driver}" + (f" -o {both}" if both else "")


def text(witness: Witness) -> str:
    """Return the script. It copies the crash image into a temporary folder, mounts the copy as root, and shows the
    tree."""
    made, operations = witness.configuration, witness.operations
    told = [
        f"{witness.title} on {made.name}, Linux {witness.kernel}",
        witness.sentence,
        f"Found after the crash: {witness.evidence}",
        "Operations before the crash, on a file system with the files of their setup:",
        *(f"  {number} {write_one(operation)}" for number, operation in enumerate(operations, start=1)),
    ]
    images = _names(len(witness.base.disks)) if made.layers else ["crash.img"]
    stack = stack_script(made, [f'"$copy/{name}"' for name in images]) if made.layers else None
    device = f'"{stack.device}"' if stack else '"$copy/crash.img"'
    check = " ".join(device if word == "DEVICE" else shlex.quote(word) for word in made.fs.check)
    return "\n".join(
        [
            "#!/bin/sh",
            *(f"# {line}" for part in told for line in part.splitlines()),
            "#",
            "# Needs root, for the mount. The script mounts copies, so the images stay unchanged.",
            "set -eu",
            'here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd -P)',
            "copy=$(mktemp -d) mnt=$(mktemp -d)",
            "finish() {",
            "    set +eu",
            '    umount "$mnt" 2>/dev/null',
            *(f"    {line}" for line in (stack.stop if stack else ())),
            '    rm -rf "$copy"; rmdir "$mnt"',
            "}",
            "trap finish EXIT",
            *(f'cp "$here/{name}" "$copy"' for name in images),
            *(stack.start if stack else ()),
            *([f"{check} || true  # as a boot would"] if check else []),
            f'{mount_words(made, stack.options if stack else "")} {device} "$mnt"',
            'ls -liR "$mnt"',
            'find "$mnt" -xdev -type f -size -4096k | sort | while read -r file; do',
            '    echo "== ${file#"$mnt"}"',
            '    od -A d -c -w16 "$file" | head -n 20',
            "done",
            "",
        ]
    )
