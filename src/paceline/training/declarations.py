"""The parameters that a model needs: known before any is created, so that their placement can be planned.

A model's code is run twice with the same calls: once on a recorder, which notes each weight and embedding and
returns stand-ins of the right shapes, and once on values pulled from the parameter servers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from paceline.model.variables.variables import Variable
from paceline.training import errors, features, places

Part = Literal["deep", "wide"]
"""Which of the two optimizers of the job file updates a parameter."""

PARTS: tuple[Part, ...] = ("deep", "wide")


@dataclass(frozen=True)
class Weight:
    """An array that every step pulls whole."""

    name: str
    shape: tuple[int, ...]
    initializer: Any
    part: Part


@dataclass(frozen=True)
class Embedding:
    """Vectors for the ids of some features."""

    name: str
    columns: tuple[features.Categorical, ...]
    dimension: int
    initializer: Any
    part: Part


@dataclass(frozen=True)
class Declaration:
    """All parameters of a model in the order of their creation."""

    weights: tuple[Weight, ...]
    embeddings: tuple[Embedding, ...]


@dataclass(frozen=True)
class Table:
    """Features with consecutive ranges of row numbers, and the embeddings that have a vector for each row.

    The rows of all its embeddings are fetched by the same ids: a feature that is in the wide and in the deep
    part is looked up once.
    """

    columns: tuple[features.Categorical, ...]
    embeddings: Mapping[str, Embedding]

    @property
    def rows(self) -> int:
        """The rows of all features together."""
        return sum(column.rows for column in self.columns)

    @property
    def offsets(self) -> tuple[int, ...]:
        """For each place of ids, the first row of its feature."""
        firsts = itertools.accumulate((column.rows for column in self.columns[:-1]), initial=0)
        return tuple(
            first
            for first, column in zip(firsts, self.columns, strict=True)
            for _ in range(places.ids(column))
        )


def tables(embeddings: Sequence[Embedding], *, fused: bool) -> tuple[Table, ...]:
    """Return the tables of the embeddings: one for all features with the same uses, or one for each feature.

    The keys of `Table.embeddings` are the names of variables.

    Raises:
        SettingsError: a table for several features has more rows than ids can name.
    """
    if not fused:
        return tuple(
            Table((column,), {f"{each.name}/{_as_variable(column.name)}": each})
            for each in embeddings
            for column in each.columns
        )
    uses: dict[features.Categorical, tuple[int, ...]] = {}
    for number, each in enumerate(embeddings):
        for column in each.columns:
            uses[column] = (*uses.get(column, ()), number)
    groups: dict[tuple[int, ...], list[features.Categorical]] = {}
    for column, used in uses.items():
        groups.setdefault(used, []).append(column)
    for columns in groups.values():
        _check_together(columns)
    return tuple(
        Table(
            tuple(columns),
            {
                f"{embeddings[number].name}{_suffix(number, used, groups)}": embeddings[number]
                for number in used
            },
        )
        for used, columns in groups.items()
    )


def _check_together(columns: Sequence[features.Categorical]) -> None:
    rows = sum(column.rows for column in columns)
    if rows > features.MOST_ROWS:
        raise errors.SettingsError(
            f"the table of {', '.join(column.name for column in columns)} has {rows:,} rows, and a table has "
            f"at most {features.MOST_ROWS:,}; with training.fused_tables: false each feature has a table of "
            "its own"
        )


def _as_variable(name: str) -> str:
    """Return a feature's name as part of a variable's name: other bytes become `_` and two hex digits."""
    return re.sub(
        r"[^A-Za-z0-9_.\-]", lambda found: "".join(f"_{byte:02x}" for byte in found[0].encode()), name
    )


def _suffix(number: int, used: tuple[int, ...], groups: Mapping[tuple[int, ...], object]) -> str:
    """Return nothing if all features of an embedding are in one table, or else the number of this table."""
    own = [group for group in groups if number in group]
    return "" if len(own) == 1 else f"/{own.index(used)}"


def variables(
    declaration: Declaration, made: Sequence[Table], slots: Mapping[Part, int]
) -> tuple[Variable, ...]:
    """Return the variables of weights and tables for a plan; `slots` counts each optimizer's slots.

    Raises:
        SettingsError: two variables have the same name.
    """
    model_variables = [
        Variable(
            name=name,
            shape=(table.rows, embedding.dimension),
            sparse=True,
            slots=slots[embedding.part],
        )
        for table in made
        for name, embedding in table.embeddings.items()
    ]
    model_variables += [
        Variable(name=weight.name, shape=weight.shape, slots=slots[weight.part])
        for weight in declaration.weights
    ]
    names = [variable.name for variable in model_variables]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise errors.SettingsError(f"the model has two parameters with the name {twice[0]!r}")
    return tuple(model_variables)
