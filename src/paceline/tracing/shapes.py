"""Shapes of an operation's inputs, as TensorFlow's profiler writes them: `(float[256,16];;int32[256])`.

Source: `OpKernel::ShapeTraceString` (``op_kernel.cc``); type names as in ``types.cc``. The place of a
resource, or of an input whose type has no size, is empty.
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
        """Whether the tensor has integers, which may be ids."""
        return "int" in self.type

    @property
    def bytes(self) -> int:
        """The size of the tensor."""
        return math.prod(self.dimensions) * _BYTES[self.type]


def read(text: str) -> list[TensorShape]:
    """Read the inputs of an operation that have a shape and a type with a size."""
    found = (_INPUT.fullmatch(each) for each in text.strip("()").split(";"))
    return [
        TensorShape(match["type"], tuple(int(size) for size in match["dimensions"].split(",") if size))
        for match in found
        if match is not None and match["type"] in _BYTES
    ]
