"""The variables of a model, as a plan of their shards needs to know them."""

from __future__ import annotations

import dataclasses
import math
import re

from paceline.model.variables.row_layouts import RowLayout, RowOrder

#: Of the id of a row that is sent for its value.
ID_BYTES = 4
#: Rows of a table that a step is assumed to move while none were counted.
ASSUMED_ROWS = 1024
Name = tuple[str | None, int | None]
"""A variable as the user calls it, and the number of its part (from 0); None: not known, or not cut."""

_PART = re.compile(r"(?P<variable>.+)/part_(?P<part>\d+)$")


def part_name(variable: str, part: int, parts: int) -> str:
    """Return what TensorFlow calls a part of a variable that is cut into so many: 1 is the variable."""
    return f"{variable}/part_{part}" if parts > 1 else variable


def without_part(name: str) -> tuple[str, int | None]:
    """Return the variable of TensorFlow's name of a part, and the number of the part; None: it is not one."""
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
        step_bytes: bytes pulled and pushed in a step of one worker, measured; None: not measured.
        row_shares: of that traffic, the shares of equal ranges of rows in their order, measured.
        rows_used: rows of a table that a batch uses, each counted once, in the mean; None: not measured.
        value_type: TensorFlow's name of it, such as float32; None: not known.
        devices: where TensorFlow has its parts, in their order; empty: not known.
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
        """Return along how many rows it can be cut; 1 for a scalar."""
        return self.shape[0] if self.shape else 1

    @property
    def row_bytes(self) -> int:
        """Return the bytes of one row without the optimizer's slots."""
        return math.prod(self.shape[1:]) * self.element_bytes

    @property
    def looked_up_bytes(self) -> int:
        """Return what a row of a table moves that is looked up: its value both ways, and its id."""
        return 2 * self.row_bytes + ID_BYTES

    @property
    def memory_bytes(self) -> int:
        """Return what it takes on the parameter servers, the optimizer's slots included."""
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
        """Return the variable's name, with the shard's number where there are several."""
        return self.variable.name if self.layout.shards == 1 else f"{self.variable.name}/{self.index}"

    @property
    def tensorflow_name(self) -> str:
        """Return what TensorFlow calls it in a script that cuts the variable like this."""
        return part_name(self.variable.name, self.index, self.layout.shards)

    @property
    def rows(self) -> int:
        """Return how many rows of the variable lie here."""
        return self.layout.size(self.index)

    @property
    def memory_bytes(self) -> int:
        """Return what it takes on its parameter server, slots included."""
        return self.rows * self.variable.row_bytes * (1 + self.variable.slots)

    @property
    def step_bytes(self) -> float | None:
        """Return the traffic to expect here in a step of one worker; None when that is not known.

        Rows that lie in no particular order carry the same traffic each. For ranges of rows of a table it has
        to be measured which rows are hot.
        """
        total = self.variable.step_bytes
        if total is None or self.layout.shards == 1:
            return total
        if self.variable.sparse and self.layout.order is RowOrder.CONTIGUOUS:
            return None if not self.variable.row_shares else total * self._share()
        return total * self.rows / self.layout.rows

    @property
    def step_rows(self) -> float:
        """Return the rows of a table that a step of one worker looks up here; 0 where that is not known."""
        return (self.step_bytes or 0.0) / self.variable.looked_up_bytes if self.variable.sparse else 0.0

    def is_spread(self, servers: int) -> bool:
        """Return whether this is part of a table of one shard a server, alike in rows and traffic."""
        shuffled = self.variable.sparse and self.layout.order is not RowOrder.CONTIGUOUS
        return shuffled and self.layout.shards == servers and self.layout.rows >= 100 * servers

    @property
    def assumed_step_bytes(self) -> float:
        """Return the traffic to assume here while none is measured: weights move whole, of a table few rows.

        The assumption is a low one: what a table moves more than that lies as evenly as its rows.
        """
        table = self.variable
        moved = min(table.rows, ASSUMED_ROWS) / table.rows if table.sparse else 1.0
        return 2.0 * moved * self.rows * table.row_bytes

    def _share(self) -> float:
        """Return this range's part of the measured shares; a share that it cuts counts by its length."""
        shares, rows = self.variable.row_shares, self.layout.rows
        first = self.layout.row(self.index, 0) / rows * len(shares)
        last = first + self.rows / rows * len(shares)
        covered = sum(
            share * max(0.0, min(last, place + 1) - max(first, place)) for place, share in enumerate(shares)
        )
        whole = sum(shares)
        return covered / whole if whole > 0 else self.rows / rows
