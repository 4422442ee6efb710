"""How much of a measured number a block keeps.

Most digits of a measurement are noise, and noise cannot be packed. A number is kept in units (1 ms, 1e-4
cores, 64 KiB), and of those so many binary digits: with n digits it is kept as it is up to 2**n units, and
within 1 / 2**n of itself beyond (10 digits: 0.1 %, 9: 0.2 %, 8: 0.4 %, 7: 0.8 %, 6: 1.6 %). Rounding goes
both ways alike, so sums and means of many are better than one. Numbers that no unit fits (infinite, beyond
2**53 units) are kept exactly.

A number with n digits has a code: a whole number that grows with it and has n + 6 digits at most. Codes of
similar numbers are near each other, so they are what is packed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence

#: What floats hold exactly.
MOST_UNITS = 2**53
#: More digits than any number has.
MOST_DROPPED = 128


@dataclasses.dataclass(frozen=True, slots=True)
class Precision:
    """How a field is kept in blocks.

    Attributes:
        number: stands for the field in a block; never given to another field.
        decimals: of a float: a unit is 10 to the power of minus that; None: a whole number.
        unit_bits: of a whole number: a unit is 2 to the power of that.
        digits: binary digits that are kept; 0: all.
        exact_below: if a number of a column is smaller, and not 0, the column is kept exactly.
    """

    number: int
    decimals: int | None = None
    unit_bits: int = 0
    digits: int = 0
    exact_below: float = 0.0


#: By the field of a sample or a step report. Limits are compared with what is used, so they are exact.
PRECISIONS: Mapping[str, Precision] = {
    "at": Precision(1, decimals=3),
    "interval_seconds": Precision(2, decimals=3, exact_below=0.1),
    "cpu_cores": Precision(3, decimals=4, digits=8),
    "cpu_limit_cores": Precision(4, decimals=6),
    "throttled_seconds": Precision(5, decimals=4, digits=7),
    "memory_bytes": Precision(6, unit_bits=16, digits=8),
    "memory_limit_bytes": Precision(7),
    "network_received_bytes": Precision(8, digits=7),
    "network_sent_bytes": Precision(9, digits=7),
    "voluntary_switches": Precision(10, digits=6),
    "involuntary_switches": Precision(11, digits=6),
    "threads": Precision(12),
    "neighbours_cpu_cores": Precision(13, decimals=2, digits=6),
    "gpu_utilization": Precision(14, decimals=4),
    "gpu_memory_bytes": Precision(15, unit_bits=16),
    "sent_segments": Precision(16, digits=6),
    "retransmitted_segments": Precision(17, digits=9),
    "step": Precision(18),
    "steps": Precision(19),
    "examples": Precision(20),
    "loss": Precision(21, decimals=7, digits=17),
    "input_wait_seconds": Precision(22, decimals=4, digits=9),
    "total_steps": Precision(23),
    "run_delay_seconds": Precision(24, decimals=4, digits=5),
    "allowed_cpus": Precision(25),
    "stolen_cpu_cores": Precision(26, decimals=2, digits=6),
    "input_cpu_seconds": Precision(27, decimals=3, digits=7),
    "all_reduce_seconds": Precision(28, decimals=4, digits=9),
}


def shortened(units: int, digits: int) -> int:
    """Return the code of a number of units of which so many binary digits are kept (0: all)."""
    if units < 0:
        return -shortened(-units, digits)
    dropped = units.bit_length() - digits
    if digits == 0 or dropped <= 0:
        return units
    # Where rounding up gives a digit more, the sum is the code of just that.
    return ((units + (1 << (dropped - 1))) >> dropped) + (dropped << (digits - 1))


def lengthened(code: int, digits: int) -> int:
    """Return the units that a code stands for: the nearest to those that it was made of.

    Raises:
        OverflowError: no number has such a code.
    """
    if code < 0:
        return -lengthened(-code, digits)
    if digits == 0 or code >> digits == 0:
        return code
    dropped = (code >> (digits - 1)) - 1
    if dropped > MOST_DROPPED:
        raise OverflowError("a code of too many digits")
    return (code - (dropped << (digits - 1))) << dropped


@dataclasses.dataclass(frozen=True, slots=True)
class Meaning:
    """What codes stand for: of which units (see `Precision`), and how many digits of them."""

    decimals: int | None
    unit_bits: int
    digits: int

    def number(self, code: int) -> int | float:
        """Return the number that a code stands for."""
        units = lengthened(code, self.digits)
        return units << self.unit_bits if self.decimals is None else units / 10**self.decimals

    def each(self, codes: Sequence[int]) -> Sequence[int | float]:
        """Return the numbers that codes stand for, sooner than one by one."""
        units = _each_lengthened(codes, self.digits)
        if self.decimals is None:
            return [number << self.unit_bits for number in units] if self.unit_bits else units
        factor = 10**self.decimals
        return [number / factor for number in units]


def _each_lengthened(codes: Sequence[int], digits: int) -> Sequence[int]:
    if not digits or not codes:
        return codes
    if min(codes) >> digits <= 0:
        return [lengthened(code, digits) for code in codes]
    lengthened(max(codes), digits)  # raises if there is no such number
    # All of them have dropped digits, so the first of `digits` is a one, which codes do not say.
    shift = digits - 1
    first = 1 << shift
    rest = first - 1
    return [(code & rest | first) << (code >> shift) - 1 for code in codes]


class Numbers(dict[int, "int | float"]):
    """The numbers that codes stand for, by how far a code is beyond a base; each is worked out once."""

    def __init__(self, meaning: Meaning, base: int) -> None:
        super().__init__()
        self._meaning, self._base = meaning, base

    def __missing__(self, residue: int) -> int | float:
        number = self[residue] = self._meaning.number(self._base + residue)
        return number


@functools.lru_cache(maxsize=512)
def numbers(meaning: Meaning, base: int) -> Numbers:
    """Return the numbers beyond a base, which all who read such codes share."""
    return Numbers(meaning, base)
