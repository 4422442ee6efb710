"""The traffic of each variable, counted from the ids of the first batches, and written for a plan.

Traffic does not follow from size: a step moves only the rows of a large table that its batch uses, but the
whole of a small weight. ``paceline plan`` reads the file `variables.json` in the run's folder.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paceline.model.traces import traced_steps
from paceline.model.variables.variables import Variable
from paceline.training import declarations, features, places

BATCHES = 20
_RANGES = 64


class TrafficCounter:
    """Counts the rows of each table that batches use."""

    def __init__(
        self, tables: Sequence[declarations.Table], known: features.FeatureSet, *, distinct: bool
    ) -> None:
        self._tables = tuple(tables)
        self._places = [places.find(table.columns, known.categorical, places.ids) for table in tables]
        self._shares = [np.zeros(min(_RANGES, table.rows)) for table in tables]
        self._distinct = distinct
        self._batches = 0

    @property
    def is_complete(self) -> bool:
        """Whether enough batches were counted."""
        return self._batches >= BATCHES

    def add(self, ids: features.Ids) -> None:
        """Count the rows that a batch looks up, each once if the lookup makes them distinct."""
        self._batches += 1
        for table, own, shares in zip(self._tables, self._places, self._shares, strict=True):
            found = ids[:, own].astype(np.int64)
            rows = (found + np.array(table.offsets))[found >= 0]
            rows = np.unique(rows) if self._distinct else rows
            shares += np.bincount(rows * len(shares) // table.rows, minlength=len(shares))

    def measured(self, variables: Sequence[Variable]) -> tuple[Variable, ...]:
        """Return the variables with their traffic: values pulled and pushed, and ids sent for rows."""
        sparse = {
            name: shares / max(1, self._batches)
            for table, shares in zip(self._tables, self._shares, strict=True)
            for name in table.embeddings
        }
        return tuple(_measured(variable, sparse.get(variable.name)) for variable in variables)


def _measured(variable: Variable, rows: np.ndarray[tuple[int], np.dtype[np.float64]] | None) -> Variable:
    if rows is None:
        return dataclasses.replace(variable, step_bytes=2.0 * variable.rows * variable.row_bytes)
    total = float(rows.sum())
    return dataclasses.replace(
        variable,
        step_bytes=total * variable.looked_up_bytes,
        row_shares=tuple(round(float(share), 6) for share in rows / max(total, 1.0)),
    )


def write(variables: Sequence[Variable], folder: str) -> None:
    """Write `variables.json` into a folder, completely or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    path = Path(folder, traced_steps.VARIABLES)
    temporary = path.with_suffix(".json.tmp")
    body = {"variables": [dataclasses.asdict(variable) for variable in variables]}
    temporary.write_text(json.dumps(body, indent=1) + "\n")
    os.replace(temporary, path)
