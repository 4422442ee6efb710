"""Sends requests to a server, with the token, safe retries and limited answers.

A request that only reads is repeated if the connection breaks or the server is temporarily unable to answer.
So is a submission, because it has a key by which the server recognises it. Any other request is repeated only
if the server cannot have processed it.
"""

from __future__ import annotations

import contextlib
import email.utils
import ipaddress
import json
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import httpx2

from paceline.errors import InvalidInput, PacelineError, SourceError
from paceline.surfaces.client import refusals

T = TypeVar("T")
Params = Mapping[str, str | int | float | bool | list[str] | None]

PREFIX = "/api/v1"
CONNECT_SECONDS, READ_SECONDS = 5.0, 180.0
#: A restarted server answers within the sum of these pauses, two minutes.
PAUSES_SECONDS = (0.25, 0.5, 1.0, 2.0, *(30 * (4.0,)))
#: The largest document; recordings and traces are written to files.
MOST_BYTES = 256 << 20
MOST_FILE_BYTES = 4 << 30
_BUSY = (
    HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)  # fmt: skip
#: Clocks that differ by less count as equal, because the server's header has whole seconds.
CLOCK_SECONDS = 2.0


class _Busy(Exception):
    """The server is temporarily unable to answer."""

    def __init__(self, error: PacelineError, status: int) -> None:
        super().__init__(error.message)
        self.error, self.status = error, status


class ServerConnection:
    """A connection to a server.

    Args:
        client: the HTTP client, with the address and the token of the server.
        namespace: the namespace of the server's cluster; None means the server's default.
        pauses_seconds: the pause before each repetition of a request.
    """

    def __init__(
        self,
        client: httpx2.Client,
        *,
        namespace: str | None = None,
        pauses_seconds: tuple[float, ...] = PAUSES_SECONDS,
    ) -> None:
        self._client, self._namespace, self._pauses_seconds = client, namespace, pauses_seconds
        self._has_answered = False
        #: How far the clock of the server is ahead of the local clock.
        self.ahead_seconds = 0.0

    @property
    def url(self) -> str:
        """The address of the server."""
        return str(self._client.base_url).rstrip("/")

    @property
    def is_overheard(self) -> bool:
        """Whether third parties on the network can read the requests."""
        return self._client.base_url.scheme == "http" and not is_loopback(self._client.base_url)

    def get(self, path: str, **params: Any) -> Any:
        """Return a document.

        Raises:
            PacelineError: the server refuses; the error is the server's.
            SourceError: the server does not answer, or is not a Paceline server.
        """
        return self._request("GET", path, _document, params=params)

    def text(self, path: str) -> str:
        """Return a text; raises the same errors as ``get``."""
        return self._request("GET", path, _read).decode(errors="replace")

    def post(self, path: str, body: Mapping[str, Any] | None = None, *, key: str | None = None) -> Any:
        """Request a change, and return the document that the server answers with.

        Args:
            path: the path of the operation.
            body: the body of the request.
            key: a key by which the server recognises a repetition, so that the request can be repeated.

        Raises:
            PacelineError: as for ``get``.
        """
        headers = {} if key is None else {"Idempotency-Key": key}
        return self._request(
            "POST", path, _document, body=body, headers=headers, is_repeatable=key is not None
        )

    def delete(self, path: str, **params: Any) -> None:
        """Request a deletion; raises the same errors as ``get``."""
        self._request("DELETE", path, _read, params=params, is_repeatable=False)

    def upload(self, path: str, source: Path, **params: Any) -> Any:
        """Send a file, and return the document that the server answers with.

        Raises:
            PacelineError: as for ``get``.
            OSError: the file cannot be read.
        """
        with source.open("rb") as file:
            return self._request("POST", path, _document, params=params, content=file, is_repeatable=False)

    def download(self, path: str, target: Path, **params: Any) -> None:
        """Write the server's answer into a file.

        Raises:
            PacelineError: as for ``get``.
            OSError: the file cannot be written.
        """

        def write(answer: httpx2.Response) -> None:
            with target.open("wb") as file:
                for chunk in _chunks(answer, MOST_FILE_BYTES):
                    file.write(chunk)

        self._request("GET", path, write, params=params)

    def _request(
        self,
        method: str,
        path: str,
        take: Callable[[httpx2.Response], T],
        *,
        params: Params | None = None,
        body: Mapping[str, Any] | None = None,
        content: BinaryIO | None = None,
        headers: Mapping[str, str] | None = None,
        is_repeatable: bool = True,
    ) -> T:
        """Send a request, repeat it if that is safe, and return what ``take`` makes of the answer."""
        given = {name: value for name, value in (params or {}).items() if value is not None}
        if self._namespace is not None:
            given["namespace"] = self._namespace
        pauses = iter(self._pauses_seconds)
        while True:
            if content is not None:
                content.seek(0)  # An earlier try may have read it.
            try:
                return self._send_once(
                    method, path, take, params=given, json=body, content=content, headers=headers
                )
            except _Busy as busy:
                # A server with too many requests has not processed this one.
                may_repeat = is_repeatable or busy.status == HTTPStatus.TOO_MANY_REQUESTS
                error, cause = busy.error, None
            except httpx2.TransportError as broken:
                never_sent = isinstance(broken, httpx2.ConnectError | httpx2.ConnectTimeout)
                # Without an answer so far the address may be wrong, which the user should learn at once.
                may_repeat = (is_repeatable or never_sent) and self._has_answered
                may_be_done = not is_repeatable and not never_sent
                error, cause = self._no_answer(broken, may_be_done=may_be_done), broken
            pause = next(pauses, None) if may_repeat else None
            if pause is None:
                raise error from cause
            time.sleep(pause)

    def _send_once(self, method: str, path: str, take: Callable[[httpx2.Response], T], **request: Any) -> T:
        with self._client.stream(method, PREFIX + path, **request) as answer:
            self._has_answered = True
            self._compare_clocks(answer.headers.get("date"))
            if answer.is_success:
                return take(answer)
            media_type = answer.headers.get("content-type", "")
            error = refusals.error(self.url, answer.status_code, media_type, _read(answer))
            if answer.status_code in _BUSY:
                raise _Busy(error, answer.status_code)
            raise error

    def _no_answer(self, error: httpx2.TransportError, *, may_be_done: bool) -> SourceError:
        said = str(error) or type(error).__name__
        hint = "look first whether it was done: paceline list" if may_be_done else "does it run there?"
        return SourceError(f"{self.url} does not answer: {refusals.shown(said)}", hint)

    def _compare_clocks(self, date: str | None) -> None:
        with contextlib.suppress(TypeError, ValueError):  # The answer has no date.
            ahead = email.utils.parsedate_to_datetime(date or "").timestamp() - time.time()
            self.ahead_seconds = ahead if abs(ahead) > CLOCK_SECONDS else 0.0


def _document(answer: httpx2.Response) -> Any:
    try:
        return json.loads(_read(answer))
    except (ValueError, RecursionError) as error:
        raise _not_paceline(answer) from error


def _read(answer: httpx2.Response) -> bytes:
    return b"".join(_chunks(answer, MOST_BYTES))


def _chunks(answer: httpx2.Response, most_bytes: int) -> Iterator[bytes]:
    size = 0
    try:
        for chunk in answer.iter_bytes():
            size += len(chunk)
            if size > most_bytes:
                raise SourceError(f"{answer.url.host} answers with more than {most_bytes} bytes")
            yield chunk
    except httpx2.DecodingError as error:
        raise _not_paceline(answer) from error


def _not_paceline(answer: httpx2.Response) -> SourceError:
    server = answer.url.copy_with(path="/", query=None)
    hint = "is this its address? paceline serve prints it"
    return SourceError(f"{server} does not answer as a Paceline server does", hint)


@contextlib.contextmanager
def opened(url: str, *, token: str | None, namespace: str | None = None) -> Iterator[ServerConnection]:
    """Yield a connection to a server.

    Args:
        url: the address of the server's page.
        token: the token that identifies the user; without one, the server identifies the user otherwise or
            refuses.
        namespace: the namespace of the server's cluster.

    Raises:
        InvalidInput: the address or the token is malformed.
    """
    base = address(url)
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise InvalidInput(
            "the token for the server has blanks, line breaks or characters that are not ASCII",
            "check PACELINE_TOKEN: a token is one line without blanks",
        )
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    timeout = httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    # Requests to this machine do not go through a proxy.
    client = httpx2.Client(base_url=base, headers=headers, timeout=timeout, trust_env=not is_loopback(base))
    with client:
        yield ServerConnection(client, namespace=namespace)


def address(url: str) -> httpx2.URL:
    """Return the address of a server.

    Raises:
        InvalidInput: the address is malformed, or contains credentials or a query, which many logs would
            show.
    """
    hint = "such as http://127.0.0.1:8470; paceline serve prints it"
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError, ValueError) as error:
        raise InvalidInput(f"{refusals.shown(url)!r} is no address of a server", hint) from error
    if parsed.userinfo or parsed.query:
        raise InvalidInput(
            "the address of the server has a user name, a password or a query, which logs would show",
            "leave these out, and give the token in PACELINE_TOKEN",
        )
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput(f"{refusals.shown(url)!r} is no address of a server", hint)
    return parsed.copy_with(fragment=None)


def is_loopback(url: httpx2.URL) -> bool:
    """Return whether an address is a loopback address."""
    try:
        return ipaddress.ip_address(url.host).is_loopback
    except ValueError:
        return url.host == "localhost"
