"""Many measurements of one replica and attempt as a few thousand bytes.

Columns are packed one by one. A column's numbers become whole ones (see `precisions`); of these, or of their
differences where those are smaller, the middle is taken away; and what is left is laid out plane by plane,
all low bytes first, since the higher ones of similar numbers are alike. Each plane is deflated where that
makes it shorter: noise stays as it is and costs about a byte for each number, all else nearly nothing.

The bytes: a version, a checksum (CRC-32) of the rest, the number of rows, the columns. A column: the number
of its field, its form (below), its decimals or unit, its digits, a plane that says which rows have a number
where not all have, base, first number where it holds differences, width in bytes, planes. Where numbers are
kept exactly, they are one plane of 8 bytes each behind the form. A plane is its length and that many bytes;
none stands for zeros. Whole numbers are written as in Protocol Buffers (varint, ZigZag). A field that is None
throughout is left out.
"""

from __future__ import annotations

import array
import itertools
import math
import statistics
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from paceline.stores import precisions

#: The numbers of each field, in the same order; None where it was not measured.
Columns = Mapping[str, Sequence[Any]]

VERSION = 1
#: Paceline packs fewer rows; more are the mark of a damaged block.
MOST_ROWS = 1 << 16

_FLOATS, _EXACT, _DIFFERENCES, _GAPS = 1, 2, 4, 8
_FIELDS = {precision.number: name for name, precision in precisions.PRECISIONS.items()}
_TYPES = {2: "h", 4: "i", 8: "q"}
_HEAD_BYTES = 5
#: Numbers of more bytes beyond their base seldom are the same as others of the block.
_WIDE_BYTES = 1
_BASES = 64
#: Differences take longer to read, so they must be that much smaller.
_MUCH = 0.9
#: Of deflate: no block reaches further back, and it packs faster than with the largest.
_WINDOW_BITS = 12
#: Looking for repetitions, or not: among noise there are only false ones.
_STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY)


class Damaged(ValueError):
    """Bytes are no block, or no longer the block that was packed."""


def pack(columns: Columns) -> bytes:
    """Return columns of equal length as a block.

    Args:
        columns: by fields that have a precision; numbers have at most 64 bits, ``at`` has no None.
    """
    rows = len(columns["at"])
    body = bytearray(_whole(rows))
    for name, numbers in columns.items():
        body += _column(precisions.PRECISIONS[name], numbers)
    return bytes([VERSION]) + zlib.crc32(body).to_bytes(4, "big") + bytes(body)


def bounds(columns: Columns) -> tuple[float, float]:
    """Return between which times measurements lie, packed or not (Unix seconds, whole ms)."""
    return math.floor(min(columns["at"]) * 1000) / 1000, math.ceil(max(columns["at"]) * 1000) / 1000


def unpack(block: bytes) -> dict[str, Sequence[Any]]:
    """Return the columns of a block, without those that are None throughout.

    Raises:
        Damaged: it is not a block, or not as it was packed.
    """
    if len(block) <= _HEAD_BYTES or block[0] != VERSION:
        raise Damaged(f"it is no block of version {VERSION}")
    if zlib.crc32(memoryview(block)[_HEAD_BYTES:]).to_bytes(4, "big") != block[1:_HEAD_BYTES]:
        raise Damaged("its checksum is another")
    try:
        reader = _Reader(block, _HEAD_BYTES)
        rows = reader.whole()
        if rows > MOST_ROWS:
            raise Damaged(f"it would have {rows} rows")
        return dict(_columns(reader, rows))
    except (IndexError, KeyError, OverflowError, zlib.error) as error:
        raise Damaged(f"it cannot be unpacked ({type(error).__name__})") from error


class _Residues(NamedTuple):
    """Numbers as a column holds them: each is its residue and the base, or those added up from the first."""

    base: int
    first: int | None
    width: int
    values: Sequence[int]


def _column(precision: precisions.Precision, numbers: Sequence[Any]) -> bytes:
    """Return a column packed; nothing when all of it is None."""
    measured = numbers if None not in numbers else [number for number in numbers if number is not None]
    if not measured:
        return b""
    form = (precision.decimals is not None) * _FLOATS
    gaps = b""
    if len(measured) < len(numbers):
        form |= _GAPS
        gaps = _plane(bytes(number is not None for number in numbers))
    codes = _codes(precision, measured)
    residues = None if codes is None else _residues(codes)
    if residues is None:
        kept = array.array("d" if form & _FLOATS else "q", measured)
        exact = _plane(_little(kept).tobytes())
        return bytes([precision.number, form | _EXACT]) + gaps + exact
    scale = precision.unit_bits if precision.decimals is None else precision.decimals
    form |= (residues.first is not None) * _DIFFERENCES
    head = bytes([precision.number, form, scale, precision.digits]) + gaps + _signed(residues.base)
    head += b"" if residues.first is None else _signed(residues.first)
    head += bytes([residues.width])
    if not residues.width:
        return head
    data = _little(array.array(_TYPES.get(residues.width, "B"), residues.values)).tobytes()
    return head + b"".join(_plane(data[place :: residues.width]) for place in range(residues.width))


def _codes(precision: precisions.Precision, measured: Sequence[Any]) -> Sequence[int] | None:
    """Return the codes of numbers; None when they are to be kept exactly."""
    digits = precision.digits
    if precision.decimals is None:
        bits = precision.unit_bits
        units = [(number + (1 << bits >> 1)) >> bits for number in measured] if bits else measured
    else:
        factor = 10**precision.decimals
        most, least = precisions.MOST_UNITS / factor, precision.exact_below
        if any(not -most < number < most or (0 < number < least) for number in measured):
            return None
        units = [round(number * factor) for number in measured]
    return [precisions.shortened(number, digits) for number in units] if digits else units


def _residues(codes: Sequence[int]) -> _Residues | None:
    """Return codes, or their differences if those are much smaller; None when 64 bits do not hold them."""
    differences = [after - before for before, after in itertools.pairwise(codes)]
    middle, step = (statistics.median_low(of) if of else 0 for of in (codes, differences))
    if _size(differences, step) < _MUCH * _size(codes, middle):
        base, width = _width(differences, step)
        made = _Residues(base, codes[0], width, [each - base for each in differences])
    else:
        base, width = _width(codes, middle)
        made = _Residues(base, None, width, [each - base for each in codes])
    return made if width <= 8 else None


def _size(numbers: Sequence[int], middle: int) -> int:
    """Return about how many bits numbers need."""
    return sum((number - middle).bit_length() for number in numbers)


def _width(numbers: Sequence[int], middle: int) -> tuple[int, int]:
    """Return what is taken away from numbers, and how many bytes of each are left; 9 when more than 8."""
    least, most = min(numbers, default=0), max(numbers, default=0)
    if most == least:
        return least, 0
    # Few bases, since what is beyond each is remembered.
    base = least - least % _BASES
    if most - base < 256:
        return base, 1
    # So that those near the middle have the same higher bytes.
    base = middle - 128 - (middle - 128) % _BASES
    for width in (2, 4, 8):
        limit = 1 << (8 * width - 1)
        if base - limit <= least and most < base + limit:
            return base, width
    return base, 9


def _plane(data: bytes) -> bytes:
    """Return bytes packed behind their length; none for zeros."""
    if not any(data):
        return _whole(0)
    kept = min(data, *(_deflated(data, strategy) for strategy in _STRATEGIES), key=len)
    return _whole(len(kept)) + kept


def _deflated(data: bytes, strategy: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -_WINDOW_BITS, strategy=strategy)
    return packer.compress(data) + packer.flush()


def _little(numbers: array.array[Any]) -> array.array[Any]:
    """Return numbers in the order of bytes in which they are stored, the low one first."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _whole(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _signed(number: int) -> bytes:
    return _whole(number << 1 if number >= 0 else ~number << 1 | 1)


class _Reader:
    """Reads the bytes of a block from a place on."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place

    def at_end(self) -> bool:
        return self._place == len(self._data)

    def byte(self) -> int:
        self._place += 1
        return self._data[self._place - 1]

    def whole(self) -> int:
        number = self._data[self._place]
        self._place += 1
        if number < 0x80:
            return number
        number, shift = number & 0x7F, 7
        while True:
            byte = self._data[self._place]
            self._place += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def signed(self) -> int:
        number = self.whole()
        return ~(number >> 1) if number & 1 else number >> 1

    def plane(self, size: int) -> bytes:
        length = self.whole()
        if length == 0:
            return bytes(size)
        data = self._data[self._place : self._place + length]
        self._place += length
        if length < size:
            data = zlib.decompress(data, -zlib.MAX_WBITS, size)
        if len(data) != size:
            raise Damaged("a part of it has another length")
        return data


def _columns(reader: _Reader, rows: int) -> Iterator[tuple[str, Sequence[Any]]]:
    while not reader.at_end():
        name, form = _FIELDS[reader.byte()], reader.byte()
        scale, digits = (0, 0) if form & _EXACT else (reader.byte(), reader.byte())
        present = reader.plane(rows) if form & _GAPS else b""
        count = sum(present) if form & _GAPS else rows
        if form & _EXACT:
            found = _numbers("d" if form & _FLOATS else "q", reader.plane(8 * count))
        else:
            decimals, unit_bits = (scale, 0) if form & _FLOATS else (None, scale)
            meaning = precisions.Meaning(decimals, unit_bits, digits)
            found = _measured(reader, meaning, count, differences=bool(form & _DIFFERENCES))
        if form & _GAPS:
            values = iter(found)
            found = [next(values) if there else None for there in present]
        yield name, found


def _measured(
    reader: _Reader, meaning: precisions.Meaning, count: int, *, differences: bool
) -> Sequence[int | float]:
    """Return the numbers of a column; each pass over them counts, there are ten million in an hour."""
    base = reader.signed()
    first = reader.signed() if differences else 0
    width = reader.byte()
    if width == 0 and not differences:
        return [meaning.number(base)] * count
    if differences and not count:
        raise Damaged("a part of it has a first number and no numbers")
    residues = _residual(reader, width, count - differences)
    if not differences and width > _WIDE_BYTES:
        return meaning.each([base + residue for residue in residues])
    beyond = precisions.numbers(meaning, base)
    if not differences:
        return _looked_up(beyond, residues)
    if meaning.decimals is None and not meaning.digits:
        # Whole numbers may be added up as well as their codes.
        return list(itertools.accumulate(_looked_up(beyond, residues), initial=meaning.number(first)))
    codes = itertools.accumulate([base + residue for residue in residues], initial=first)
    if meaning.digits:
        return _looked_up(precisions.numbers(meaning, 0), codes)
    factor = 10 ** (meaning.decimals or 0)
    return [code / factor for code in codes]


def _looked_up(numbers: precisions.Numbers, codes: Iterable[int]) -> Sequence[int | float]:
    """Return the numbers of codes, in half of the time that a loop takes."""
    return list(map(numbers.__getitem__, codes))


def _residual(reader: _Reader, width: int, count: int) -> Sequence[int]:
    """Return what is left of codes without their base."""
    if width <= 1:
        return reader.plane(count) if width else bytes(count)
    planes = bytearray(count * width)
    for place in range(width):
        planes[place::width] = reader.plane(count)
    return _numbers(_TYPES[width], planes)


def _numbers(kind: str, data: bytes | bytearray) -> Sequence[Any]:
    numbers = array.array(kind)
    numbers.frombytes(data)
    return _little(numbers)
