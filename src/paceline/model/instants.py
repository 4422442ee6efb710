"""Moments in time, as fields of the model hold them."""

from __future__ import annotations

from typing import Annotated

#: Seconds since 1970-01-01 in UTC; in documents ISO 8601.
UnixSeconds = Annotated[float, "Unix seconds"]
