"""Turns a server's refusals into the errors raised at the server, with their exit codes and hints."""

from __future__ import annotations

import json
from http import HTTPStatus

from paceline import errors
from paceline.errors import InvalidInput, NotFound, PacelineError, SourceError

PROBLEM = "application/problem+json"
#: The prefix of a problem's type if the problem is an error of `paceline.errors`.
ERROR_TYPE = "urn:paceline:error:"
_UPGRADE = "client and server should be of the same version: paceline version"
_TOKEN = "give the token in PACELINE_TOKEN; of a server on this machine it is in server.token of its --home"
_STATUSES: dict[int, type[PacelineError]] = {
    HTTPStatus.BAD_REQUEST: InvalidInput,
    HTTPStatus.UNPROCESSABLE_ENTITY: InvalidInput,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: InvalidInput,
    HTTPStatus.NOT_FOUND: NotFound,
}


def error(url: str, status: int, media_type: str, body: bytes) -> PacelineError:
    """Return the error that an answer stands for.

    Args:
        url: the address of the server.
        status: the HTTP status of the answer.
        media_type: the media type of the answer.
        body: the body of the answer.
    """
    problem = _problem(body) if media_type.partition(";")[0].strip() == PROBLEM else None
    if problem is None:
        return SourceError(
            f"{url} answers {status}, and not as a Paceline server does",
            "is this its address? paceline serve prints it",
        )
    detail, hint = shown(problem.get("detail") or problem.get("title")), problem.get("hint")
    named = str(problem.get("type")).removeprefix(ERROR_TYPE)
    kind = getattr(errors, named, None)
    if isinstance(kind, type) and issubclass(kind, PacelineError):
        return kind(detail, None if hint is None else shown(hint))
    if status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
        return SourceError(f"{url} does not do what this Paceline asks of it (API version v1)", _UPGRADE)
    if status == HTTPStatus.UNAUTHORIZED:
        return PacelineError(f"{url}: {detail}", _TOKEN)
    return _STATUSES.get(status, PacelineError)(f"{url}: {detail}", None if hint is None else shown(hint))


def _problem(body: bytes) -> dict[str, object] | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def shown(text: object) -> str:
    """Return a text from a server with all characters escaped that a terminal would act on."""
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in str(text))
