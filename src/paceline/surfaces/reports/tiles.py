"""Numbers at the top of a page."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One number at the top of the page."""

    name: str
    value: str
    detail: str = ""
    is_bad: bool = False
