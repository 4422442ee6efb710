"""The precision to which a block stores each measured number.

Most digits of a measurement are noise, and noise cannot be compressed. A number is stored as a number of
units (1 ms, 1e-4 cores, 64 KiB) with a limited number of binary digits. With n digits, it is exact up to 2**n
units and within 1 / 2**n of itself beyond (10 digits: 0.1 %, 9: 0.2 %, 8: 0.4 %, 7: 0.8 %, 6: 1.6 %).
Rounding goes up as often as down, so sums and means of many numbers are more precise than a single number.
Numbers that no unit fits (infinite, beyond 2**53 units) are stored exactly, with their whole column.

A number with n digits is packed as its code: an integer that grows with the number and has at most n + 6
binary digits. Similar numbers have similar codes, which compress well.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence

from paceline.model.measures.gauges import GaugeSpec, gauges
from paceline.model.measures.samples import Sample, StepReport

#: Floats hold integers up to this one exactly.
MOST_UNITS = 2**53
#: More digits than any number has.
MOST_DROPPED = 128


#: The fields of samples and step reports. Limits are exact: they are compared with use.
PRECISIONS: Mapping[str, GaugeSpec] = {**gauges(Sample), **gauges(StepReport)}


def shortened(units: int, digits: int) -> int:
    """Return the code of a number of units, with this many binary digits kept (0: all)."""
    if units < 0:
        return -shortened(-units, digits)
    dropped = units.bit_length() - digits
    if digits == 0 or dropped <= 0:
        return units
    # If rounding up carries into one more digit, the sum is the code of the carried number.
    return ((units + (1 << (dropped - 1))) >> dropped) + (dropped << (digits - 1))


def lengthened(code: int, digits: int) -> int:
    """Return the number of units that a code stands for: the original one, rounded to the kept digits.

    Raises:
        OverflowError: no number has this code.
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
    """How to read codes: their unit and how many digits they keep (see `GaugeSpec`)."""

    decimals: int | None
    unit_bits: int
    digits: int

    def number(self, code: int) -> int | float:
        """Return the number that a code stands for."""
        units = lengthened(code, self.digits)
        return units << self.unit_bits if self.decimals is None else units / 10**self.decimals

    def each(self, codes: Sequence[int]) -> Sequence[int | float]:
        """Return the numbers that codes stand for; faster than calling ``number`` for each code."""
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
    lengthened(max(codes), digits)  # raises if no number has this code
    # All of them have dropped digits, so the leading kept digit is 1; the code does not store it as such.
    shift = digits - 1
    first = 1 << shift
    rest = first - 1
    return [(code & rest | first) << (code >> shift) - 1 for code in codes]


class Numbers(dict[int, "int | float"]):
    """The numbers that codes stand for, by the distance of a code from a base; computed on first use."""

    def __init__(self, meaning: Meaning, base: int) -> None:
        super().__init__()
        self._meaning, self._base = meaning, base

    def __missing__(self, residue: int) -> int | float:
        number = self[residue] = self._meaning.number(self._base + residue)
        return number


@functools.lru_cache(maxsize=512)
def numbers(meaning: Meaning, base: int) -> Numbers:
    """Return the cached numbers for a meaning and a base; all columns with both in common share them."""
    return Numbers(meaning, base)
