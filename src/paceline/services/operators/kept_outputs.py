"""All of the output that an operator keeps has a size: beyond it the oldest goes first.

It goes from the namespace that has most, so that one which prints much does not cost the others theirs.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NamedTuple

_GONE = b"paceline: this output was left out, for all that is kept of outputs was too much\n"


class KeptOutput(NamedTuple):
    """The output of an attempt, in a file."""

    at: float
    path: Path
    size_bytes: int


def trim(folder: Path, most_bytes: int) -> list[Path]:
    """Leave out the oldest outputs until all have a size; return which.

    Args:
        folder: of all runs: ``NAMESPACE/.../logs/REPLICA.ATTEMPT.log`` below it.
        most_bytes: the size.
    """
    by_namespace: dict[str, list[KeptOutput]] = {}
    for path in folder.glob("*/**/logs/*.log"):
        with contextlib.suppress(OSError):
            status = path.stat()
            output = KeptOutput(status.st_mtime, path, status.st_size)
            by_namespace.setdefault(path.relative_to(folder).parts[0], []).append(output)
    for outputs in by_namespace.values():
        outputs.sort(reverse=True)  # the oldest last
    totals = {namespace: sum(each.size_bytes for each in found) for namespace, found in by_namespace.items()}
    left_out = []
    while sum(totals.values()) > most_bytes:
        largest = max(totals, key=lambda namespace: totals[namespace])
        if not by_namespace[largest]:
            break
        oldest = by_namespace[largest].pop()
        if oldest.size_bytes > len(_GONE):
            with contextlib.suppress(OSError):
                oldest.path.write_bytes(_GONE)
                left_out.append(oldest.path)
        totals[largest] -= oldest.size_bytes
    return left_out
