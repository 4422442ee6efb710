"""What agents answer in their pods, asked through the API server (``docs/agent-protocol.md``).

Its proxy reaches pods from anywhere, also from outside of the cluster, and asks for a right to do so.
"""

from __future__ import annotations

import dataclasses
import json

from paceline.model import outside
from paceline.model.roles import ReplicaId
from paceline.rendering.config_maps import METRICS_PORT
from paceline.sources import spools

#: An answer is no larger; agents send a megabyte of their spool at once.
MAX_PAGE_BYTES = 2 << 20
MAX_FILE_BYTES = 1 << 26


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A stretch of a spool.

    Attributes:
        offset: where it begins, in bytes.
        size: of the whole spool when it was read.
        data: what lies there.
        at: when that was, by the clock of the agent (Unix seconds); None: it does not say.
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
        offset: where it begins; whatever lies before has arrived.
        again_seconds: in how long the next stretch will be asked for: until then the pod does not end.
        last_bytes: begin so far from the end instead, at the beginning of a line.
    """
    promise = "" if again_seconds is None else f"&again={again_seconds}"
    return f"{at}/spool?" + (f"last={last_bytes}" if last_bytes is not None else f"offset={offset}{promise}")


def page(answer: bytes) -> Page:
    """Return the stretch that an agent has answered.

    Raises:
        ValueError: it is no answer of an agent.
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
    """Return what a stretch says; a line that is not whole yet is left for the next."""
    whole = spools.whole_lines(found.data, is_full=found.offset + len(found.data) < found.size)
    return spools.parse(whole, replica=replica, attempt=attempt, offset=found.offset + len(whole))
