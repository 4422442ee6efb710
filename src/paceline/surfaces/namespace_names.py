"""The names that namespaces of a cluster can have (labels of RFC 1123)."""

from __future__ import annotations

import re

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def is_namespace(text: str) -> bool:
    """Return whether a namespace can have this name."""
    return _NAME.fullmatch(text) is not None
