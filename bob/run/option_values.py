"""Readers for the values of options. A reader takes the user's word and the name of the option, and returns the value.
It raises UsageError for an invalid word, before anything starts."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from bob.catalogue.probe_files import load as load_probe
from bob.catalogue.sets import RowSet, probes_of
from bob.errors import UsageError, meant
from bob.options import Words
from bob.program.folder import CLUSTER, shipped_programs
from bob.program.sets import load_program_set, program_set_names
from bob.subject import file_system, file_systems, is_file, layers, load_set, set_names
from bob.witness.bundle import is_there

ALL = "all"  # stands for all names that bob ships
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def known(what: str, names: Callable[[], Iterable[str]]) -> Words:
    """Return a reader that accepts only ``names``. If ``what`` is "property", the reader's error messages begin
    with "unknown property"."""
    return Words(lambda word, _option: _check_known(what, word, names()), lambda _given: names())


def one_of(names: Callable[[], Iterable[str]], files: str = "file", name: str = "file") -> Words:
    """Return a reader for an option whose value is one of ``names`` or a path. The reader accepts any word, since the
    command checks the word later. The reader uses ``names`` only to complete words in a shell. ``files`` says which
    kind of path is possible ("file" or "dir"). In help texts, ``name`` stands for the value."""
    return Words(lambda word, _option: word, lambda _given: names(), files, name)


def property_names(rows: RowSet) -> tuple[str, ...]:
    return tuple(probe.property.name for probe in probes_of(rows))


def read_size(word: Any, option: str) -> int:
    """Return the number of bytes in a size such as ``64M``, ``1G`` or ``67108864``."""
    match = re.fullmatch(r"(\d+)([KMGT]?)(?:i?B)?", word.strip(), re.IGNORECASE)
    if match is None or not int(match[1]):
        raise UsageError(f"{option}: {word!r} is not a size", hint="for example 64M or 1G")
    return int(match[1]) * _UNITS[match[2].upper()]


def _read_file_system(word: Any, _option: str) -> str:
    name = str(word)
    if not is_file(name):
        return _check_known("file system", name, file_systems())
    file_system(name)
    return name


def _read_node_file_systems(word: Any, option: str) -> str:
    return ",".join(_read_file_system(name.strip(), option) for name in str(word).split(","))


def _read_stack(word: Any, _option: str) -> str:
    for name in word.split(",") if word else ():
        if not is_file(name.strip()):
            _check_known("layer", name.strip(), layers())
    return str(word)


def _read_image(word: Any, _option: str) -> str:
    from bob.guest.given_machine import is_machine, place  # libvirt takes a while to load

    return place(word).name if is_machine(word) else _check_known("guest image", word, image_names())


def image_names() -> list[str]:
    """Return the names of all guest images that bob can build, and of the existing images that have a user's own
    kernel."""
    from bob.image import image_names

    return image_names()


def model_names() -> list[str]:
    from bob.apm.named import model_names  # models take a while to load

    return model_names()


def _properties(given: Mapping[str, Any]) -> Iterable[str]:
    return *property_names(RowSet(given.get("rows") or RowSet.TABLE1)), ALL


def _read_shard(word: Any, option: str) -> tuple[int, int]:
    words = word.split("/")
    if len(words) != 2 or not all(one.isdecimal() for one in words) or not 1 <= int(words[0]) <= int(words[1]):
        raise UsageError(f"invalid {option} {word!r}; expected K/N", hint="for example 1/4: the first of four parts")
    return int(words[0]), int(words[1])


def _read_witness(word: Any, option: str) -> Path:
    """Return the path of a witness. The witness is a file with this path, or stands under this path in a bundle, which
    is one file with many witnesses (:mod:`bob.witness.bundle`). Raise UsageError if neither the file nor the bundle has
    the witness."""
    path = Path(word)
    if not is_there(path):
        raise UsageError(f"{option}: the witness {path} does not exist", hint="name a file, or a witness in a bundle")
    return path


def _read_witnesses(word: Any, option: str) -> Path:
    return Path(word) if Path(word).is_dir() else _read_witness(word, option)


def _check_known(what: str, word: Any, names: Iterable[str]) -> str:
    if word not in (names := list(names)):
        raise UsageError(f"unknown {what} {word!r}", hint=meant(str(word), names))
    return str(word)


FILE_SYSTEM = Words(_read_file_system, lambda _given: file_systems(), "file")
NODE_FILE_SYSTEMS = Words(_read_node_file_systems, lambda _given: file_systems(), "file", "file system")
GUEST_IMAGE = Words(_read_image, lambda _given: image_names())
PROPERTY = Words(lambda word, _option: word, _properties)
PROBE_FILE = Words(lambda word, _option: load_probe(Path(word)), files="file")
STACK = Words(_read_stack, lambda _given: layers(), "file")
SIZE = Words(read_size, name="size")
WITNESS = Words(_read_witness, files="file", name="witness")
WITNESSES = Words(
    _read_witnesses, files="file", name="witness"
)  # a witness, or a run directory, which stands for all its witnesses
SHARD = Words(_read_shard, name="k/n")
SET = Words(lambda word, _option: load_set(word), lambda _given: set_names(), "file")
PROGRAM_SET = Words(lambda word, _option: load_program_set(word), lambda _given: program_set_names(), "file")
MODEL = one_of(model_names)
PROGRAM = one_of(shipped_programs, "dir")
CLUSTERS = one_of(CLUSTER.folders, "dir")
