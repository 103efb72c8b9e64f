"""Find the function and the source line of code in an ELF file. The code is given by its offset in the file (bytes).
Lines come from DWARF, as ``cc -g`` writes it. For a damaged or incomplete file, bob finds no function and no line."""

import io
import posixpath
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

MAGIC = b"\x7fELF"
_SYMBOL_TABLES = ".symtab", ".dynsym"
_FUNCTIONS = "STT_FUNC", "STT_LOOS"  # the second is STT_GNU_IFUNC, a function that is chosen when the program starts


@dataclass(frozen=True, slots=True, order=True)
class _LineRows:
    start: int
    end: int
    place: str


class Binary:
    """An ELF file with the content ``data``. It is parsed when a method is first called."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def line(self, offset: int) -> str:
        """Return the source file and the line of the code at ``offset`` (bytes), such as "page.c:12"; empty if
        unknown."""
        at = self._address(offset)
        if at is None:
            return ""
        place = bisect_right(self._lines, at, key=lambda one: one.start) - 1
        return self._lines[place].place if place >= 0 and at < self._lines[place].end else ""

    def is_in_function(self, offset: int, distance: int) -> bool:
        """Return whether a function begins ``distance`` bytes before ``offset``, and contains the code at ``offset``. A
        tool such as strace gives this code the name of the nearest symbol, ``distance`` bytes earlier. This name may be
        wrong, since most libraries have symbols only for their exported functions. For a wrong name, the answer is
        False."""
        at = self._address(offset)
        return at is not None and distance < self._functions.get(at - distance, 0)

    def _address(self, offset: int) -> int | None:
        for start, length, address in self._loaded:
            if start <= offset < start + length:
                return offset - start + address
        return None

    @cached_property
    def _elf(self) -> Any:
        from elftools.elf.elffile import ELFFile  # imported late, because the import takes a while

        try:
            return ELFFile(io.BytesIO(self._data))
        except Exception:  # the library raises any kind of error for a file of another kind, or a damaged file
            return None

    @cached_property
    def _loaded(self) -> list[tuple[int, int, int]]:
        """The offset, length and address (bytes) of each segment that is loaded."""
        try:
            segments = self._elf.iter_segments("PT_LOAD")
            return [(one["p_offset"], one["p_filesz"], one["p_vaddr"]) for one in segments]
        except Exception:
            return []

    @cached_property
    def _functions(self) -> dict[int, int]:
        found: dict[int, int] = {}
        try:
            for table in filter(None, map(self._elf.get_section_by_name, _SYMBOL_TABLES)):
                for symbol in table.iter_symbols():
                    if symbol["st_info"]["type"] in _FUNCTIONS and symbol["st_shndx"] != "SHN_UNDEF":
                        start = symbol["st_value"]
                        found[start] = max(found.get(start, 0), symbol["st_size"])
        except Exception:
            return {}
        return found

    @cached_property
    def _lines(self) -> list[_LineRows]:
        try:
            return sorted(_rows(self._elf.get_dwarf_info())) if self._elf.has_dwarf_info() else []
        except Exception:
            return []


def _rows(dwarf: Any) -> Iterator[_LineRows]:
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        files = program["file_entry"]
        first = 0 if program["version"] >= 5 else 1  # the first file's number in the table
        before = None
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if before is not None and before.address < state.address and before.line:
                name = files[before.file - first].name
                place = f"{posixpath.basename(name.decode(errors='replace'))}:{before.line}"
                yield _LineRows(before.address, state.address, place)
            before = None if state.end_sequence else state
