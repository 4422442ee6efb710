"""Why an attempt ended, as its agent wrote it (``docs/agent-protocol.md``)."""

from __future__ import annotations

import json

from paceline.model.jobs.statuses import ExitKind, ExitReason

#: Exit codes and signal numbers have at most 32 bits.
_MOST = 2**32


def told(text: str) -> ExitReason | None:
    """Return the exit reason that the agent wrote as its last act; None if the text is something else."""
    try:
        said = json.loads(text)
        return ExitReason(
            kind=ExitKind(said["kind"]),
            code=_number(said["code"]),
            signal=_number(said["signal"]),
            message=str(said["message"]),
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def _number(said: object) -> int | None:
    """Return an exit code or a signal number.

    Raises:
        ValueError: the value is neither.
    """
    if said is None:
        return None
    if not isinstance(said, int | float) or not -_MOST < said < _MOST:
        raise ValueError("no process ends so")
    return int(said)
