"""Reads the answers of agents in pods, through the API server (``docs/agent-protocol.md``).

The proxy of the API server reaches pods from anywhere, also from outside the cluster. A user needs the right
to use it.
"""

from __future__ import annotations

import dataclasses
import json

from paceline.model import outside
from paceline.model.roles import ReplicaId
from paceline.rendering.config_maps import METRICS_PORT
from paceline.sources import spools

#: The largest answer; agents send a megabyte of their spool at once.
MAX_PAGE_BYTES = 2 << 20
MAX_FILE_BYTES = 1 << 26


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A stretch of a spool.

    Attributes:
        offset: where the stretch begins, in bytes.
        size: the size of the whole spool when it was read, in bytes.
        data: the bytes of the stretch.
        at: when it was read, by the clock of the agent (Unix seconds); None: the agent does not say it.
    """

    offset: int
    size: int
    data: bytes
    at: float | None = None


def address(namespace: str, pod: str) -> str:
    """Return the path below the API server under which the agent of a pod answers."""
    return f"/api/v1/namespaces/{namespace}/pods/{pod}:{METRICS_PORT}/proxy"


def spool(at: str, *, offset: int, again_seconds: int | None = None, last_bytes: int | None = None) -> str:
    """Return the path of a stretch of a spool.

    Args:
        at: the agent's address.
        offset: where it begins; everything before it has arrived.
        again_seconds: in how many seconds the next stretch will be read: until then the pod does not end.
        last_bytes: how far before the end to begin instead, at the beginning of a line.
    """
    promise = "" if again_seconds is None else f"&again={again_seconds}"
    return f"{at}/spool?" + (f"last={last_bytes}" if last_bytes is not None else f"offset={offset}{promise}")


def page(answer: bytes) -> Page:
    """Return the stretch in an agent's answer.

    Raises:
        ValueError: the answer is not from an agent.
    """
    head, _, data = answer.partition(b"\n")
    try:
        values = json.loads(head)
        offset, size = values["offset"], values["size"]
        at = None if values.get("at") is None else outside.moment(values["at"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"an agent answers otherwise: {answer[:80]!r}") from error
    if not all(isinstance(each, int) and 0 <= each < outside.MOST for each in (offset, size)):
        raise ValueError(f"an agent answers otherwise: {head[:80]!r}")
    return Page(offset=offset, size=size, data=data, at=at)


def reading(found: Page, *, replica: ReplicaId, attempt: int) -> spools.SpoolReading:
    """Return the records of a stretch; an incomplete last line is left for the next stretch."""
    whole = spools.whole_lines(found.data, is_full=found.offset + len(found.data) < found.size)
    return spools.parse(whole, replica=replica, attempt=attempt, offset=found.offset + len(whole))
