"""All errors that the user can correct, in one tree.

    TrainingError
    ├── ClusterTaskError  TF_CONFIG is missing or makes no sense
    ├── SettingsError     the job file's `training:` block is wrong
    ├── InputError        a file, a column or a row of the data is wrong
    ├── CheckpointError   a checkpoint does not fit the model, or cannot be written or read
    │   └── DamagedError  a checkpoint is not what was written
    └── ExportError       a SavedModel cannot be written

A message says what is wrong, where, and what to do next. Errors of TensorFlow's runtime that are not of these
kinds pass through unchanged.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Sequence
from typing import Self


class TrainingError(Exception):
    """A fault that the user can correct; the message is complete by itself."""

    @classmethod
    def of(cls, url: str, why: object, *, line: int | None = None) -> Self:
        """Return the error of a file or folder, at a line (from 1) if that is known."""
        return cls(f"{place(url, line)}: {why}")


class ClusterTaskError(TrainingError):
    """This process cannot tell which replica of which cluster it is."""


class SettingsError(TrainingError):
    """The `training:` block of the job file has an unknown key or a wrong value."""


class InputError(TrainingError):
    """A data file is missing, empty or malformed, or lacks a column."""


class ValueFault(Exception):
    """A value of a column cannot be used; the caller that knows the source of its row raises an `InputError`.

    `row` is the row in the given columns (from 0), or None if the whole column is meant.
    """

    def __init__(self, row: int | None, column: str, why: str) -> None:
        super().__init__(f"column {column!r} {why}")
        self.row = row
        self.why = why


class CheckpointError(TrainingError):
    """A checkpoint does not fit the model that is being trained, or cannot be written or read."""


class DamagedError(CheckpointError):
    """A file of a checkpoint is missing, cut short, or not what was written."""


class ExportError(TrainingError):
    """A SavedModel cannot be written to its folder."""


def shown(url: str) -> str:
    """Return a file's name for a message: unchanged, or quoted if it has unprintable characters."""
    return url if url.isprintable() else repr(url)


def place(url: str, line: int | None = None) -> str:
    """Return a place for a message: the file, and the line (from 1) if that is known."""
    return shown(url) if line is None else f"{shown(url)}:{line}"


def check_columns(url: str, wanted: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a file that lacks one of the columns or has it more than once.

    Raises:
        InputError: a column is missing or duplicated.
    """
    for name in wanted:
        times = known.count(name)
        if times == 0:
            raise InputError.of(url, f"there is no column {name!r}{did_you_mean(name, known)}")
        if times > 1:
            raise InputError.of(url, f"the column {name!r} is there {times} times")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest known word, or a list of all known words."""
    words = sorted(known)
    near = difflib.get_close_matches(word, words, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known are: {', '.join(words)}"


def reason(error: Exception) -> str:
    """Return the line of an error that says what went wrong, without the trace of TensorFlow's runtime."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    after_node = [line for node, line in itertools.pairwise(lines) if node.startswith("Node: ")]
    return (after_node or lines)[0]
