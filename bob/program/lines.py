"""The source lines behind the frames of calls, where a program's own binary has them (DWARF, as ``cc -g`` writes it).

strace tells of a frame the file, the symbol, and the offset in the file of what runs next there. Of a caller that is
the instruction after its call, so the byte before it belongs to the line that called.
"""

from __future__ import annotations

import io
import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bob.program.program import Program
from bob.program.strace import SystemCall

_PLACE = re.compile(r"(?P<file>[^()]*)\(.*\) \[0x(?P<offset>[0-9a-f]+)\]")
_MAGIC = b"\x7fELF"


@dataclass(frozen=True, slots=True, order=True)
class _Rows:
    """The code from address ``start`` up to ``end`` is of ``place``: ``save.c:12``."""

    start: int
    end: int
    place: str


def located(calls: Sequence[SystemCall], program: Program, home: str) -> tuple[SystemCall, ...]:
    """The ``calls``, with the source line behind each frame that is in a binary of the ``program``, whose files were
    below ``home`` (a path of the guest) as it ran. A binary without line numbers changes nothing."""
    tables = {file.path: _Table(file.data) for file in program.files if file.data.startswith(_MAGIC)}
    if not tables:
        return tuple(calls)
    return tuple(replace(call, stack=tuple(_with_line(one, tables, home) for one in call.stack)) for call in calls)


def _with_line(frame: str, tables: dict[str, _Table], home: str) -> str:
    found = _PLACE.fullmatch(frame)
    if found is None:
        return frame
    table = tables.get(found["file"].partition(f"{home}/")[2])
    place = table.line(int(found["offset"], 16) - 1) if table else ""
    return f"{frame} {place}" if place else frame


class _Table:
    """The line numbers of a binary, read when one is first asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._loaded: list[tuple[int, int, int]] = []
        self._rows: list[_Rows] | None = None

    def line(self, offset: int) -> str:
        """The source file and line of the code at this offset of the binary (bytes); empty where it is not known."""
        if self._rows is None:
            self._rows = self._read()
        for start, length, address in self._loaded:
            if start <= offset < start + length:
                at = offset - start + address
                place = bisect_right(self._rows, at, key=lambda one: one.start) - 1
                if place >= 0 and at < self._rows[place].end:
                    return self._rows[place].place
        return ""

    def _read(self) -> list[_Rows]:
        from elftools.elf.elffile import ELFFile  # few programs are binaries of their own

        try:
            elf: Any = ELFFile(io.BytesIO(self._data))
            for segment in elf.iter_segments("PT_LOAD"):
                self._loaded.append((segment["p_offset"], segment["p_filesz"], segment["p_vaddr"]))
            return sorted(_rows(elf.get_dwarf_info())) if elf.has_dwarf_info() else []
        except Exception:  # damaged, or of a form that the library does not know: it raises whatever it comes upon
            return []


def _rows(dwarf: Any) -> Iterator[_Rows]:
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        files = program["file_entry"]
        first = 0 if program["version"] >= 5 else 1  # what number the first file has
        before = None
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if before is not None and before.address < state.address and before.line:
                name = files[before.file - first].name
                place = f"{posixpath.basename(name.decode(errors='replace'))}:{before.line}"
                yield _Rows(before.address, state.address, place)
            before = None if state.end_sequence else state
