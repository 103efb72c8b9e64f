"""Find programs that the guest's C library (glibc) is too old for, before they fail with words of the loader."""

import io
import re
from typing import Any

from bob.errors import UsageError
from bob.program.binary import MAGIC
from bob.program.program import Program

_LOADER = "/lib64/ld-linux-x86-64.so.2"  # glibc's own; a program that brings another loader brings its own library
_VERSION = re.compile(r"(?:GLIBC_|glibc )(\d+)\.(\d+)(?:\.\d+)?")
_NEEDED = ".gnu.version_r"


def needed_glibc(data: bytes) -> tuple[int, int] | None:
    """Return the version of glibc that the ELF file ``data`` needs at least, such as (2, 38). Return None if it needs
    no version, as a program that is linked statically, a damaged file, or another file."""
    if not data.startswith(MAGIC):
        return None
    from elftools.elf.elffile import ELFFile  # imported late, because the import takes a while

    try:
        elf: Any = ELFFile(io.BytesIO(data))
        loaders = [segment.get_interp_name() for segment in elf.iter_segments("PT_INTERP")]
        section = elf.get_section_by_name(_NEEDED)
        if loaders != [_LOADER] or section is None:
            return None
        names = [one.name for _file, versions in section.iter_versions() for one in versions]
    except Exception:  # the library raises any kind of error for a damaged file
        return None
    return max((found for name in names if (found := _parsed(name))), default=None)


def check_libc(program: Program, libc: str, image: str) -> None:
    """Raise UsageError if an executable of ``program`` needs a newer glibc than ``libc``. This is the library of the
    guest in the words of confstr(3), such as "glibc 2.36". bob knows no versions of other libraries. The error names
    the guest's ``image``."""
    there = _parsed(libc)
    if there is None:
        return
    for file in program.files:
        needed = needed_glibc(file.data) if file.executable else None
        if needed is not None and needed > there:
            text = ".".join(map(str, needed))
            raise UsageError(
                f"{file.path} needs GLIBC_{text}, and {image} has {libc}",
                hint="link it statically, build it in the guest's system with `bob app build FOLDER`,"
                " or choose a newer one with --image, such as debian-trixie",
            )


def _parsed(text: str) -> tuple[int, int] | None:
    found = _VERSION.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else None
