"""Who makes a request, and whether the caller may make it: every route depends on this module."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Query, Request
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool

from paceline.errors import PacelineError
from paceline.model.jobs.audits import Audit
from paceline.services.life_cycles import StoredLifeCycle
from paceline.services.observing.look_cache import LookCache
from paceline.surfaces.web import descriptions
from paceline.surfaces.web.gates import Caller, Credentials
from paceline.surfaces.web.job_files import JobFiles
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.problems import RequestRefused
from paceline.surfaces.web.rates import Guesses
from paceline.surfaces.web.sites import Site
from paceline.surfaces.web.tickets import Tickets

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
#: How often the identity and the rights of a stream's follower are checked again.
ASK_AGAIN_SECONDS = 60.0
Namespace = Annotated[
    str | None,
    Query(
        description="of the cluster; else the server's own",
        max_length=63,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    ),
]


@dataclasses.dataclass(frozen=True, slots=True)
class CallerRequest:
    """A request whose caller may make it.

    Attributes:
        jobs: the jobs of the request's namespace.
        look_cache: the latest looks at these jobs.
        namespace: None on this machine.
        origin: the address that the request came from.
        job_files: reads the job files in requests.
    """

    site: Site
    caller: Caller
    operation: ApiOperation
    jobs: StoredLifeCycle
    look_cache: LookCache
    namespace: str | None
    origin: str
    job_files: JobFiles

    def may(self, operation: ApiOperation) -> bool:
        """Whether the caller may do another operation, too."""
        return self.site.gate.allows(self.caller, operation, self.namespace)

    def note(self, job: str | None, detail: str = "") -> None:
        """Write a change into the audit log before making it, so that no change is missing from the log.

        Raises:
            StoreError: the store cannot be written.
        """
        audit = Audit(
            at=self.site.clock(), who=self.caller.name, origin=self.origin, action=self.operation.value,
            job=job, namespace=self.namespace, scope=self.jobs.scope(), detail=detail,
        )  # fmt: skip
        self.site.store.append_audit(audit)


@dataclasses.dataclass(frozen=True, slots=True)
class Identified:
    """The identity of a request's caller.

    Attributes:
        caller: None: the caller is unknown, and ``error`` says why.
    """

    caller: Caller | None
    error: Exception | None = None


def cookie(request: Request) -> str:
    """Return the name of the session cookie.

    The name contains the port: browsers send the cookies of one port to all ports of a host.
    """
    return f"paceline-{request.url.port or request.url.scheme}"


async def identify(request: Request) -> Identified:
    """Return who makes a request, from its headers alone: its body has not been read yet."""
    try:
        return Identified(await _caller(request))
    except (RequestRefused, PacelineError) as error:
        return Identified(None, error)


async def _caller(request: Request) -> Caller:
    """Return who makes a request.

    Raises:
        RequestRefused: the caller is unknown, or a page of another site made the request.
        PacelineError: the cluster or the store does not answer.
    """
    site: Site = request.app.state.site
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    token = bearer.strip() if scheme.lower() == "bearer" else None
    is_change, by_headers = request.method not in _SAFE, site.gate.believes_headers
    session = None
    if not by_headers and "authorization" not in request.headers:
        session = request.cookies.get(cookie(request))
    if is_change and (session is not None or (by_headers and _is_of_browser(request))):
        _check_origin(request)
    is_said = token is not None or session is not None
    found = await recognised(request, token, session) if is_said or by_headers else None
    if found is None and not is_said:
        raise _unknown("who asks is not known: no token")
    if found is None and session is not None:  # Almost always an ended session: tickets cannot be guessed.
        _guesses(request).count(address(request))
        raise _unknown("who asks is not known: the session has ended")
    if found is None:
        count_guess(request)
        raise _unknown("who asks is not known: the token is wrong")
    return found


async def recognised(request: Request, token: str | None, session: str | None = None) -> Caller | None:
    """Return the caller that a request's token, session or headers identify; None: the caller is unknown.

    A right token is recognised however many wrong ones came from the same address (`rates.Guesses`).

    Raises:
        PacelineError: the cluster or the store does not answer.
    """
    site: Site = request.app.state.site
    tickets: Tickets = request.app.state.tickets

    def ask() -> Caller | None:
        given = tickets.token(session) if session is not None else token
        if given is None and session is not None:
            return None
        return site.gate.caller(credentials(request, given))

    async with _guesses(request).turn(address(request)):
        if site.gate.is_quick and session is None:
            return ask()
        return await run_in_threadpool(ask)


def _unknown(why: str) -> RequestRefused:
    return RequestRefused(
        HTTPStatus.UNAUTHORIZED,
        why,
        hint="send 'Authorization: Bearer TOKEN'",
        headers={"WWW-Authenticate": 'Bearer realm="paceline"'},
    )


async def caller(
    request: Request, _described: Annotated[object, Depends(HTTPBearer(auto_error=False))] = None
) -> Caller:
    """Return who makes a request, as the guard has identified the caller.

    Raises:
        RequestRefused: the caller is unknown, or a page of another site made the request.
        PacelineError: the cluster or the store does not answer.
    """
    identity: Identified = request.state.identity
    if identity.caller is None:
        assert identity.error is not None
        raise identity.error
    return identity.caller


def credentials(request: Request, token: str | None) -> Credentials:
    """Return the credentials that a request carries."""
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return Credentials(token, headers, request.client.host if request.client else "")


def address(request: Request) -> str:
    """Return the address that a request comes from, as far as it can be believed (`guards.RequestGuard`)."""
    return str(request.state.origin)


def count_guess(request: Request) -> None:
    """Count a wrong token.

    Raises:
        RequestRefused: too many wrong tokens came from this address.
    """
    wait = _guesses(request).count(address(request))
    if wait:
        after = {"Retry-After": str(int(wait) + 1)}
        raise RequestRefused(HTTPStatus.TOO_MANY_REQUESTS, "too many wrong tokens", headers=after)


def _guesses(request: Request) -> Guesses:
    found: Guesses = request.app.state.guesses
    return found


def _is_of_browser(request: Request) -> bool:
    """Whether a browser makes a request: browsers name the page that a change comes from, or send cookies."""
    return any(name in request.headers for name in ("sec-fetch-site", "origin", "cookie"))


def _check_origin(request: Request) -> None:
    """Check that a change was requested by a page of this server; browsers state the origin of a request.

    Source: OWASP, "Cross-Site Request Forgery Prevention", on Fetch Metadata and the Origin header.

    Raises:
        RequestRefused: the request comes from a page of another site, or does not state its origin.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        allowed = site == "same-origin"
    else:
        host = None if origin is None else _host_of(origin)
        allowed = host is not None and host == request.headers.get("host")
    if not allowed:
        raise RequestRefused(HTTPStatus.FORBIDDEN, "a page of another site asked for this")


def _host_of(origin: str) -> str | None:
    """Return the host of an origin, with its port; None: it is no origin."""
    try:
        return urlsplit(origin).netloc
    except ValueError:  # Brackets without an address in them.
        return None


def check_entry(request: Request) -> None:
    """Check that no page of another site logs a browser in or out, or it would act for another user.

    Such a request needs no cookie. A program states no origin, and is let through.

    Raises:
        RequestRefused: the request comes from a page of another site.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if (site is not None or origin is not None) and site != "none":
        _check_origin(request)


Known = Annotated[Caller, Depends(caller)]


def may(operation: ApiOperation) -> Callable[..., CallerRequest]:
    """Return a dependency, for ``Depends``, which checks that the caller may do an operation.

    The dependency raises `RequestRefused` if the caller may not.
    """

    def asked(request: Request, known: Known, namespace: Namespace = None) -> CallerRequest:
        descriptions.check_query(request)
        site: Site = request.app.state.site
        namespace = namespace or getattr(request.state, "namespace", None) or site.namespace
        if not site.gate.allows(known, operation, namespace):
            where = f" in {namespace}" if namespace else ""
            raise RequestRefused(
                HTTPStatus.FORBIDDEN, f"{known.name} may not do this{where}: {operation.value}"
            )
        jobs, look_cache = site.jobs(namespace), site.look_cache(namespace)
        job_files: JobFiles = request.app.state.job_files
        return CallerRequest(site, known, operation, jobs, look_cache, namespace, address(request), job_files)

    asked.operation = operation  # type: ignore[attr-defined]
    return asked


class Rights:
    """Checks once a minute whether a stream's follower may go on: tokens expire, and rights are revoked.

    Args:
        request: the request that began the stream.
        asked: the request as it was checked then.
    """

    def __init__(self, request: Request, asked: CallerRequest) -> None:
        self._request, self._asked = request, asked
        self._clock: Callable[[], float] = request.app.state.clock
        self._due = self._clock() + ASK_AGAIN_SECONDS

    async def check(self) -> None:
        """Check that the caller may still follow the stream.

        Raises:
            RequestRefused: the caller may not follow it any more.
            PacelineError: the cluster or the store does not answer.
        """
        if self._clock() < self._due:
            return
        self._due = self._clock() + ASK_AGAIN_SECONDS
        identity = await identify(self._request)
        if identity.error is not None:
            raise identity.error
        if identity.caller != self._asked.caller or not await run_in_threadpool(
            self._asked.may, self._asked.operation
        ):
            raise RequestRefused(
                HTTPStatus.FORBIDDEN, f"{self._asked.caller.name} may not follow this any more"
            )
