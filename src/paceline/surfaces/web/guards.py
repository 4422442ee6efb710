"""The checks that every request passes first (host, caller, rate, size), and the headers of every answer.

The caller is identified before any of the body is read: an unknown client costs its headers and no more. The
bodies of known callers are limited in size, each, per address and in total.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paceline.surfaces.web import callers, problems
from paceline.surfaces.web.origins import Proxies
from paceline.surfaces.web.rates import BodyBudget, RateLimiter

#: Scripts and styles only from our own files, none inline; pictures from our files or data URLs. No frames,
#: no plug-ins.
_POLICY = "; ".join(
    (
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:",
        "connect-src 'self'", "font-src 'self'", "form-action 'self'", "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)  # fmt: skip
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    # With "no-referrer" our own forms would not say their origin either, which changes need.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
#: The paths of the liveness and the readiness probe.
PROBES = LIVES, READY = "/healthz", "/readyz"
#: The largest body of most requests; a job file of ten thousand lines has a tenth of it.
MOST_BYTES = 4 << 20
#: Routes that take files, which are larger: they read the body themselves in chunks and count its bytes.
STREAMED = frozenset({("POST", "/api/v1/recordings")})
MOST_STREAMED_BYTES = 256 << 20
#: Where an unknown client logs in: by a form with a token, which may have 16,384 characters.
ENTRANCE = "/enter"
MOST_ENTRY_BYTES = 64 << 10
#: The time for a body, and for the log-in form of a client that is not known yet.
BODY_SECONDS, ENTRY_SECONDS = 30.0, 10.0
#: How many bytes of bodies are held at once, per address and in total, until their requests are answered.
MOST_HELD_EACH, MOST_HELD = 32 << 20, 128 << 20
MOST_ENTRIES_EACH, MOST_ENTRIES = 1 << 20, 8 << 20
#: The same for files, which are kept on disk meanwhile: two of the largest per address, three in total.
MOST_FILES_EACH, MOST_FILES = 2 * MOST_STREAMED_BYTES, 3 * MOST_STREAMED_BYTES
#: Requests a second of one caller, or of one address whose callers are unknown: the sustained rate, and the
#: burst. An open page makes a request every two seconds.
RATE, BURST = 200.0, 500.0
#: Wrong tokens a second of one address: the sustained rate, and the burst.
WRONG_RATE, WRONG_BURST = 0.2, 20.0
#: The length of a body; more than 20 digits are refused.
_LENGTH = re.compile("[0-9]{1,20}", re.ASCII)
#: Answers an error: a program gets a problem, a browser a page.
Refuse = Callable[[Request, Exception], Response]


class RequestGuard:
    """Refuses requests to other hosts, bodies of unknown callers, and too large or too frequent requests.

    Args:
        application: answers the other requests.
        hosts: the names of this server, with ports where needed; a page of another name that resolves to this
            address must not reach it. None: any.
        rates: how often a caller or an address may make a request.
        proxies: proxies whose headers on a request's origin are believed.
        refuse: answers a request that has a body but no known caller.
    """

    def __init__(
        self,
        application: ASGIApp,
        *,
        hosts: frozenset[str] | None,
        rates: RateLimiter,
        proxies: Proxies,
        refuse: Refuse,
    ) -> None:
        self._application, self._hosts, self._rates = application, hosts, rates
        self._proxies, self._refuse = proxies, refuse
        self._bodies = BodyBudget(MOST_HELD, MOST_HELD_EACH)
        self._entries = BodyBudget(MOST_ENTRIES, MOST_ENTRIES_EACH)
        self._files = BodyBudget(MOST_FILES, MOST_FILES_EACH)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on to the application."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        headers = Headers(scope=scope)
        self._note_origin(scope, headers)
        answer = _with_headers(scope, send)
        refused = await self._refused(scope, headers)
        if refused is not None:
            await refused(scope, receive, answer)
        elif not _has_body(headers):
            await self._application(scope, receive, answer)
        else:
            await self._read(scope, headers, receive, answer)

    async def _refused(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        """Return the answer to a request that is refused, or None; note the request's caller."""
        host = headers.get("host", "")
        # The probes of a cluster address this server by the IP address of its pod.
        is_probe = scope["path"] in PROBES
        if self._hosts is not None and host.lower() not in self._hosts and not is_probe:
            return problems.response(HTTPStatus.MISDIRECTED_REQUEST, f"this server is not {host[:100]!r}")
        request = Request(scope)
        identity = await callers.identify(request)
        scope["state"]["identity"] = identity
        # Each known caller has its own rate, so that other callers at its address do not use it up. The
        # log-in path is exempt, so that they cannot block a log-in: it counts wrong tokens itself.
        who = scope["state"]["origin"] if identity.caller is None else f"caller {identity.caller.name}"
        wait = 0.0 if scope["path"] == ENTRANCE else self._rates.wait_seconds(who)
        if wait:
            return _later(HTTPStatus.TOO_MANY_REQUESTS, "too many requests", wait)
        length, most = headers.get("content-length", "0"), _most(scope)
        if not _LENGTH.fullmatch(length) or int(length) > most:
            return _too_large(most)
        if identity.error is not None and _has_body(headers) and not _is_entry(scope):
            return self._refuse(request, identity.error)
        return None

    async def _read(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Answer a request that has a body, within the budget for bodies."""
        budget = self._entries if _is_entry(scope) else self._files if _is_streamed(scope) else self._bodies
        origin, most = scope["state"]["origin"], _most(scope)
        # The size of a chunked body is unknown.
        size = int(headers.get("content-length", most))
        if budget.is_spent(origin, size):
            spent = _later(HTTPStatus.TOO_MANY_REQUESTS, "too large requests are under way from there", 1.0)
            await spent(scope, receive, send)
        elif not budget.has_room(size):
            full = _later(HTTPStatus.SERVICE_UNAVAILABLE, "too large requests are under way", 1.0)
            await full(scope, receive, send)
        else:
            with budget.holding(origin, size):
                if _is_streamed(scope):
                    await self._application(scope, receive, send)
                else:
                    await self._read_whole(scope, receive, send, most)

    async def _read_whole(self, scope: Scope, receive: Receive, send: Send, most: int) -> None:
        seconds = ENTRY_SECONDS if _is_entry(scope) else BODY_SECONDS
        try:
            body = await asyncio.wait_for(_body(receive, most), seconds)
        except TimeoutError:
            late = problems.response(HTTPStatus.REQUEST_TIMEOUT, "the rest of the request did not come")
            await late(scope, receive, send)
        else:
            given = _too_large(most) if body is None else self._application
            await given(scope, _again(body or b"", receive), send)

    def _note_origin(self, scope: Scope, headers: Headers) -> None:
        """Note the origin of a request, and its scheme behind a proxy: on HTTPS its cookie is secure."""
        peer = scope["client"][0] if scope.get("client") else ""
        forwarded = ",".join(headers.getlist("x-forwarded-for"))
        scope.setdefault("state", {})["origin"] = self._proxies.origin(peer, forwarded)
        if self._proxies.include(peer) and headers.get("x-forwarded-proto") in ("http", "https"):
            scope["scheme"] = headers["x-forwarded-proto"]


def _with_headers(scope: Scope, send: Send) -> Send:
    """Return a ``send`` that adds the headers that every answer has."""

    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            answered = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                answered.setdefault(name, value)
            # Browsers revalidate the server's own files, which are sent only if they have changed.
            is_file = scope["path"].startswith("/static/")
            answered.setdefault("Cache-Control", "no-cache" if is_file else "no-store")
        await send(message)

    return with_headers


def _has_body(headers: Headers) -> bool:
    """Whether a request has a body, according to its headers."""
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _is_streamed(scope: Scope) -> bool:
    return (scope["method"], scope["path"]) in STREAMED


def _is_entry(scope: Scope) -> bool:
    return bool(scope["path"] == ENTRANCE)


def _most(scope: Scope) -> int:
    """Return how many bytes the body of a request may have."""
    if _is_entry(scope):
        return MOST_ENTRY_BYTES
    return MOST_STREAMED_BYTES if _is_streamed(scope) else MOST_BYTES


def _later(status: HTTPStatus, why: str, wait_seconds: float) -> ASGIApp:
    return problems.response(status, why, headers={"Retry-After": str(int(wait_seconds) + 1)})


def _too_large(most: int = MOST_BYTES) -> ASGIApp:
    said = f"a request has at most {most} bytes"
    return problems.response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, said)


async def _body(receive: Receive, most: int) -> bytes | None:
    """Return the body of a request; None: it is too large, whatever its declared length."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > most:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that gives a body already read, and then the client's later messages."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again
