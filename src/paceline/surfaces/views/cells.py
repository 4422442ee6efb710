"""Formats values as short text; a value that was not measured becomes ``-``."""

from __future__ import annotations

import datetime

from rich.cells import cell_len, chop_cells
from rich.text import Text

from paceline.model import quantities

UNMEASURED = "-"
FOOTNOTE = "- not measured"


def clean(text: str) -> str:
    """Return text on one line, with all characters escaped that a terminal would act on."""
    return clean_line(" ".join(text.split()))


def clean_line(text: str) -> str:
    """Return a line with its blanks kept, and with all characters escaped that a terminal would act on."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def shorten(text: str, width: int) -> str:
    """Return text that takes at most ``width`` columns; it ends in ``…`` if it was shortened."""
    if cell_len(text) <= width:
        return text
    kept, used = [], 0
    for char in text:
        used += cell_len(char)
        if used > width - 1:
            break
        kept.append(char)
    return "".join(kept) + "…" if width > 0 else ""


def number(value: float | None, digits: int = 1) -> str:
    """Return a number in few characters, such as ``12.3``, ``4.1k``, ``63k``, ``1.2M``."""
    if value is None:
        return UNMEASURED
    size = abs(value)
    for limit, unit in ((999_950_000, "G"), (999_950, "M"), (9_999.5, "k")):
        if size >= limit:
            scaled = value / {"G": 1e9, "M": 1e6, "k": 1e3}[unit]
            return f"{scaled:.0f}{unit}" if abs(scaled) >= 99.95 else f"{scaled:.1f}{unit}"
    return f"{value:.0f}" if size >= 99.95 or value == int(value) else f"{value:.{digits}f}"


def cores(value: float | None) -> str:
    """Return CPU cores: ``0.82``, ``12.5``."""
    if value is None:
        return UNMEASURED
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}"


def of_limit(used: str, limit: str) -> str:
    """Return ``used/limit``, or only ``used`` if there is no limit."""
    return used if limit == UNMEASURED else f"{used}/{limit}"


def compact_bytes(value: float | None) -> str:
    """Return bytes in few characters, in powers of 1024: ``0``, ``14B``, ``512K``, ``1.2G``."""
    if value is None:
        return UNMEASURED
    size = float(value)
    if size == 0:
        return "0"
    for unit in ("B", "K", "M", "G", "T"):
        if abs(size) < 999.5 or unit == "T":
            return f"{size:.1f}{unit}" if unit != "B" and abs(size) < 9.95 else f"{size:.0f}{unit}"
        size /= 1024
    raise AssertionError("unreachable")


def percent(share: float | None) -> str:
    """Return a share between 0 and 1 as ``12%``; below ten percent with one decimal."""
    if share is None:
        return UNMEASURED
    return f"{share * 100:.0f}%" if share >= 0.0995 or share == 0 else f"{share * 100:.1f}%"


def loss(value: float | None) -> str:
    """Return a loss or a quality with four significant digits."""
    return UNMEASURED if value is None else f"{value:.4g}"


def duration(seconds: float | None) -> str:
    """Return a duration: ``4.2s``, ``3m12s``; ``-`` for None."""
    return UNMEASURED if seconds is None else quantities.format_seconds(max(0.0, seconds))


def moment(at: float | None) -> str:
    """Return a Unix time as ISO 8601 in UTC."""
    if at is None:
        return UNMEASURED
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(at: float) -> str:
    """Return the time of day in UTC."""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%H:%M:%S")


def wrapped(text: str, width: int) -> list[str]:
    """Return text in lines of at most ``width`` columns, broken between words if possible."""
    lines = [""]
    for word in text.split(" "):
        for piece in chop_cells(word, width) or [word]:
            joined = f"{lines[-1]} {piece}" if lines[-1] else piece
            if cell_len(joined) <= width:
                lines[-1] = joined
            else:
                lines.append(piece)
    return lines


def lines(text: str, width: int | None) -> list[str]:
    """Return text wrapped to a width; on one line if the width is None."""
    return [text] if width is None else wrapped(text, width)


def interval(middle: float, low: float, high: float) -> str:
    """Return a value with its interval, such as ``1.50 (1.20 to 1.80)``."""
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def indented(text: str, width: int | None) -> Text:
    """Return text wrapped and indented by two columns."""
    text = clean(text)
    found = lines(text, None if width is None else max(20, width - 2))
    return Text("\n").join(Text(f"  {line}") for line in found)
