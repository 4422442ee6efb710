"""What every request passes before anything is done for it: its host, its size, its rate; and the headers
that every answer has.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paceline.surfaces.web import problems
from paceline.surfaces.web.origins import Proxies

#: No script, style or picture but our own files: none that is written into a page. No frames, no plug-ins.
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
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
#: What tells whether the server lives, and whether it can answer.
PROBES = LIVES, READY = "/healthz", "/readyz"
#: A job file of ten thousand lines has a tenth of it.
MOST_BYTES = 4 << 20
#: Files are larger: what answers at these paths reads the body itself, piece by piece, and counts.
STREAMED = frozenset({("POST", "/api/v1/recordings")})
MOST_STREAMED_BYTES = 256 << 20
#: In which it has to come.
BODY_SECONDS = 30.0
#: Requests a second of one address in the long run, and at once; a page that is open asks for one in two
#: seconds, and all of a team may come through one proxy.
RATE, BURST = 200.0, 500.0
#: Wrong tokens a second of one address in the long run, and at once.
WRONG_RATE, WRONG_BURST = 0.2, 20.0
#: More addresses than this are not told apart: those that have waited longest begin anew.
MOST_ADDRESSES = 10_000


@dataclasses.dataclass(slots=True)
class _Bucket:
    """What somebody may still ask at once, as of a moment."""

    left: float
    at: float


class Rates:
    """Token buckets, one for each who asks.

    Args:
        rate: how many more each may ask a second.
        burst: how many at once.
        clock: seconds of any clock that only goes on.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: dict[str, _Bucket] = {}

    def wait_seconds(self, who: str, cost: float = 1.0) -> float:
        """Take ``cost`` from what somebody may ask; return 0, or for how long they have to wait first."""
        now = self._clock()
        bucket = self._buckets.pop(who, None) or _Bucket(self._burst, now)
        while len(self._buckets) >= MOST_ADDRESSES:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[who] = bucket
        bucket.left = min(self._burst, bucket.left + (now - bucket.at) * self._rate)
        bucket.at = now
        # What costs nothing asks whether anything is left.
        if bucket.left < max(cost, 1.0):
            return (max(cost, 1.0) - bucket.left) / self._rate
        bucket.left -= cost
        return 0.0


class Guard:
    """Turns away what is not for this server, too large or too frequent.

    Args:
        application: what answers the rest.
        hosts: the names by which this server is called, with ports where these belong to them; a page of
            another name that resolves to this address must not reach it. None: any.
        rates: how often an address may ask.
        proxies: those that are believed when they say where requests come from.
    """

    def __init__(
        self, application: ASGIApp, *, hosts: frozenset[str] | None, rates: Rates, proxies: Proxies
    ) -> None:
        self._application, self._hosts, self._rates = application, hosts, rates
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        headers = Headers(scope=scope)
        self._note_origin(scope, headers)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answered.setdefault(name, value)
                # Files of the server itself are asked for again, and sent only when they have changed.
                is_file = scope["path"].startswith("/static/")
                answered.setdefault("Cache-Control", "no-cache" if is_file else "no-store")
            await send(message)

        refused = self._refused(scope, headers)
        if refused is not None:
            await refused(scope, receive, with_headers)
            return
        if _is_streamed(scope):
            await self._application(scope, receive, with_headers)
            return
        try:
            body = await asyncio.wait_for(_body(receive), BODY_SECONDS)
        except TimeoutError:
            late = problems.response(HTTPStatus.REQUEST_TIMEOUT, "the rest of the request did not come")
            await late(scope, receive, with_headers)
        else:
            given = _too_large() if body is None else self._application
            await given(scope, _again(body or b"", receive), with_headers)

    def _note_origin(self, scope: Scope, headers: Headers) -> None:
        """Note where a request comes from; and whether it came encrypted, so that its cookie has to."""
        peer = scope["client"][0] if scope.get("client") else ""
        forwarded = ",".join(headers.getlist("x-forwarded-for"))
        scope.setdefault("state", {})["origin"] = self._proxies.origin(peer, forwarded)
        if self._proxies.include(peer) and headers.get("x-forwarded-proto") in ("http", "https"):
            scope["scheme"] = headers["x-forwarded-proto"]

    def _refused(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        host = headers.get("host", "")
        # A cluster that looks whether this server lives calls it by the address of its pod.
        is_probe = scope["path"] in PROBES
        if self._hosts is not None and host.lower() not in self._hosts and not is_probe:
            return problems.response(HTTPStatus.MISDIRECTED_REQUEST, f"this server is not {host[:100]!r}")
        wait = self._rates.wait_seconds(scope["state"]["origin"])
        if wait:
            after = {"Retry-After": str(int(wait) + 1)}
            return problems.response(HTTPStatus.TOO_MANY_REQUESTS, "too many requests", headers=after)
        length = headers.get("content-length", "0")
        most = MOST_STREAMED_BYTES if _is_streamed(scope) else MOST_BYTES
        if not length.isascii() or not length.isdigit() or int(length[:20]) > most:
            return _too_large(most)
        return None


def _is_streamed(scope: Scope) -> bool:
    return (scope["method"], scope["path"]) in STREAMED


def _too_large(most: int = MOST_BYTES) -> ASGIApp:
    said = f"a request has at most {most} bytes"
    return problems.response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, said)


async def _body(receive: Receive) -> bytes | None:
    """Return the body of a request; None: it is too large, whatever it said of its length."""
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if len(body) > MOST_BYTES:
            return None
        if not message.get("more_body", False):
            return body


def _again(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read already, and then whatever comes: that whoever asks has gone."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again
