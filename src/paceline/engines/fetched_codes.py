"""What the fetcher of a job's code said as its last word (``paceline.agent.fetch``)."""

from __future__ import annotations

import dataclasses
import json


@dataclasses.dataclass(frozen=True, slots=True)
class Word:
    """The last word: an error, or what people should know, such as the commit."""

    error: str | None = None
    notes: tuple[str, ...] = ()


def told(text: str) -> Word | None:
    """Return what the fetcher wrote; None when the text is something else."""
    try:
        said = json.loads(text)
        error = said.get("error")
        return Word(None if error is None else str(error), tuple(map(str, said.get("notes", ()))))
    except (ValueError, TypeError, AttributeError):
        return None
