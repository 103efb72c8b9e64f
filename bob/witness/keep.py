"""A crash state for people without bob: an image, and a script that mounts it and shows the tree."""

import shlex
from pathlib import Path

from bob.errors import StoreError
from bob.subject import Subject
from bob.trace.model import SECTOR_BYTES
from bob.witness.document import Witness
from bob.workload.language import write_one


def keep(witness: Witness, folder: Path) -> tuple[Path, Path]:
    """Write the crash image of ``witness`` and its script into ``folder``; return their paths. Raises StoreError."""
    image, script = folder / "crash.img", folder / "look.sh"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with image.open("wb") as file:
            witness.base.write(file)
            for sector, data in witness.runs:
                file.seek(sector * SECTOR_BYTES)
                file.write(data)
        script.write_text(text(witness))
        script.chmod(0o755)
    except OSError as error:
        raise StoreError(
            f"cannot write {error.filename or folder}: {error.strerror}", hint="is the disk full?"
        ) from None
    return image, script


def mount_words(made: Subject) -> str:
    """Return the mount command of a configuration for an image file, without image and directory."""
    options = ",".join(word for word in ("loop", made.mount_options) if word)
    return f"mount -t {made.fs.driver} -o {shlex.quote(options)}"


def text(witness: Witness) -> str:
    """Return the script: it mounts a copy of the image beside it, as root, and shows the tree."""
    made, operations = witness.configuration, witness.operations
    told = [
        f"{witness.title} on {made.name}, Linux {witness.kernel}",
        witness.sentence,
        f"Found after the crash: {witness.evidence}",
        "Operations before the crash, on a file system with the files of their setup:",
        *(f"  {number} {write_one(operation)}" for number, operation in enumerate(operations, start=1)),
    ]
    check = " ".join('"$copy"' if word == "DEVICE" else shlex.quote(word) for word in made.fs.check)
    return "\n".join(
        [
            "#!/bin/sh",
            *(f"# {line}" for part in told for line in part.splitlines()),
            "#",
            "# Needs root, for the mount. The script mounts a copy, so the image stays unchanged.",
            "set -eu",
            'here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd -P)',
            "copy=$(mktemp) mnt=$(mktemp -d)",
            'trap \'umount "$mnt" 2>/dev/null || true; rmdir "$mnt"; rm -f "$copy"\' EXIT',
            'cp "$here/crash.img" "$copy"',
            *([f"{check} || true  # as a boot would"] if check else []),
            f'{mount_words(made)} "$copy" "$mnt"',
            'ls -liR "$mnt"',
            'find "$mnt" -xdev -type f -size -4096k | sort | while read -r file; do',
            '    echo "== ${file#"$mnt"}"',
            '    od -A d -c -w16 "$file" | head -n 20',
            "done",
            "",
        ]
    )
