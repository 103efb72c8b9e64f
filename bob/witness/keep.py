"""Write a crash state into files for people without bob. The files are an image of each disk, and a script that mounts
the file system from copies of the images, and shows its tree. The script begins with the bytes where files differ from
what the operations leave."""

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bob.errors import StoreError
from bob.subject import Subject
from bob.trace.base import PIECE
from bob.trace.model import SECTOR_BYTES
from bob.witness.document import Witness
from bob.witness.stack_script import stack_script
from bob.workload.language import write_one
from bob.workload.operations import Workload
from bob.workload.simulation import simulate

_LINE = 16  # bytes that od shows in a line
EACH_DISK = "bob replay --keep DIR writes the image of each disk"


def keep(witness: Witness, folder: Path) -> tuple[Path, ...]:
    """Write the crash image of each disk of ``witness``, and the script, into ``folder``. Return the paths of the
    images and then of the script. Raises StoreError if writing fails."""
    lengths, script = witness.base.disks, folder / "look.sh"
    whole = folder / "crash.img"
    images = [folder / name for name in _names(len(lengths))]
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
    return ["crash.img"] if disks == 1 else [f"crash-{number}.img" for number in range(disks)]


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


@dataclass(frozen=True, slots=True)
class _KeptVolume:
    """A file system of a witness: its subject, its device and its mount point (shell words), and more mount options."""

    subject: Subject
    device: str
    place: str
    options: str = ""

    def lines(self) -> list[str]:
        """Return the lines of the script that check the file system, as a boot would, and mount it."""
        check = " ".join(self.device if word == "DEVICE" else shlex.quote(word) for word in self.subject.fs.check)
        mount = f"{mount_words(self.subject, self.options)} {self.device} {self.place}"
        return [*([f"{check} || true  # as a boot would"] if check else []), mount]


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
    images = _names(len(witness.base.disks))
    copies = [f'"$copy/{name}"' for name in images]
    stack = stack_script(made, copies) if made.layers else None
    volumes = [_KeptVolume(made, f'"{stack.device}"' if stack else copies[0], '"$mnt"', stack.options if stack else "")]
    if made.nodes:
        nodes = enumerate(zip(made.nodes, copies, strict=True))
        volumes = [_KeptVolume(node, device, f'"$mnt/n{number}"') for number, (node, device) in nodes]
    places = " ".join(volume.place for volume in volumes)
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
            f"    umount {places} 2>/dev/null",
            *(f"    {line}" for line in (stack.stop if stack else ())),
            f'    rm -rf "$copy"; rmdir {f"{places} " if made.nodes else ""}"$mnt"',
            "}",
            "trap finish EXIT",
            *(f'cp "$here/{name}" "$copy"' for name in images),
            *(stack.start if stack else ()),
            *([f"mkdir {places}"] if made.nodes else []),
            *(line for volume in volumes for line in volume.lines()),
            'ls -liR "$mnt"',
            *_differences(witness),
            f"find {places} -xdev -type f -size -4096k | sort | while read -r file; do",
            '    echo "== ${file#"$mnt"}"',
            '    od -A d -c -w16 "$file" | head -n 20',
            "done",
            "",
        ]
    )


_DIFFERS = (
    "differs() {",
    '    echo "== $1: bytes $2 to $3 are not those that the operations leave"',
    '    od -A d -c -w16 -j "$2" -N "$(($3 - $2))" "$mnt$1" | head -n 20',
    "}",
)


def _differences(witness: Witness) -> Iterator[str]:
    """Yield the lines of the script that show the bytes where files differ from what all operations leave."""
    found = None if witness.found is None else witness.found.tree
    if found is None or not isinstance(witness.work, Workload):
        return
    last = simulate(witness.work)[0].steps[-1]
    lines: list[str] = []
    for path, node in sorted(found.items()):
        if node.kind != "file" or node.pieces is not None or path not in last.names:
            continue
        wanted = last.inodes[last.names[path]].content
        for start, end in differing(node.content, wanted):
            lines.append(f"differs {shlex.quote(path)} {start} {end}")
        if len(node.content) != len(wanted):
            lines.append(f"echo {shlex.quote(f'== {path}: ends at byte {len(node.content)}, not at {len(wanted)}')}")
    yield from (*_DIFFERS, *lines) if lines else ()


def differing(one: bytes, other: bytes) -> list[tuple[int, int]]:
    """Return the ranges (first byte, and the byte after the last) in which ``one`` and ``other`` differ, up to the end
    of the shorter one. Ranges with fewer than 16 equal bytes between them become one."""
    ranges: list[tuple[int, int]] = []
    for at in (at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right):
        if ranges and at - ranges[-1][1] < _LINE:
            ranges[-1] = ranges[-1][0], at + 1
        else:
            ranges.append((at, at + 1))
    return ranges
