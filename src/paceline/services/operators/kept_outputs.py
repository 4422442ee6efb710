"""Limits the total size of the output that an operator stores: beyond it, the oldest output goes first.

Output is removed from the namespace that has most, so that a job that prints much does not cost other
namespaces their output.
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
    """Remove the oldest outputs until the total size is within a limit; return their files.

    Args:
        folder: the folder of all runs, with ``NAMESPACE/.../logs/REPLICA.ATTEMPT.log`` below it.
        most_bytes: the limit.
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
