"""Blocks: many measurements of one replica and attempt, packed into a few thousand bytes.

Each column is packed separately. Its numbers become integer codes (see `precisions`). A base near their
median is subtracted from the codes, or from the differences of successive codes if these are smaller. The
residues are stored plane by plane, all low bytes first, because the high bytes of similar numbers are alike.
A plane is deflated if that makes it shorter: noise does not compress and costs about a byte per number, and
everything else costs almost nothing.

Layout of a block: version, CRC-32 checksum of the rest, number of rows, columns. Layout of a column: number
of its field, form (flags, see below), decimals or unit, digits, presence plane if some rows have no number,
base, first number if the column holds differences, width in bytes, planes. A column that is stored exactly
has one plane of 8 bytes a number behind its form and presence plane. A plane is its length and that many
bytes; length 0 stands for zeros. Integers are encoded as in Protocol Buffers (varint, ZigZag). A field that
is None in every row is omitted.
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

from paceline.model.measures.gauges import GaugeSpec
from paceline.stores import precisions

#: The numbers of each field, all in the same row order; None where a field was not measured.
Columns = Mapping[str, Sequence[Any]]

VERSION = 1
#: Paceline packs fewer rows into a block; a block that claims more is damaged.
MOST_ROWS = 1 << 16

_FLOATS, _EXACT, _DIFFERENCES, _GAPS = 1, 2, 4, 8
_FIELDS = {precision.number: name for name, precision in precisions.PRECISIONS.items()}
_TYPES = {2: "h", 4: "i", 8: "q"}
_HEAD_BYTES = 5
#: Residues of more bytes seldom repeat within a block, so a lookup table of their numbers would not pay.
_WIDE_BYTES = 1
_BASES = 64
#: Differences take longer to read, so they are used only if their size is below this fraction.
_MUCH = 0.9
#: Window of deflate: no block needs a larger one, and packing is faster than with the largest.
_WINDOW_BITS = 12
#: Deflate with and without a search for repetitions: in noise, repetitions are only coincidences.
_STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY)


class Damaged(ValueError):
    """The bytes are not a block, or differ from the block that was packed."""


def pack(columns: Columns) -> bytes:
    """Return columns of equal length as a block.

    Args:
        columns: the columns by field name. Every field has a precision, numbers have at most 64 bits, and
            ``at`` has no None.
    """
    rows = len(columns["at"])
    body = bytearray(_whole(rows))
    for name, numbers in columns.items():
        body += _column(precisions.PRECISIONS[name], numbers)
    return bytes([VERSION]) + zlib.crc32(body).to_bytes(4, "big") + bytes(body)


def bounds(columns: Columns) -> tuple[float, float]:
    """Return times (Unix seconds, whole ms) between which measurements lie, before and after packing."""
    return math.floor(min(columns["at"]) * 1000) / 1000, math.ceil(max(columns["at"]) * 1000) / 1000


def unpack(block: bytes) -> dict[str, Sequence[Any]]:
    """Return the columns of a block, without those that are None in every row.

    Raises:
        Damaged: the bytes are not a block, or differ from the block that was packed.
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
    """The codes of a column as it stores them.

    A code is the base plus its residue. If there is a first code, base plus residue is the difference from
    the code before.
    """

    base: int
    first: int | None
    width: int
    values: Sequence[int]


def _column(precision: GaugeSpec, numbers: Sequence[Any]) -> bytes:
    """Return a packed column; empty if every number is None."""
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


def _codes(precision: GaugeSpec, measured: Sequence[Any]) -> Sequence[int] | None:
    """Return the codes of numbers; None if the numbers have to be stored exactly."""
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
    """Return the residues of codes, or of their differences if these are much smaller.

    Return None if a residue does not fit into 64 bits.
    """
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
    """Return about how many bits the distances of numbers from their middle need."""
    return sum((number - middle).bit_length() for number in numbers)


def _width(numbers: Sequence[int], middle: int) -> tuple[int, int]:
    """Return the base of numbers, and how many bytes a residue needs; 9 if more than 8."""
    least, most = min(numbers, default=0), max(numbers, default=0)
    if most == least:
        return least, 0
    # Rounded, so that there are few bases: readers cache the numbers for each base.
    base = least - least % _BASES
    if most - base < 256:
        return base, 1
    # This base gives the numbers near the middle the same high bytes.
    base = middle - 128 - (middle - 128) % _BASES
    for width in (2, 4, 8):
        limit = 1 << (8 * width - 1)
        if base - limit <= least and most < base + limit:
            return base, width
    return base, 9


def _plane(data: bytes) -> bytes:
    """Return a plane: the length of its packed bytes, then the bytes; only the length 0 if all are zero."""
    if not any(data):
        return _whole(0)
    kept = min(data, *(_deflated(data, strategy) for strategy in _STRATEGIES), key=len)
    return _whole(len(kept)) + kept


def _deflated(data: bytes, strategy: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -_WINDOW_BITS, strategy=strategy)
    return packer.compress(data) + packer.flush()


def _little(numbers: array.array[Any]) -> array.array[Any]:
    """Return numbers in the byte order of blocks: little-endian."""
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
    """Reads the bytes of a block sequentially from an offset."""

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
    """Return the numbers of a column.

    Each pass over the numbers costs time: an hour of a large job has ten million.
    """
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
        # The codes of integers are proportional to them, so the integers themselves are summed.
        return list(itertools.accumulate(_looked_up(beyond, residues), initial=meaning.number(first)))
    codes = itertools.accumulate([base + residue for residue in residues], initial=first)
    if meaning.digits:
        return _looked_up(precisions.numbers(meaning, 0), codes)
    factor = 10 ** (meaning.decimals or 0)
    return [code / factor for code in codes]


def _looked_up(numbers: precisions.Numbers, codes: Iterable[int]) -> Sequence[int | float]:
    """Return the numbers of codes; takes half the time of a loop."""
    return list(map(numbers.__getitem__, codes))


def _residual(reader: _Reader, width: int, count: int) -> Sequence[int]:
    """Return the residues of a column."""
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
