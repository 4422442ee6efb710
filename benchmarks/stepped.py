"""The training of an example that also keeps, in a file per worker, how many examples it has seen and when.

``python -m benchmarks.stepped FOLDER EXAMPLE ARGUMENTS``: reports come once a second; a window of that length
needs the exact count.
"""

from __future__ import annotations

import functools
import importlib
import mmap
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from paceline.training import reports

#: The package of each example.
MODULES = {"census": "examples.census", "clicks": "paceline.examples.clicks"}
_LAYOUT = struct.Struct("qd")


class Count(NamedTuple):
    """Examples so far, and the moment of the last step (``time.monotonic``)."""

    examples: int
    at: float


def read(folder: Path) -> list[Count]:
    """Return each worker's count, one that is not being written just then; its file may be new."""
    return [_steady(path) for path in sorted(folder.iterdir())]


def _steady(path: Path) -> Count:
    before = path.read_bytes()
    while (now := path.read_bytes()) != before or len(now) < _LAYOUT.size:
        before = now
    return Count(*_LAYOUT.unpack(now))


def rate(before: list[Count], after: list[Count]) -> float:
    """Return examples per second of all workers, each from its own step to its own step: none is cut."""
    return sum(
        (last.examples - first.examples) / (last.at - first.at)
        for first, last in zip(before, after, strict=True)
        if last.at > first.at
    )


class Counter:
    """Keeps a count in a file; made when the process starts, so the file is there from then on."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(_LAYOUT.pack(0, time.monotonic()))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _LAYOUT.size)
        self._examples = 0

    def add(self, examples: int) -> None:
        """Count the examples of a step that has just ended."""
        self._examples += examples
        _LAYOUT.pack_into(self._memory, 0, self._examples, time.monotonic())


def _count_in(path: Path) -> None:
    """Have every step meter of this process keep the count in the file."""
    add, counter = reports.StepMeter.add, Counter(path)

    @functools.wraps(add)
    def counting(*arguments: Any, **more: Any) -> None:
        counter.add(arguments[3])
        add(*arguments, **more)

    reports.StepMeter.add = counting  # type: ignore[method-assign]


def main() -> None:
    """Count beside the training."""
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    if os.environ["PACELINE_ROLE"] == "worker":
        _count_in(folder / os.environ["PACELINE_INDEX"])
    importlib.import_module(f"{MODULES[sys.argv[2]]}.train").main(sys.argv[3:])


if __name__ == "__main__":
    main()
