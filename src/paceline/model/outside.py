"""Times and numbers that come from outside, from scripts, agents, exporters and files: which can be one.

They are checked once, where they come in, so that no view, answer or report can fail on them: JSON has no
infinity, a calendar ends in the year 9999, and a database holds 64 bits.
"""

from __future__ import annotations

#: The year 2200, in Unix seconds: milliseconds lie beyond it.
LATEST = 7_258_118_400.0
#: The largest number that is meant; sums of some thousands of them are numbers yet.
MOST = 2.0**62
#: A loss may be anything that a model comes to, but no sum of losses is to be infinite.
_MOST_QUALITY = 1e100
#: What says how good a model is. It may be less than 0; NaN is news of a model, but no measurement.
QUALITIES = frozenset(("loss", "auc", "log_loss", "accuracy"))


def is_moment(at: float) -> bool:
    """Whether a number is a time in Unix seconds."""
    return 0 <= at < LATEST


def moment(value: object) -> float:
    """Return a time as it was said; 0, where none was.

    Raises:
        ValueError: it is none.
    """
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_moment(value):
        raise ValueError(f"{str(value)[:40]} is no time in Unix seconds")
    return float(value)


def is_number(name: str, value: float) -> bool:
    """Whether a field of what is measured can have a number; none is less than 0 but those of a model."""
    if name == "at":
        return is_moment(value)
    if name in QUALITIES:
        return abs(value) < _MOST_QUALITY
    return 0 <= value < MOST
