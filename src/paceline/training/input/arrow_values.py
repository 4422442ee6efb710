"""Arrow's arrays as NumPy arrays and back, through their buffers (Arrow's columnar format).

pyarrow's own `to_numpy`, `array` and `scalar`, and its functions that accept plain values, first check
whether a value is a pandas object, and import pandas for this check. That would delay a trainer's first step
by a second or two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_TYPES = {
    pa.int8(): np.int8,
    pa.int16(): np.int16,
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.float64(): np.float64,
}


def numbers(array: Any, missing: float) -> npt.NDArray[Any]:
    """Return the values of an array or chunked array of one of the types above, with `missing` for null."""
    dtype = np.dtype(_TYPES[array.type])
    if isinstance(array, pa.ChunkedArray):
        parts = [numbers(chunk, missing) for chunk in array.chunks if len(chunk)]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype), *parts])
    if not len(array):
        return np.empty(0, dtype)
    validity, data = array.buffers()
    values = np.frombuffer(data, dtype, count=len(array), offset=array.offset * dtype.itemsize)
    if not array.null_count:
        return values
    return np.where(_bits(validity, array), values, dtype.type(missing))


def array(values: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None = None) -> Any:
    """Return an array of numbers of one of the types above; null where `valid` is false."""
    kind = next(kind for kind, dtype in _TYPES.items() if values.dtype == dtype)
    data = pa.py_buffer(np.ascontiguousarray(values).tobytes())
    return pa.Array.from_buffers(kind, len(values), [None if valid is None else _packed(valid), data])


def texts(words: Iterable[str]) -> Any:
    """Return an array of texts."""
    return _joined(pa.string(), [word.encode() for word in words])


def binaries(values: Sequence[bytes]) -> Any:
    """Return an array of bytes."""
    return _joined(pa.binary(), values)


def _joined(kind: Any, values: Sequence[bytes]) -> Any:
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(kind, len(values), buffers)


def flags(values: npt.NDArray[np.bool_]) -> Any:
    """Return an array of truth values."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _packed(values)])


def _packed(values: npt.NDArray[np.bool_]) -> Any:
    return pa.py_buffer(np.packbits(values, bitorder="little").tobytes())


def _bits(buffer: Any, array: Any) -> npt.NDArray[np.bool_]:
    """Return the bits of a buffer that belong to an array, the lowest of each byte first."""
    end = array.offset + len(array)
    return np.unpackbits(np.frombuffer(buffer, np.uint8), count=end, bitorder="little")[array.offset :] > 0
