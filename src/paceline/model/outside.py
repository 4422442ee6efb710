"""Checks of times and numbers that come from outside: from scripts, agents, exporters and files.

They are checked once, where they come in, so that no view, answer or report can fail on them: JSON has no
infinity, a calendar ends in the year 9999, and a database holds 64 bits.
"""

from __future__ import annotations

#: The year 2200 in Unix seconds; a time in milliseconds is later than that.
LATEST = 7_258_118_400.0
#: Measured numbers are below this, so the sum of thousands of them is still finite.
MOST = 2.0**62
#: A model may have any loss, but no sum of losses may be infinite.
_MOST_QUALITY = 1e100
#: Fields that say how good a model is. They may be below 0. NaN says something about a model, but it is no
#: measurement.
QUALITIES = frozenset(("loss", "auc", "log_loss", "accuracy"))


def is_moment(at: float) -> bool:
    """Whether a number is a time in Unix seconds."""
    return 0 <= at < LATEST


def moment(value: object) -> float:
    """Return a time as a number; 0 for None.

    Raises:
        ValueError: the value is not a time in Unix seconds.
    """
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_moment(value):
        raise ValueError(f"{str(value)[:40]} is no time in Unix seconds")
    return float(value)


def is_number(name: str, value: float) -> bool:
    """Whether a measured field can have a value; only fields of a model's quality may be below 0."""
    if name == "at":
        return is_moment(value)
    if name in QUALITIES:
        return abs(value) < _MOST_QUALITY
    return 0 <= value < MOST
