"""Storage of runs and their measurements: a SQLite file by default, PostgreSQL by URL."""

from __future__ import annotations

from paceline.stores.stores import Store, open_store

__all__ = ["Store", "open_store"]
