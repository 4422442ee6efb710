"""The places of rows of a variable that is cut into shards."""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import Any

_GOLDEN = (math.sqrt(5) - 1) / 2


class RowOrder(enum.StrEnum):
    """The order in which rows are stored; shards are ranges of that order."""

    CONTIGUOUS = "contiguous"  # as they are: TensorFlow's "div"
    STRIDED = "strided"  # every n-th row for each of n shards: TensorFlow's "mod"
    HASHED = "hashed"  # shuffled, the same for any number of shards


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RowLayout:
    """The rows of a variable over ``shards`` shards, whose sizes differ by one row at most.

    The formulas are closed and use only ``+ * // %``, so they work for Python integers, NumPy arrays and
    64-bit TensorFlow tensors.
    """

    rows: int
    shards: int = 1
    order: RowOrder = RowOrder.CONTIGUOUS

    def __post_init__(self) -> None:
        """Reject impossible numbers.

        Raises:
            ValueError: there is no row, no shard, or a shard without a row.
        """
        if not 1 <= self.shards <= self.rows:
            raise ValueError(f"{self.rows} rows cannot be cut into {self.shards} shards")

    @property
    def stored_as(self) -> str:
        """Return a name for the order in which rows are stored; equal names mean equal orders."""
        if self.order is RowOrder.STRIDED:
            return RowOrder.CONTIGUOUS.value if self.shards == 1 else f"{self.order}-{self.shards}"
        return self.order.value

    def start(self, shard: Any) -> Any:
        """Return where a shard starts in the stored order."""
        if self.order is RowOrder.STRIDED:
            return shard * (self.rows // self.shards) + _lesser(shard, self.rows % self.shards)
        return (shard * self.rows + self.shards - 1) // self.shards

    def size(self, shard: int) -> int:
        """Return how many rows a shard holds."""
        return int(self.start(shard + 1) - self.start(shard))

    def locate(self, row: Any) -> tuple[Any, Any]:
        """Return the shard of a row and its place within that shard."""
        if self.order is RowOrder.STRIDED:
            return row % self.shards, row // self.shards
        stored = row if self.order is RowOrder.CONTIGUOUS else row * self._multiplier % self.rows
        shard = stored * self.shards // self.rows
        return shard, stored - self.start(shard)

    def row(self, shard: Any, place: Any) -> Any:
        """Return the row at a place of a shard: the inverse of ``locate``."""
        if self.order is RowOrder.STRIDED:
            return place * self.shards + shard
        stored = self.start(shard) + place
        if self.order is RowOrder.CONTIGUOUS:
            return stored
        return stored * pow(self._multiplier, -1, self.rows) % self.rows

    @property
    def _multiplier(self) -> int:
        """Return a number near the number of rows times the golden ratio (0.618) that is coprime to it.

        Multiples of it spread any run of rows evenly (Fibonacci hashing: Knuth, The Art of Computer
        Programming 3, section 6.4).
        """
        multiplier = max(1, round(self.rows * _GOLDEN))
        while math.gcd(multiplier, self.rows) != 1:
            multiplier += 1
        return multiplier


def _lesser(one: Any, other: int) -> Any:
    """Return the smaller of two numbers, or of an array of them and a number, by arithmetic alone."""
    return (one + other - abs(one - other)) // 2
