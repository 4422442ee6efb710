"""What sources answer as JSON, and how they are asked through the API server."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any, Protocol

from paceline.errors import SourceError

Object = Mapping[str, Any]


class ApiServer(Protocol):
    """What is needed of a cluster: `engines.kubernetes.clusters.Cluster` has it."""

    async def read(self, path: str) -> bytes:
        """Return what the API server has at a path."""


async def fetched(server: ApiServer, path: str) -> str:
    """Return what the API server has at a path, as text."""
    return (await server.read(path)).decode(errors="replace")


def parsed(text: str, who: str) -> Object:
    """Return the object that a source answered.

    Raises:
        SourceError: it is none.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{who} did not answer in JSON: {_shown(text)}") from error
    if not isinstance(found, dict):
        raise SourceError(f"{who} answered no JSON object: {_shown(text)}")
    return found


def part(of: object, name: str) -> Object:
    """Return an object within another; an empty one where there is none."""
    found = of.get(name) if isinstance(of, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def parts(of: object, name: str) -> list[Any]:
    """Return a list within an object; an empty one where there is none."""
    found = of.get(name) if isinstance(of, Mapping) else None
    return found if isinstance(found, list) else []


def moment(text: object) -> float | None:
    """Return a time of the Kubernetes API (RFC 3339) as Unix seconds; None when it is none."""
    try:
        found = datetime.datetime.fromisoformat(str(text))
        return found.timestamp() if found.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _shown(text: str) -> str:
    return repr(text[:80])
