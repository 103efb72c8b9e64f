"""What guest-images/NAME/ declares, read and checked. Pure: nothing is built or downloaded here."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bob.errors import MalformedError, UsageError
from bob.resources import shipped

DECLARATION = "image.toml"

#: The recipe's other files, all of which end up in the guest.
GUEST_FILES = ("fstab", "init", "initramfs-init", "sshd_config")

#: Runs inside the new root (see its first lines).
PACK_SCRIPT = Path(__file__).with_name("pack.sh")

#: Counts up when the builder's Python makes something else of the same recipe, so that old images are not taken.
BUILDER_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Recipe:
    """One guest image as declared: which Debian suite, packages and kernel modules, and how it boots.

    ``more_suites`` are suites that packages may come from too, if they are asked for as PACKAGE/SUITE. ``files`` holds
    every file of the recipe's folder, by name, and of the recipe that it is like; they decide the key.
    """

    name: str
    description: str
    suite: str
    more_suites: tuple[str, ...]
    architecture: str
    kernel_package: str
    packages: tuple[str, ...]
    cmdline: str
    initramfs_modules: tuple[str, ...]
    boot_modules: tuple[str, ...]
    keep_modules: tuple[str, ...]
    remove: tuple[str, ...]
    files: Mapping[str, bytes] = field(repr=False)

    @property
    def key(self) -> str:
        """16 hexadecimal digits that name exactly this recipe under exactly this builder."""
        parts = {f"recipe/{name}": content for name, content in self.files.items()}
        parts["builder/format"] = str(BUILDER_FORMAT).encode()
        parts["builder/pack.sh"] = PACK_SCRIPT.read_bytes()
        digest = hashlib.sha256()
        for name in sorted(parts):
            digest.update(f"{name} {len(parts[name])}\n".encode())
            digest.update(parts[name])
        return digest.hexdigest()[:16]


def recipe_names(folder: Path | None = None) -> list[str]:
    """The names of all recipes in ``folder`` (default: the shipped guest-images/), in order."""
    folder = folder or shipped("guest-images")
    return sorted(path.parent.name for path in folder.glob(f"*/{DECLARATION}"))


def load_recipe(name: str, folder: Path | None = None) -> Recipe:
    """The recipe called ``name``.

    Raises UsageError for a name that is not there, MalformedError for a declaration that cannot be used.
    """
    folder = folder or shipped("guest-images")
    known = recipe_names(folder)
    if name not in known:
        raise UsageError(f"there is no guest image called {name!r}", hint=f"known: {', '.join(known) or 'none'}")
    table, files = _declared(name, folder, ())
    where = folder / name / DECLARATION
    for needed in GUEST_FILES:
        if needed not in files:
            raise MalformedError(f"{where.parent} has no file {needed!r}")
    modules, strip = _table(table, "modules", where), _table(table, "strip", where)
    without = _words(table, "without", where)
    return Recipe(
        name=name,
        description=_text(table, "description", where),
        suite=_text(table, "suite", where),
        more_suites=_words(table, "more_suites", where),
        architecture=_text(table, "architecture", where),
        kernel_package=_text(table, "kernel_package", where),
        packages=tuple(name for name in _words(table, "packages", where) if name not in without),
        cmdline=" ".join(_text(table, "cmdline", where).split()),
        initramfs_modules=_words(modules, "initramfs", where),
        boot_modules=_words(modules, "boot", where),
        keep_modules=_words(modules, "keep", where),
        remove=_words(strip, "remove", where),
        files=files,
    )


def _declared(name: str, folder: Path, liked_by: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What the recipe ``name`` declares, and its files; where it is ``like`` another, with what it does not say itself
    from there. Raises MalformedError for what is no TOML, and for a recipe that is like itself."""
    where = folder / name / DECLARATION
    files = {path.name: path.read_bytes() for path in sorted(where.parent.iterdir()) if path.is_file()}
    try:
        table = tomllib.loads(files[DECLARATION].decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MalformedError(f"{where}: {error}") from error
    if (like := table.pop("like", None)) is None:
        return {"more_suites": [], "without": []} | table, files
    known = [one for one in recipe_names(folder) if one not in (name, *liked_by)]
    if like not in known:
        raise MalformedError(f"{where}: like = {like!r} is no other guest image; there are {', '.join(known)}")
    base, base_files = _declared(like, folder, (name, *liked_by))
    for key, value in table.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        base[key] = base[key] | value if both else value
    base_files[f"{like}/{DECLARATION}"] = base_files.pop(DECLARATION)
    return base, base_files | files


def _table(table: Mapping[str, Any], key: str, where: Path) -> Mapping[str, Any]:
    value = table.get(key)
    if not isinstance(value, dict):
        raise MalformedError(f"{where}: a table [{key}] is needed")
    return value


def _text(table: Mapping[str, Any], key: str, where: Path) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise MalformedError(f"{where}: {key!r} must be a text")
    return value


def _words(table: Mapping[str, Any], key: str, where: Path) -> tuple[str, ...]:
    """A list of words; they reach the shell separated by blanks, so none may contain one."""
    value = table.get(key)
    if not isinstance(value, list) or not all(isinstance(word, str) and len(word.split()) == 1 for word in value):
        raise MalformedError(f"{where}: {key!r} must be a list of texts without blanks")
    return tuple(value)
