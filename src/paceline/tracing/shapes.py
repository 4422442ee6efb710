"""Shapes of what an operation takes, as TensorFlow's profiler writes them: `(float[256,16];;int32[256])`.

Source: `OpKernel::ShapeTraceString` (``op_kernel.cc``); names of types as in ``types.cc``. What an operation
takes of a resource, or of a type without a size of its own, stands there as nothing.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

Dimensions = tuple[int, ...]

_INPUT = re.compile(r"(?P<type>[a-z]+\d*)\[(?P<dimensions>[\d,]*)\]")
_BYTES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "half": 2, "bfloat16": 2,
    "int32": 4, "uint32": 4, "float": 4, "int64": 8, "uint64": 8, "double": 8,
}  # fmt: skip


@dataclass(frozen=True)
class TensorShape:
    """The type and the dimensions of a tensor."""

    type: str
    dimensions: Dimensions

    @property
    def is_integer(self) -> bool:
        """Whether it has numbers that may be ids."""
        return "int" in self.type

    @property
    def bytes(self) -> int:
        """How much of it there is."""
        return math.prod(self.dimensions) * _BYTES[self.type]


def read(text: str) -> list[TensorShape]:
    """Reads the inputs of an operation that have a shape and a type with a size."""
    found = (_INPUT.fullmatch(each) for each in text.strip("()").split(";"))
    return [
        TensorShape(match["type"], tuple(int(size) for size in match["dimensions"].split(",") if size))
        for match in found
        if match is not None and match["type"] in _BYTES
    ]
