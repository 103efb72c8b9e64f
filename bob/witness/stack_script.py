"""Shell commands that start the layers between the disks and a file system, such as RAID, for people without bob. They
call programs such as dmsetup and mdadm."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bob.errors import UsageError
from bob.subject import Subject
from bob.subject.layer import MAKERS, Layer, LayerCommand

MISSING = "missing"


@dataclass(frozen=True, slots=True)
class StackScript:
    """Lines of a shell script. ``start`` starts the layers on images of the disks, and ``stop`` stops them. ``device``
    is the path of the topmost device. ``options`` are mount options that name further devices."""

    start: tuple[str, ...]
    stop: tuple[str, ...]
    device: str
    options: str = ""


def stack_script(made: Subject, images: Sequence[str]) -> StackScript:
    """Return the lines of the script for the layers of the configuration ``made``. ``images`` are the paths of the disk
    images, quoted for the shell. Raises UsageError if the start of a layer needs a command that only bob's agent (its
    program in the guest) has."""
    start, stop = [], []
    devices = [f"$device{number}" for number in range(len(images) + len(made.layers))]
    for number, image in enumerate(images):
        if number in (*made.missing, *made.lost):
            devices[number] = MISSING
            continue
        start.append(f"device{number}=$(losetup --find --show {image})")
        stop.append(f'losetup -d "$device{number}"')
    for place, layer in enumerate(made.layers):
        names = {f"DISK{at}": devices[below] for at, below in enumerate(layer.below)}
        if layer.fs:
            options = ",".join(
                word for word in (_named(one, names) for one in layer.mount.split(",")) if MISSING not in word
            )
            device = next(path for path in names.values() if path != MISSING)
            return StackScript(tuple(start), tuple(reversed(stop)), device, options)
        there = {*names.values()} - {MISSING}
        if MISSING in names.values() and not (there and _does_without(layer)):
            devices[len(images) + place] = MISSING
            continue
        last = layer.device
        for command in layer.start:
            last = _started(command, f"bob-{place}", names, start, stop) or last
        stop += [" ".join(_named(word, names) for word in command) for command in layer.stop]
        start.append(f'device{len(images) + place}="{layer.device or last}"')
    return StackScript(tuple(start), tuple(reversed(stop)), devices[-1])


def _does_without(layer: Layer) -> bool:
    return any(command[0] in ("md", "bcache") or "raid" in command for command in layer.start)


def _started(command: LayerCommand, name: str, names: dict[str, str], start: list[str], stop: list[str]) -> str:
    """Add the lines that carry out ``command`` to ``start``, and the lines that undo it to ``stop``. Return the path of
    the device that the command makes, or an empty string."""
    verb, *words = command
    if verb in (*MAKERS, "mount"):
        label, *words = words
        name = f"{name}-{label.lower()}"
    words = [_named(word, names) for word in words]
    path = ""
    if verb == "dm":
        if MISSING in words and "raid" not in words:
            names[label] = MISSING
            return MISSING
        words = ["-" if word == MISSING else word for word in words]
        table = "\\n".join(text.strip() for text in " ".join(words).split(";"))
        start.append(f'printf "{table}\\n" | dmsetup create {name}')
        stop.append(f"dmsetup remove --retry {name}")
        path = f"/dev/mapper/{name}"
    elif verb == "md":
        path = f"/dev/md/{name}"
        words = [word for word in words if word != MISSING]
        start.append(f"mdadm --assemble --run {path} {' '.join(words)}")
        stop.append(f"mdadm --stop {path}")
    elif verb == "bcache":
        backing = f'/sys/block/$(basename "$(readlink -f "{words[0]}")")/bcache'
        start += [f'readlink -f "{one}" > /sys/fs/bcache/register' for one in reversed(words) if one != MISSING]
        start += [f'echo 1 > "{backing}/running"'] if MISSING in words else []
        path = f'/dev/$(basename "$(readlink -f "{backing}/dev")")'
        stop.append(f'echo 1 > "{backing}/{"" if MISSING in words else "cache/"}stop"')
    elif verb == "loop":
        start.append(f'{name.replace("-", "_")}=$(losetup --find --show "{words[0]}")')
        path = f"${name.replace('-', '_')}"
        stop.append(f'losetup -d "{path}"')
    elif verb == "nbd":
        path = f"/dev/nbd{name.split('-')[1]}"
        start.append(f'modprobe nbd && qemu-nbd --connect {path} --format raw "{words[0]}"')
        stop.append(f"qemu-nbd --disconnect {path}")
    elif verb == "mount":
        names[label] = f"$copy/{name}"
        options = f' -o "{",".join(words[2:])}"' if words[2:] else ""
        start.append(f'mkdir "{names[label]}" && mount -t {words[0]}{options} "{words[1]}" "{names[label]}"')
        stop.append(f'umount "{names[label]}"')
    elif verb == "set":
        device, file, value = words
        start.append(f'echo {value} > "/sys/block/$(basename "$(readlink -f "{device}")")/{file}"')
    elif verb in ("wait", "expect"):
        device, file, value = words
        path_of = f'/sys/block/$(basename "$(readlink -f "{device}")")/{file}'
        start.append(f'until [ "$(cat "{path_of}")" = "{value}" ]; do sleep 0.1; done')
    elif verb == "message":
        device, sector, *rest = words
        start.append(f'dmsetup message "{device}" {sector} "{" ".join(rest)}"')
    elif verb in ("zero", "md-create", "bcache-create", "remove"):
        raise UsageError(f"the command {verb!r} starts no layer for people without bob")
    else:
        start.append(" ".join([verb, *words]))
    if path:
        names[label] = path
    return path


def _named(word: str, names: dict[str, str]) -> str:
    either = "|".join(sorted(names, key=len, reverse=True))
    return re.sub(rf"\b(?:{either})\b", lambda found: names[found[0]], word)
