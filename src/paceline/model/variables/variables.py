"""The variables of a model with the properties that plans of shards need."""

from __future__ import annotations

import dataclasses
import math
import re

from paceline.model.variables.row_layouts import RowLayout, RowOrder

#: The size of the id of a row, which is sent for its value.
ID_BYTES = 4
#: The number of rows of a table that a step is assumed to move while none are counted.
ASSUMED_ROWS = 1024
Name = tuple[str | None, int | None]
"""A variable as the user calls it, and the number of its part (from 0); None: not known, or not cut."""

_PART = re.compile(r"(?P<variable>.+)/part_(?P<part>\d+)$")


def part_name(variable: str, part: int, parts: int) -> str:
    """Return TensorFlow's name of a part of a variable; with 1 part it is the name of the variable."""
    return f"{variable}/part_{part}" if parts > 1 else variable


def without_part(name: str) -> tuple[str, int | None]:
    """Return the variable and the part number in TensorFlow's name of a part; None: it names no part."""
    found = _PART.match(name)
    return (found["variable"], int(found["part"])) if found else (name, None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A table of rows that are looked up (``sparse``), or an array that each step pulls whole.

    Attributes:
        name: as the user's script has it.
        shape: rows first; empty for a scalar.
        element_bytes: bytes of one value.
        slots: values that the optimizer keeps for each value of the variable.
        step_bytes: measured bytes pulled and pushed in a step of one worker; None: not measured.
        row_shares: measured shares of this traffic for equal ranges of rows, in order; empty: not measured.
        rows_used: the mean number of distinct rows of a table that a batch uses; None: not measured.
        value_type: TensorFlow's name of the value type, such as float32; None: not known.
        devices: the devices on which TensorFlow has its parts, in order; empty: not known.
        updates: the types of the operations that change it and its slots in a step; empty: not known.
    """

    name: str
    shape: tuple[int, ...]
    sparse: bool = False
    element_bytes: int = 4
    slots: int = 0
    step_bytes: float | None = None
    row_shares: tuple[float, ...] = ()
    rows_used: float | None = None
    value_type: str | None = None
    devices: tuple[str, ...] = ()
    updates: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Return the number of rows, along which it can be cut; 1 for a scalar."""
        return self.shape[0] if self.shape else 1

    @property
    def row_bytes(self) -> int:
        """Return the bytes of one row without the optimizer's slots."""
        return math.prod(self.shape[1:]) * self.element_bytes

    @property
    def looked_up_bytes(self) -> int:
        """Return the bytes that a looked-up row of a table moves: its value both ways, and its id."""
        return 2 * self.row_bytes + ID_BYTES

    @property
    def memory_bytes(self) -> int:
        """Return the bytes that it takes on the parameter servers, the optimizer's slots included."""
        return self.rows * self.row_bytes * (1 + self.slots)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A part of a variable on a parameter server."""

    variable: Variable
    layout: RowLayout
    index: int
    server: int

    @property
    def name(self) -> str:
        """Return the variable's name, with the shard's number if there are several shards."""
        return self.variable.name if self.layout.shards == 1 else f"{self.variable.name}/{self.index}"

    @property
    def tensorflow_name(self) -> str:
        """Return TensorFlow's name of it in a script that cuts the variable this way."""
        return part_name(self.variable.name, self.index, self.layout.shards)

    @property
    def rows(self) -> int:
        """Return the number of rows in this shard."""
        return self.layout.size(self.index)

    @property
    def memory_bytes(self) -> int:
        """Return the bytes that it takes on its parameter server, slots included."""
        return self.rows * self.variable.row_bytes * (1 + self.variable.slots)

    @property
    def step_bytes(self) -> float | None:
        """Return the expected bytes that a step of one worker moves here; None: not known.

        If rows are stored in no particular order, each carries the same traffic. For ranges of rows of a
        table, measurements have to show which rows are hot.
        """
        total = self.variable.step_bytes
        if total is None or self.layout.shards == 1:
            return total
        if self.variable.sparse and self.layout.order is RowOrder.CONTIGUOUS:
            return None if not self.variable.row_shares else total * self._share()
        return total * self.rows / self.layout.rows

    @property
    def step_rows(self) -> float:
        """Return the rows of a table that a step of one worker looks up here; 0 if that is not known."""
        return (self.step_bytes or 0.0) / self.variable.looked_up_bytes if self.variable.sparse else 0.0

    def is_spread(self, servers: int) -> bool:
        """Return whether this belongs to a table with one shard a server, all equal in rows and traffic."""
        shuffled = self.variable.sparse and self.layout.order is not RowOrder.CONTIGUOUS
        return shuffled and self.layout.shards == servers and self.layout.rows >= 100 * servers

    @property
    def assumed_step_bytes(self) -> float:
        """Return the bytes a step to assume while none are measured: all weights, and few rows of tables.

        The assumption is low on purpose: any further traffic of a table is as even as its rows.
        """
        table = self.variable
        moved = min(table.rows, ASSUMED_ROWS) / table.rows if table.sparse else 1.0
        return 2.0 * moved * self.rows * table.row_bytes

    def _share(self) -> float:
        """Return this range's part of the measured shares; a share that it overlaps counts in proportion."""
        shares, rows = self.variable.row_shares, self.layout.rows
        first = self.layout.row(self.index, 0) / rows * len(shares)
        last = first + self.rows / rows * len(shares)
        covered = sum(
            share * max(0.0, min(last, place + 1) - max(first, place)) for place, share in enumerate(shares)
        )
        whole = sum(shares)
        return covered / whole if whole > 0 else self.rows / rows
