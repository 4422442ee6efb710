"""What a test or a benchmark needs that a machine may lack."""

from __future__ import annotations


class NotHere(Exception):
    """A test or a benchmark cannot run here, and what it lacks."""
