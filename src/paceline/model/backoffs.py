"""How long to wait before something that failed is tried again."""

from __future__ import annotations

#: More doublings change nothing, and 2**1024 is no float.
_MOST_DOUBLINGS = 20


def doubled(first_seconds: float, times: int, most_seconds: float) -> float:
    """Return a wait that was doubled so many times, and is not longer than the longest one."""
    return min(first_seconds * 2.0 ** min(times, _MOST_DOUBLINGS), most_seconds)
