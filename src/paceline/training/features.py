"""Feature columns as values: what the model sees of a raw column.

A feature turns whole columns into NumPy arrays, so a batch costs slices and no work per row in Python. A
numeric feature becomes one float; every other feature becomes a row number (id) in a table of `rows` rows, or
several row numbers. Strings arrive dictionary-encoded, so vocabularies and hashes are looked up once per
distinct value. `missing` says which values count as missing.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from paceline.training import errors
from paceline.training.input import arrow_values, missing

Columns = Mapping[str, Any]
"""The decoded columns of a chunk by name: pyarrow dictionary arrays (strings), NumPy arrays (numbers), or
`Listed` ones.
"""


@dataclass(frozen=True)
class Lists:
    """How to decode a column with several values per row: as lists, or as texts with a separator.

    It is decoded to `Listed`. `words` count as values even if `missing` has them.
    """

    kind: Literal["number", "integer", "string"]
    separator: str
    words: tuple[str, ...] = ()


class Listed(NamedTuple):
    """A decoded column with several values per row.

    `values` holds the values of all rows in one column, `lengths` how many of them each row has.
    """

    values: Any
    lengths: npt.NDArray[np.int64]


Kind = Literal["number", "integer", "string"] | Lists
Ids = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]


class Categorical(Protocol):
    """A feature whose value is a row number of a table."""

    @property
    def name(self) -> str:
        """The name of the feature and its table, unique within a model."""

    @property
    def rows(self) -> int:
        """Number of rows of the table; ids are in `0..rows-1`."""

    def kinds(self) -> Mapping[str, Kind]:
        """Return the raw columns that are read and how to decode each."""

    def ids(self, columns: Columns) -> Ids:
        """Return one id for each row (rows,), or `Several.length` ids (rows, length)."""


@dataclass(frozen=True)
class Numeric:
    """A number: `(f(x) - mean) / deviation`, with f the identity or, with `log`, sign(x) * ln(1 + |x|).

    A missing value becomes 0 after the scaling, that is, the mean.
    """

    name: str
    mean: float = 0.0
    deviation: float = 1.0
    log: bool = False

    def __post_init__(self) -> None:
        """Refuse a scaling whose result is not a number.

        Raises:
            SettingsError: mean or deviation is not finite, or the deviation is 0.
        """
        if not (math.isfinite(self.mean) and math.isfinite(self.deviation) and self.deviation):
            raise errors.SettingsError(
                f"feature {self.name!r}: mean and deviation must be finite, and the deviation not 0; "
                f"they are {self.mean} and {self.deviation}"
            )

    def kinds(self) -> Mapping[str, Kind]:
        """Return the raw column of the same name, as a number."""
        return {self.name: "number"}

    def values(self, columns: Columns) -> Floats:
        """Return the scaled numbers, one for each row.

        Raises:
            ValueFault: a number is too large for a float of 32 bits.
        """
        given = raw = columns[self.name]
        if self.log:
            raw = np.sign(raw) * np.log1p(np.abs(raw))
        with np.errstate(over="ignore"):
            scaled: Floats = ((raw - self.mean) / self.deviation).astype(np.float32)
        infinite = np.isinf(scaled)
        if infinite.any():
            row = int(np.argmax(infinite))
            raise errors.ValueFault(row, self.name, f"holds {given[row]}, too large for a float of 32 bits")
        return np.where(np.isnan(scaled), np.float32(0.0), scaled)


@dataclass(frozen=True)
class Bucketised:
    """The interval that a number falls into.

    The id is the number of boundaries <= x; a missing value gets the last id.
    """

    column: str
    boundaries: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse boundaries that are not ascending.

        Raises:
            SettingsError: the boundaries are not finite or not ascending.
        """
        rise = all(low < high for low, high in itertools.pairwise(self.boundaries))
        if not rise or not all(map(math.isfinite, self.boundaries)):
            raise errors.SettingsError(
                f"feature {self.name!r}: boundaries must be finite numbers that rise, not {self.boundaries}"
            )

    @property
    def name(self) -> str:
        """The column's name with a suffix, so that it differs from other features of that column."""
        return f"{self.column}_bucket"

    @property
    def rows(self) -> int:
        """One row for each interval and one for missing values."""
        return len(self.boundaries) + 2

    def kinds(self) -> Mapping[str, Kind]:
        """Return the raw column, as a number."""
        return {self.column: "number"}

    def ids(self, columns: Columns) -> Ids:
        """Return one id for each row."""
        raw = columns[self.column]
        found = np.searchsorted(np.asarray(self.boundaries), raw, side="right")
        return np.where(np.isnan(raw), self.rows - 1, found).astype(np.int32)


@dataclass(frozen=True)
class Vocabulary:
    """A string from a known list: ids from 1 in the list's order, 0 for any other string."""

    name: str
    words: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse words that cannot have an id of their own.

        Raises:
            SettingsError: the words are one string, or a word occurs twice, is empty, or has space around it.
        """
        _check_words(self.name, self.words)
        if len(set(self.words)) < len(self.words):
            twice = next(word for word in self.words if self.words.count(word) > 1)
            raise errors.SettingsError(f"feature {self.name!r}: the word {twice!r} is there twice")

    @property
    def rows(self) -> int:
        """One row for each word and one for all other strings."""
        return len(self.words) + 1

    def kinds(self) -> Mapping[str, Kind]:
        """Return the raw column of the same name, as strings."""
        return {self.name: "string"}

    def ids(self, columns: Columns) -> Ids:
        """Return one id for each row."""
        ids = self._ids
        return _by_word(columns[self.name], lambda word: ids.get(word, 0), of_missing=0, kept=ids)

    @functools.cached_property
    def _ids(self) -> dict[str, int]:
        return {word: i + 1 for i, word in enumerate(self.words)}


@dataclass(frozen=True)
class Hashed:
    """A string hashed into `rows` rows by BLAKE2b; a missing value gets id 0.

    The hash is the same in every process and version.
    """

    name: str
    rows: int

    def __post_init__(self) -> None:
        """Refuse a table without rows.

        Raises:
            SettingsError: there are no rows, or more than a 32-bit id can name.
        """
        _check_rows(self.name, self.rows)

    def kinds(self) -> Mapping[str, Kind]:
        """Return the raw column of the same name, as strings."""
        return {self.name: "string"}

    def ids(self, columns: Columns) -> Ids:
        """Return one id for each row."""
        rows = self.rows
        return _by_word(columns[self.name], lambda word: _digest(word) % rows, of_missing=0)


@dataclass(frozen=True)
class Identity:
    """An integer that already is an id; ids from `rows` on, negative and missing ones share the last row."""

    name: str
    rows: int

    def __post_init__(self) -> None:
        """Refuse a table without rows.

        Raises:
            SettingsError: there are no rows, or more than a 32-bit id can name.
        """
        _check_rows(self.name, self.rows)

    def kinds(self) -> Mapping[str, Kind]:
        """Return the raw column of the same name, as integers."""
        return {self.name: "integer"}

    def ids(self, columns: Columns) -> Ids:
        """Return one id for each row."""
        raw = columns[self.name]
        return np.where((raw < 0) | (raw >= self.rows), self.rows - 1, raw).astype(np.int32)


@dataclass(frozen=True)
class Cross:
    """Two or more categorical features combined: every combination has its own row.

    If there are more combinations than `buckets`, they are hashed into `buckets` rows.
    """

    parts: tuple[Categorical, ...]
    buckets: int = 1_000_000

    def __post_init__(self) -> None:
        """Refuse parts without a single id for each row.

        Raises:
            SettingsError: there are fewer than two parts, a part takes several values, two parts read a
                column in two ways, or there are no buckets.
        """
        if len(self.parts) < 2:
            raise errors.SettingsError(f"a cross is of two features or more, not of {len(self.parts)}")
        _check_columns(self.parts)
        for part in self.parts:
            if isinstance(part, Several):
                raise errors.SettingsError(f"feature {part.name!r} has several values, so it has no crosses")
        _check_rows(self.name, self.buckets)

    @property
    def name(self) -> str:
        """The names of the parts, joined."""
        return "_x_".join(part.name for part in self.parts)

    @property
    def combinations(self) -> int:
        """The product of the parts' rows."""
        return functools.reduce(lambda product, part: product * part.rows, self.parts, 1)

    @property
    def rows(self) -> int:
        """The number of combinations, but at most `buckets`."""
        return min(self.combinations, self.buckets)

    def kinds(self) -> Mapping[str, Kind]:
        """Return the raw columns of all parts."""
        return {column: kind for part in self.parts for column, kind in part.kinds().items()}

    def ids(self, columns: Columns) -> Ids:
        """Return one id for each row."""
        combined = np.zeros(1, dtype=np.uint64)
        for part in self.parts:  # may wrap round in 64 bits; the result is hashed then, so it does no harm
            combined = combined * np.uint64(part.rows) + part.ids(columns).astype(np.uint64)
        if self.combinations > self.buckets:
            combined = _mixed(combined) % np.uint64(self.buckets)
        return combined.astype(np.int32)


Combiner = Literal["sum", "mean", "sqrtn"]


@dataclass(frozen=True)
class Several:
    """A feature with up to `length` values in each row, in a list column or in texts with a separator.

    Values beyond `length` are left out, as are missing and empty ones. If a row has fewer values, it is
    padded by -1, for which no row of a table is fetched. The combiner combines the vectors of a row into one
    vector, which is zero for a row without values.

    With a combiner of None the feature has `length` vectors, for a model with its own layers for them; it is
    padded by id 0, as Keras does.
    """

    feature: Categorical
    length: int
    combiner: Combiner | None = "mean"
    separator: str = "|"

    def __post_init__(self) -> None:
        """Refuse a feature that cannot have several values.

        Raises:
            SettingsError: the length is below 1, the separator is empty, or the feature reads more than one
                column or is itself a `Several`.
        """
        if self.length < 1 or not self.separator:
            raise errors.SettingsError(f"feature {self.name!r}: length and separator must not be empty")
        if isinstance(self.feature, Several) or len(self.feature.kinds()) != 1:
            raise errors.SettingsError(f"feature {self.name!r}: several values must be those of one column")

    @property
    def name(self) -> str:
        """The name of the feature."""
        return self.feature.name

    @property
    def rows(self) -> int:
        """The rows of the feature."""
        return self.feature.rows

    def kinds(self) -> Mapping[str, Kind]:
        """Return the raw column of the feature, as lists."""
        words = self.feature.words if isinstance(self.feature, Vocabulary) else ()
        return {
            column: Lists(kind, self.separator, words)
            for column, kind in self.feature.kinds().items()
            if not isinstance(kind, Lists)
        }

    def ids(self, columns: Columns) -> Ids:
        """Return the ids of each row: (rows, length)."""
        (column,) = self.kinds()
        values, lengths = columns[column]
        found = self.feature.ids({column: values})
        row = np.repeat(np.arange(len(lengths)), lengths)
        place = np.arange(len(found)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        kept = place < self.length
        padding = 0 if self.combiner is None else -1
        ids = np.full((len(lengths), self.length), padding, dtype=np.int32)
        ids[row[kept], place[kept]] = found[kept]
        return ids


@dataclass(frozen=True)
class Label:
    """The binary target.

    It is 1 where the column is one of `positive` or, if `positive` is empty, where a number is above 0.
    """

    name: str
    positive: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse words that no value equals.

        Raises:
            SettingsError: the words are one string, or a word is empty or has space around it.
        """
        _check_words(self.name, self.positive)

    def kinds(self) -> Mapping[str, Kind]:
        """Return the raw column, as strings or numbers."""
        return {self.name: "string" if self.positive else "number"}

    def values(self, columns: Columns) -> Floats:
        """Return 1.0 or 0.0 for each row.

        Raises:
            ValueFault: a row has no label.
        """
        column = columns[self.name]
        if self.positive:
            positive = self.positive
            found = _by_word(column, lambda word: int(word in positive), of_missing=_NO_LABEL, kept=positive)
        else:
            found = np.where(np.isnan(column), _NO_LABEL, column > 0)
        is_missing = found == _NO_LABEL
        if is_missing.any():
            row = int(np.argmax(is_missing))
            raise errors.ValueFault(row, self.name, "is the label and holds no value; leave such rows out")
        return np.asarray(found, dtype=np.float32)


class Examples(NamedTuple):
    """Encoded rows: `numeric` (n, numbers), `ids` (n, places of the categorical features), `labels` (n,).

    A categorical feature takes one place, or as many as the most values that it may have; -1 is a place
    without a value.
    """

    numeric: Floats
    ids: Ids
    labels: Floats

    def take(self, rows: slice | npt.NDArray[np.int64]) -> Examples:
        """Return the examples of these rows."""
        return Examples(self.numeric[rows], self.ids[rows], self.labels[rows])


@dataclass(frozen=True)
class FeatureSet:
    """What a model reads of an example: numbers, categories, and the target."""

    numeric: tuple[Numeric, ...]
    categorical: tuple[Categorical, ...]
    label: Label

    def __post_init__(self) -> None:
        """Refuse features that cannot be read together or have the same name.

        Raises:
            SettingsError: two numbers or two categories have the same name, or a column is read in two ways.
        """
        for what, group in (("numbers", self.numeric), ("categories", self.categorical)):
            names = [each.name for each in group]
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise errors.SettingsError(f"two {what} have the name {twice!r}")
        _check_columns(self._every)

    @property
    def _every(self) -> tuple[Numeric | Categorical | Label, ...]:
        return (*self.numeric, *self.categorical, self.label)

    def kinds(self) -> dict[str, Kind]:
        """Return every raw column that is read, and how to decode it."""
        return {column: kind for each in self._every for column, kind in each.kinds().items()}

    def encode(self, columns: Columns) -> Examples:
        """Turn decoded columns into examples.

        Raises:
            ValueFault: a row has no label, or a number is too large.
        """
        labels = self.label.values(columns)
        return Examples(
            numeric=_side_by_side((each.values(columns) for each in self.numeric), len(labels), np.float32),
            ids=_side_by_side((each.ids(columns) for each in self.categorical), len(labels), np.int32),
            labels=labels,
        )


def _side_by_side(columns: Iterable[npt.NDArray[Any]], rows: int, kind: type) -> npt.NDArray[Any]:
    parts = list(columns)
    return np.column_stack(parts) if parts else np.zeros((rows, 0), dtype=kind)


#: Stands for a missing label.
_NO_LABEL = -1
#: The most rows of a table: ids are numbers of 32 bits.
MOST_ROWS = 2**31 - 1


def _check_words(name: str, words: Collection[str]) -> None:
    if isinstance(words, str):
        raise errors.SettingsError(f"feature {name!r}: {words!r} is one word, not several: ({words!r},)")
    odd = next((word for word in words if not word or word != word.strip()), None)
    if odd is not None:
        raise errors.SettingsError(
            f"feature {name!r}: the word {odd!r} never fits, for the space around values is not read"
        )


def _check_rows(name: str, rows: int) -> None:
    if not 1 <= rows <= MOST_ROWS:
        raise errors.SettingsError(f"feature {name!r}: a table has 1 to {MOST_ROWS:,} rows, not {rows}")


def _check_columns(features: Iterable[Numeric | Categorical | Label]) -> None:
    """Refuse features that read one column in two ways.

    Raises:
        SettingsError: two features do.
    """
    read: dict[str, tuple[str, Kind]] = {}
    for each in features:
        for column, kind in each.kinds().items():
            name, before = read.setdefault(column, (each.name, kind))
            if before != kind:
                raise errors.SettingsError(
                    f"column {column!r} is read as {_named(before)} by {name!r} and as {_named(kind)} by "
                    f"{each.name!r}; give one of them a column of its own"
                )


def _named(kind: Kind) -> str:
    return f"several values ({kind.kind}, {kind.separator!r})" if isinstance(kind, Lists) else kind


def _by_word(column: Any, number: Callable[[str], int], of_missing: int, kept: Collection[str] = ()) -> Ids:
    """Map each distinct word of a dictionary-encoded column once, and return the number of each row's word.

    A null, and a word that stands for a missing value, get `of_missing`; words that are `kept` are always
    values.
    """
    words = column.dictionary.to_pylist()
    if column.dictionary.null_count:
        words = ["" if word is None else word for word in words]
    words = [word.strip() for word in words]
    table = np.array([*map(number, words), of_missing], dtype=np.int32)
    odd = missing.WORDS.difference(kept).intersection(words)
    if odd:
        table[[at for at, word in enumerate(words) if word in odd]] = of_missing
    codes = arrow_values.numbers(column.indices, missing=len(table) - 1)
    return np.asarray(table[codes], dtype=np.int32)


def _digest(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")


def _mixed(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Spread 64-bit keys evenly, by the finaliser of SplitMix64 (Steele, Lea, Flood 2014)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
