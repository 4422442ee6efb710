"""The numbers at the top of a page."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A number at the top of a page, with its name and a detail."""

    name: str
    value: str
    detail: str = ""
    is_bad: bool = False
