"""Times in the formats of the Kubernetes API."""

from __future__ import annotations

import datetime


def seconds(time: str) -> float:
    """Return a time as Unix seconds."""
    return datetime.datetime.fromisoformat(time).timestamp()


def seconds_if(time: str | None) -> float | None:
    """Return a time as Unix seconds; None if it is not set yet."""
    return seconds(time) if time else None


def text(seconds: float) -> str:
    """Return Unix seconds in the format of ``Time``: whole seconds."""
    return f"{_moment(seconds):%Y-%m-%dT%H:%M:%SZ}"


def micro_text(seconds: float) -> str:
    """Return Unix seconds in the format of ``MicroTime``, which leases use."""
    return f"{_moment(seconds):%Y-%m-%dT%H:%M:%S.%fZ}"


def _moment(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)
