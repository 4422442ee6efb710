"""The error for a file that contains the reason why there is no trace, instead of a trace."""

from __future__ import annotations


class TraceRefused(ValueError):
    """There was nothing to trace or to profile; the message says why."""
