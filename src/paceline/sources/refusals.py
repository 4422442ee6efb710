"""A file that says why there is no trace, in the place of one."""

from __future__ import annotations


class TraceRefused(ValueError):
    """There is nothing to trace or to profile; the text says why."""
