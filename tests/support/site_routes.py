"""The routes of the application, wherever their routers are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute


def routes(found: Iterable[BaseRoute]) -> Iterator[APIRoute]:
    """Yield every route of an application's routes."""
    for route in found:
        if isinstance(route, APIRoute):
            yield route
        elif hasattr(route, "original_router"):
            yield from routes(route.original_router.routes)
