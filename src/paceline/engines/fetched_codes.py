"""The last message of the program that fetches a job's code (``paceline.agent.fetch``)."""

from __future__ import annotations

import dataclasses
import json


@dataclasses.dataclass(frozen=True, slots=True)
class Word:
    """The fetcher's last message: an error, or notes for users, such as the commit."""

    error: str | None = None
    notes: tuple[str, ...] = ()


def told(text: str) -> Word | None:
    """Return the fetcher's last message; None if the text is something else."""
    try:
        said = json.loads(text)
        error = said.get("error")
        return Word(None if error is None else str(error), tuple(map(str, said.get("notes", ()))))
    except (ValueError, TypeError, AttributeError):
        return None
