"""Formats numbers for readers; None becomes ``not measured``."""

from __future__ import annotations

import datetime
import math
import re
import unicodedata
from collections.abc import Sequence

from paceline.model import quantities

UNMEASURED = "not measured"


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with this many significant digits: ``34 400``, ``12.3``, ``0.042``."""
    if value is None or not math.isfinite(value):
        return UNMEASURED
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    return f"{rounded:,.{max(0, places)}f}".replace(",", " ")


def whole(value: float | None) -> str:
    """Return a count in full: ``1 500 000``."""
    return UNMEASURED if value is None else f"{round(value):,}".replace(",", " ")


def cores(value: float | None) -> str:
    """Return CPU cores: ``0.82``, ``12``."""
    if value is None:
        return UNMEASURED
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}"


def share(value: float | None) -> str:
    """Return a share between 0 and 1 in percent."""
    if value is None:
        return UNMEASURED
    percent = value * 100
    return f"{percent:.1f} %" if 0 < percent < 9.95 else f"{percent:.0f} %"


def rate_of_bytes(value: float | None) -> str:
    """Return bytes per second: ``80.2 MiB/s``."""
    return UNMEASURED if value is None else f"{quantities.format_bytes(value)}/s"


def quality(value: float | None) -> str:
    """Return an AUC or a loss."""
    return UNMEASURED if value is None else f"{value:.4f}"


def ratio(value: float | None) -> str:
    """Return a ratio of two values."""
    return UNMEASURED if value is None else f"{value:.2f}"


def duration(value: float | None) -> str:
    """Return a duration: ``42s``, ``3m12s``."""
    return quantities.format_seconds(value)


def moment(at: float | None) -> str:
    """Return an instant in UTC."""
    if at is None:
        return UNMEASURED
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def clean(text: str) -> str:
    """Return text with control and format characters replaced; line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char in "\n\t" or not unicodedata.category(char).startswith("C")
        else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def tied(text: str) -> str:
    """Return text with no-break spaces in its numbers, such as ``34 400`` or ``5 %``."""
    return re.sub(r"(?<=\d) (?=\d{3}\b|%)", "\N{NO-BREAK SPACE}", text)


def shortened(text: str, limit: int) -> str:
    """Return text, shortened to at most ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def joined(parts: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
