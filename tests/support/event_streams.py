"""Server-sent events, read as a browser reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


class Sent(NamedTuple):
    kind: str
    id: str | None
    data: Any


def sent(lines: Iterable[str]) -> Iterator[Sent]:
    """Yield the events of a stream."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if name in ("event", "id", "data"):
            fields[name] = value
        elif not line and fields:
            yield Sent(fields["event"], fields.get("id"), json.loads(fields["data"]))
            fields = {}
