"""Kubernetes quantities, durations and bandwidths, from text to numbers and back.

The grammar of quantities is Kubernetes' own (``k8s.io/apimachinery/pkg/api/resource``): a decimal number
with one of ``n u m k M G T P E`` (powers of 1000), ``Ki Mi Gi Ti Pi Ei`` (powers of 1024) or an exponent.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY = re.compile(
    r"([+-]?(?:\d++(?:\.\d*+)?|\.\d++))([eE][+-]?\d{1,3}|[KMGTPE]i|[numkMGTPE]?)", re.ASCII
)
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?", re.ASCII)
_BANDWIDTH = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)(bit|bps|B/s|Bps)?", re.ASCII)

_MOST_CHARACTERS = 100
#: Cores are counted in thousandths, and no machine has more than `MOST_CORES`.
LEAST_CORES = 0.001
MOST_CORES = 4096
#: Python beside the agent needs at least 16 MiB to start; with 12 MiB it no longer starts. No node of today
#: has more than `MOST_NODE_CORES`.
LEAST_PROCESS_BYTES, MOST_NODE_CORES = 32 << 20, 512


def parse_quantity(text: str | int | float) -> Decimal:
    """Return the number that a Kubernetes quantity stands for.

    Raises:
        ValueError: the text is not a quantity.
    """
    match = _QUANTITY.fullmatch(_short(text).strip())
    if match is None:
        raise ValueError(f"{text!r} is not a quantity (examples: 2, 500m, 1.5, 4Gi, 512Mi)")
    number, suffix = Decimal(match[1]), match[2]
    if suffix in _BINARY:
        return number * Decimal(2 ** _BINARY[suffix])
    if suffix in _DECIMAL:
        return number.scaleb(_DECIMAL[suffix])
    return number.scaleb(int(suffix[1:]))


def _short(text: str | int | float) -> str:
    """Return the text if it is short: the time to parse a number grows with the square of its length."""
    if isinstance(text, str) and len(text) > _MOST_CHARACTERS:
        raise ValueError(f"a quantity has {_MOST_CHARACTERS} characters at most, not {len(text):,}")
    return str(text)


def parse_cpu_cores(text: str | int | float) -> float:
    """Return CPU cores, rounded up to a thousandth as Kubernetes does.

    Raises:
        ValueError: not a quantity, not above zero, or beyond any machine.
    """
    cores = parse_quantity(text)
    if cores <= 0:
        raise ValueError(f"{text!r} must be above 0 cores")
    if cores > MOST_CORES:
        raise ValueError(f"{text!r} is more than {MOST_CORES} cores")
    return float(cores.quantize(Decimal("0.001"), rounding=ROUND_CEILING))


def is_whole(cores: float) -> bool:
    """Whether a number of cores is whole; an ``int`` is, too, but has no ``is_integer`` in Python 3.11."""
    return cores % 1 == 0


def parse_bytes(text: str | int | float) -> int:
    """Return a number of bytes, rounded up to a whole one.

    Raises:
        ValueError: not a quantity, less than a byte, or beyond any machine.
    """
    exact = parse_quantity(text)
    if exact <= 0:
        raise ValueError(f"{text!r} must be above 0 bytes")
    if exact < 1:
        # Kubernetes accepts thousandths of a byte, but users never mean them.
        number = str(text).strip().rstrip("num")
        unit = "Mi" if str(text).strip() != number else "Gi"
        raise ValueError(f"{text!r} is less than a byte: {number}{unit} is meant?")
    amount = int(exact.to_integral_value(rounding=ROUND_CEILING))
    if amount > 2**60:
        raise ValueError(f"{text!r} is more than 1Ei bytes")
    return amount


def parse_seconds(text: str | int | float) -> float:
    """Return seconds from a number of seconds or from text such as ``90s``, ``5m``, ``1h30m``, ``7d``.

    Raises:
        ValueError: not a duration, or negative.
    """
    if isinstance(text, int | float) or re.fullmatch(r"\d+(\.\d+)?", text.strip(), re.ASCII):
        seconds = float(str(text))
    else:
        match = _DURATION.fullmatch(text.strip())
        if match is None or not any(match.groups()):
            raise ValueError(f"{text!r} is not a duration (examples: 30, 90s, 5m, 1h30m, 7d)")
        days, hours, minutes, rest = (float(part or 0) for part in match.groups())
        seconds = ((days * 24 + hours) * 60 + minutes) * 60 + rest
    if not 0 <= seconds <= 3650 * 86400:
        raise ValueError(f"{text!r} must be between 0 and 3650 days")
    return seconds


def parse_bits_per_second(text: str | int | float) -> int:
    """Return bits per second from text such as ``1G``, ``100Mbit``, ``25Gbps`` or ``10MB/s``.

    Raises:
        ValueError: not a bandwidth, or not between 8 kbit and 10 Tbit a second.
    """
    match = _BANDWIDTH.fullmatch(_short(text).strip())
    if match is None:
        raise ValueError(f"{text!r} is not a bandwidth (examples: 1G, 100Mbit, 25Gbps, 10MB/s)")
    bits = Decimal(match[1]).scaleb(_DECIMAL[match[2]]) * (8 if match[3] in ("B/s", "Bps") else 1)
    if not 8000 <= bits <= Decimal(10) ** 13:
        raise ValueError(f"{text!r} must be between 8k and 10T bits per second")
    return int(bits)


def format_bytes(amount: float | None) -> str:
    """Return a number of bytes for users: ``512 MiB``; ``not measured`` for None."""
    if amount is None:
        return "not measured"
    value = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


def format_seconds(seconds: float | None) -> str:
    """Return a duration for users: ``4.2s``, ``3m12s``, ``5h03m``, ``2d04h``; ``not measured`` for None."""
    if seconds is None:
        return "not measured"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours < 24 else f"{hours // 24}d{hours % 24:02d}h"


def quantity_bytes(amount: int) -> str:
    """Return the shortest exact Kubernetes quantity of a number of bytes: ``2Gi``, ``1500Mi``, ``12345``."""
    for suffix in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
        unit = 2 ** _BINARY[suffix]
        if amount % unit == 0:
            return f"{amount // unit}{suffix}"
    return str(amount)


def quantity_cores(cores: float) -> str:
    """Return CPU cores as a Kubernetes quantity: ``2``, ``1500m``."""
    millicores = round(cores * 1000)
    return str(millicores // 1000) if millicores % 1000 == 0 else f"{millicores}m"


def plain(quantity: str) -> int | str:
    """Return a quantity as users write it in a job file: an integer if it has no suffix."""
    return int(quantity) if quantity.isdecimal() else quantity
