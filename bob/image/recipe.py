"""Read and check recipes. A recipe is a folder guest-images/NAME/ that says how to build a guest image."""

import hashlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bob.errors import MalformedError, UsageError
from bob.resources import shipped
from bob.schema import Declaration, NonEmpty, OneLine, OneWord, adapt, decode, mistakes_in

DECLARATION = "image.toml"

#: The recipe's other files, which all go into the guest.
GUEST_FILES = ("fstab", "init", "initramfs-init", "sshd_config")

#: They run one behind the other in a new root: what makes it a guest's root, and what makes a disk of it.
PACK_SCRIPTS = tuple(Path(__file__).with_name(name) for name in ("pack.sh", "disk.sh"))

BUILDER_FORMAT = 1  # increased when the builder makes another image of the same recipe


class ModulesDeclaration(Declaration, frozen=True):
    """The kernel modules of an image. ``initramfs`` has the names of the modules for the initramfs, and ``boot`` those
    that the guest loads at boot. ``keep`` has paths below the folder kernel/: a module, or a folder of modules. The
    build removes all other modules from the root file system."""

    initramfs: tuple[OneWord, ...]
    boot: tuple[OneWord, ...]
    keep: tuple[OneWord, ...]


class StripDeclaration(Declaration, frozen=True):
    remove: tuple[OneWord, ...]


class RecipeDeclaration(Declaration, frozen=True, kw_only=True):
    """The content of a recipe's ``image.toml``. If this file has a line ``like = "NAME"``, the values that it lacks
    come from the recipe NAME. In a list, the item "..." stands for all items of that recipe. For each field that is a
    list, the shell scripts of the build get an environment variable with the items as words. The image lacks the
    packages that ``without`` names, even if ``packages`` has them."""

    description: OneLine
    suite: OneLine
    more_suites: tuple[OneWord, ...] = ()
    architecture: OneLine
    kernel_package: OneLine
    packages: tuple[OneWord, ...]
    without: tuple[OneWord, ...] = ()
    cmdline: NonEmpty
    modules: ModulesDeclaration
    strip: StripDeclaration


class Recipe(RecipeDeclaration, frozen=True, kw_only=True):
    """The declaration of a guest image. A package written as PACKAGE/SUITE comes from one of ``more_suites``. ``files``
    maps the names of the files in the recipe's folder to their contents. If ``image.toml`` names another recipe in its
    line ``like``, ``files`` also contains the files of that other recipe. The recipe's key is a digest of ``files``, of
    the scripts PACK_SCRIPTS and of the number BUILDER_FORMAT."""

    name: str
    files: Mapping[str, bytes]

    @property
    def key(self) -> str:
        parts = {f"recipe/{name}": content for name, content in self.files.items()}
        parts["builder/format"] = str(BUILDER_FORMAT).encode()
        parts["builder/pack.sh"] = b"".join(path.read_bytes() for path in PACK_SCRIPTS)
        digest = hashlib.sha256()
        for name in sorted(parts):
            digest.update(f"{name} {len(parts[name])}\n".encode())
            digest.update(parts[name])
        return digest.hexdigest()[:16]


def recipe_names(folder: Path | None = None) -> list[str]:
    folder = folder or shipped("guest-images")
    return sorted(path.parent.name for path in folder.glob(f"*/{DECLARATION}"))


def load_recipe(name: str, folder: Path | None = None) -> Recipe:
    """Return the recipe ``name``. Raises UsageError if it is unknown, MalformedError if its declaration cannot be
    used."""
    folder = folder or shipped("guest-images")
    known = recipe_names(folder)
    if name not in known:
        raise UsageError(f"unknown guest image {name!r}", hint=f"known: {', '.join(known) or 'none'}")
    table, files = _declared(name, folder, ())
    where = folder / name / DECLARATION
    for needed in GUEST_FILES:
        if needed not in files:
            raise MalformedError(f"{where.parent} lacks the file {needed!r}")
    with mistakes_in(str(where), None, MalformedError):
        asked = decode(RecipeDeclaration, table)
    return adapt(
        Recipe,
        asked,
        name=name,
        packages=tuple(name for name in asked.packages if name not in asked.without),
        cmdline=" ".join(asked.cmdline.split()),
        files=files,
    )


def _declared(name: str, folder: Path, liked_by: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the declaration and the files of the recipe ``name``. If the declaration names another recipe in its line
    ``like``, the values and files that are missing come from that other recipe. Raises MalformedError."""
    where = folder / name / DECLARATION
    files = {path.name: path.read_bytes() for path in sorted(where.parent.iterdir()) if path.is_file()}
    with mistakes_in(str(where), None, MalformedError):
        table = tomllib.loads(files[DECLARATION].decode())
    if (like := table.pop("like", None)) is None:
        return table, files
    known = [one for one in recipe_names(folder) if one not in (name, *liked_by)]
    if like not in known:
        raise MalformedError(f"{where}: like = {like!r} is not another guest image; expected one of {', '.join(known)}")
    base, base_files = _declared(like, folder, (name, *liked_by))
    base = _merged(base, table)
    base_files[f"{like}/{DECLARATION}"] = base_files.pop(DECLARATION)
    return base, base_files | files


def _merged(base: Any, value: Any) -> Any:
    """Return ``value``, completed by values of ``base``. In a table, ``base`` gives the missing keys. In an array, the
    item ``...`` stands for all items of ``base``."""
    if isinstance(base, dict) and isinstance(value, dict):
        return base | {key: _merged(base.get(key), one) for key, one in value.items()}
    if isinstance(base, list) and isinstance(value, list):
        return [item for one in value for item in (base if one == "..." else [one])]
    return value
