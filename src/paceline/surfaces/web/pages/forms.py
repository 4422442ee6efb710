"""The fields of a submitted form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import Depends, Request

MOST_FIELDS = 20


async def fields(request: Request) -> Mapping[str, str]:
    """Return the fields of a form, each with its first value; empty if there are too many fields."""
    text = (await request.body()).decode("utf-8", "replace")
    try:
        found = parse_qs(text, max_num_fields=MOST_FIELDS)
    except ValueError:
        return {}
    return {name: values[0] for name, values in found.items()}


Fields = Annotated[Mapping[str, str], Depends(fields)]
