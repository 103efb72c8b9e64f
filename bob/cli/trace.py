"""``bob trace``: shows and checks logs of dm-log-writes that bob or another program wrote."""

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import IO

import click
from msgspec import Struct
from rich.console import Console
from rich.text import Text

from bob.cli.commands import Commands
from bob.cli.logs import LOG, opened_log
from bob.options import Range, option
from bob.run.option_paths import OUTPUT
from bob.schema import Document, adapt, encode
from bob.trace.log import LogEntry, LogReader
from bob.trace.log_format import EntryFlags

DUMP_BYTES = 16  # bytes of each entry that ``--data`` shows

_STYLES = {EntryFlags.MARK: "cyan", EntryFlags.FLUSH: "yellow", EntryFlags.FUA: "red", EntryFlags.DISCARD: "dim"}
_COLUMNS = f"{'entry':>8} {'byte':>13} {'sector':>11} {'sectors':>8}  what"

JSON: Path | None = option("--json FILE", "Write JSON into FILE instead; - is stdout.", OUTPUT)


class _TraceCommands(Commands):
    """The commands of ``bob trace``. Only a call of ``import`` loads what runs guests."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), "import"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name != "import":
            return super().get_command(ctx, cmd_name)
        from bob.cli.import_ import import_

        return import_


@click.group(cls=_TraceCommands)
def trace() -> None:
    """Inspect a block log: the log device of a dm-log-writes target, or a file with its contents."""


@trace.command()
def show(
    log: Path = LOG,
    *,
    first: int = option("--from N", "Begin at entry N (from 0).", Range(0), 0),
    limit: int | None = option("--limit N", "Show at most N entries.", Range(0)),
    data: bool = option("--data", f"Show the first {DUMP_BYTES} bytes of each write."),
    past_count: bool = option(
        "--past-count", "Also read entries beyond the log's own count, which a lost guest may leave."
    ),
    json_file: Path | None = JSON,
) -> None:
    """List the entries of LOG in its order, one per line.

    The log's order is neither the order of submission nor that on the disk: FUA writes and marks overtake unflushed
    writes. Sectors are in the log's own unit, which the first line names.

    \b
    Example:
      bob trace show --from 100 --limit 20 --data log.img
      bob trace show --json - /dev/vdc | jq '.entries[] | select(.mark != "")'
    """
    with closing(opened_log(log, past_count=past_count)) as reader:
        entries = islice(reader, first, None if limit is None else first + limit)
        if json_file is not None:
            with click.open_file(str(json_file), "w") as file:
                _write_json(file, reader, entries, data=data)
            return
        console = Console(highlight=False, soft_wrap=True)
        _line(console, f"{reader.super.nr_entries} entries, sectors of {reader.super.sectorsize} bytes")
        _line(console, _COLUMNS, "bold")
        for entry in entries:
            style = next((style for flag, style in _STYLES.items() if flag in entry.flags), "")
            _line(console, _row(entry, data=data), style)


@trace.command()
def verify(log: Path = LOG, json_file: Path | None = JSON) -> None:
    """Check LOG and count its entries. The exit code is 8 if the log is incomplete or malformed.

    bob counts entries beyond the log's own count separately. `dmsetup remove` leaves none; a lost guest can leave some.

    \b
    Example:
      bob trace verify log.img && echo fine
    """
    with closing(opened_log(log, past_count=True)) as reader:
        found = encode(_count(reader, reader.super.nr_entries, reader.super.sectorsize))
    if json_file is not None:
        with click.open_file(str(json_file), "w") as file:
            file.write(json.dumps(found, indent=2) + "\n")
        return
    console = Console(highlight=False, soft_wrap=True)
    for name, count in list(found.items())[1:]:
        _line(console, f"{name.replace('_', ' '):<20} {count:>14}")


class LogCounts(Struct, tag_field="schema", tag="bob.trace.verify/1"):
    """Counts of a log's entries. ``bytes`` is the size of all writes. ``fua`` counts the writes with the flag FUA, and
    ``metadata`` those with the flag METADATA. ``beyond_count`` is how many entries the log has beyond the number in its
    superblock."""

    sectorsize: int
    entries: int
    writes: int
    fua: int
    metadata: int
    flushes: int
    discards: int
    marks: int
    bytes: int
    beyond_count: int


def _count(entries: Iterable[LogEntry], counted: int, sectorsize: int) -> LogCounts:
    total = LogCounts(sectorsize, *[0] * 9)
    for entry in entries:
        total.entries += 1
        total.beyond_count += entry.index >= counted
        total.bytes += entry.data_bytes
        total.discards += EntryFlags.DISCARD in entry.flags
        total.marks += EntryFlags.MARK in entry.flags
        total.flushes += EntryFlags.FLUSH in entry.flags
        if entry.data_bytes:
            total.writes += 1
            total.fua += EntryFlags.FUA in entry.flags
            total.metadata += EntryFlags.METADATA in entry.flags
    return total


def _row(entry: LogEntry, *, data: bool) -> str:
    words = " ".join(["write"] * bool(entry.data_bytes) + _flag_names(entry)) or "nothing"
    what = repr(entry.mark) if entry.flags & EntryFlags.MARK else words
    row = f"{entry.index:>8} {entry.offset:>13} {entry.sector:>11} {entry.nr_sectors:>8}  {what}"
    return f"{row:<62} {_dump(entry)}" if data and entry.data_bytes else row


def _flag_names(entry: LogEntry) -> list[str]:
    return [str(flag.name).lower() for flag in EntryFlags if flag in entry.flags]


def _dump(entry: LogEntry) -> str:
    start = entry.data()[:DUMP_BYTES]
    return f"{start.hex(' ', 4)} |{''.join(chr(byte) if 32 <= byte < 127 else '.' for byte in start)}|"


def _line(console: Console, text: str, style: str = "") -> None:
    if console.is_terminal:
        console.print(Text(text, style=style))
    else:
        click.echo(text)


class LogRow(Document, frozen=True):
    """An entry of a log. Numbers and counts of sectors use the log's own sector size, not always 512 bytes. ``data``
    has the first bytes in hexadecimal."""

    index: int
    offset: int
    sector: int
    nr_sectors: int
    flags: tuple[str, ...]
    data_bytes: int
    mark: str
    data: str = ""


class LogDocument(Document, frozen=True, tag_field="schema", tag="bob.trace.show/1"):
    nr_entries: int
    sectorsize: int
    entries: tuple[LogRow, ...]


def _write_json(file: IO[str], reader: LogReader, entries: Iterator[LogEntry], *, data: bool) -> None:
    """Write the document piece by piece, since a log can be larger than memory."""
    head = encode(LogDocument(reader.super.nr_entries, reader.super.sectorsize, ()))
    file.write(json.dumps(head).removesuffix("]}"))
    separator = "\n"
    for entry in entries:
        file.write(separator + json.dumps(encode(_document(entry, data=data))))
        separator = ",\n"
    file.write("\n]}\n")


def _document(entry: LogEntry, *, data: bool) -> LogRow:
    start = entry.data()[:DUMP_BYTES].hex() if data and entry.data_bytes else ""
    return adapt(LogRow, entry, flags=tuple(_flag_names(entry)), data=start)
