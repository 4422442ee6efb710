"""Why an attempt ended, as its agent wrote it (``docs/agent-protocol.md``)."""

from __future__ import annotations

import json

from paceline.model.statuses import ExitKind, ExitReason


def told(text: str) -> ExitReason | None:
    """Return what the agent wrote as its last act; None when the text is something else."""
    try:
        said = json.loads(text)
        return ExitReason(
            kind=ExitKind(said["kind"]),
            code=None if said["code"] is None else int(said["code"]),
            signal=None if said["signal"] is None else int(said["signal"]),
            message=str(said["message"]),
        )
    except (ValueError, TypeError, KeyError):
        return None
