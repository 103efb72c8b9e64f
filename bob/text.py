"""Numbers and names, formatted for sentences."""

import math

LARGEST_IN_DIGITS = 10**6
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def compact(count: int) -> str:
    """Return ``count`` as digits, or, from 10^6 on, as the nearest power of two, such as ``2^88``."""
    return f"{count:,}" if count < LARGEST_IN_DIGITS else f"2^{round(math.log2(count))}"


def share(part: int, every: int) -> str:
    """Return the share of ``part`` in the total ``every``, in words: ``none``, ``< 0.1 %``, ``0.4 %``, ``12 %``, ``> 99
    %`` or ``all``. Only an exact 0 is ``none``, and only an exact 1 is ``all``."""
    if part >= every:
        return "all"
    if part <= 0:
        return "none"
    if part * 1000 < every:
        return "< 0.1 %"
    if part * 100 > every * 99:
        return "> 99 %"
    tenths = part * 1000 // every
    return f"{tenths // 10} %" if tenths >= 10 else f"0.{tenths} %"


def log2(count: int) -> float:
    """Return the binary logarithm of ``count``, an integer of any size; NaN if ``count`` is 0."""
    return math.log2(count) if count > 0 else math.nan


def size(count: int) -> str:
    """Return ``count`` bytes in the largest unit that gives at least 1, such as ``32 MiB`` or ``1.4 GiB``."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if value >= 10 or value.is_integer() else f"{value:.1f} {_UNITS[unit]}"


def plural(count: int, what: str, many: str = "") -> str:
    """Return the count with its noun, such as ``1 crash state``, ``3 crash states`` or ``2^88 crash states``. ``what``
    is the noun in the singular. ``many`` is its plural, if this is not ``what`` with an s."""
    return f"{compact(count)} {what if count == 1 else many or f'{what}s'}"


def duration(seconds: float) -> str:
    """Return a duration in minutes and seconds (``2:07``), or in hours, minutes and seconds (``1:02:07``)."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def shortened(text: str, most: int) -> str:
    """Return ``text``, cut to ``most`` characters if it is longer; a cut text ends with ``...``."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def printable(text: str) -> str:
    """Return ``text`` with escapes. Control characters become escapes such as ``\\n`` and ``\\x1b``, and bytes that are
    not UTF-8 become escapes such as ``\\xff``."""
    return text if text.isprintable() else "".join(map(_letter, text))


def _letter(letter: str) -> str:
    if letter.isprintable():
        return letter
    if (
        "\udc80" <= letter <= "\udcff"
    ):  # Python's error handler surrogateescape puts such a letter for a byte that is not UTF-8
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode()
