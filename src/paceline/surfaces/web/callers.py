"""Who makes a request, and whether they may: what every route asks for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Query, Request
from fastapi.security import HTTPBearer

from paceline.model.audits import Audit
from paceline.services.life_cycles import LifeCycle
from paceline.services.lookouts import Lookout
from paceline.surfaces.web import descriptions
from paceline.surfaces.web.gates import Caller, Credentials
from paceline.surfaces.web.guards import Rates
from paceline.surfaces.web.operations import Operation
from paceline.surfaces.web.problems import Refused
from paceline.surfaces.web.sites import Site

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
Namespace = Annotated[
    str | None,
    Query(
        description="of the cluster; else the server's own",
        max_length=63,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    ),
]


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """A request whose caller may make it.

    Attributes:
        jobs: those of the namespace that it is about.
        lookout: the latest looks at these.
        namespace: None on this machine.
        origin: the address that it came from.
    """

    site: Site
    caller: Caller
    operation: Operation
    jobs: LifeCycle
    lookout: Lookout
    namespace: str | None
    origin: str

    def may(self, operation: Operation) -> bool:
        """Whether whoever asks may do something else, too."""
        return self.site.gate.allows(self.caller, operation, self.namespace)

    def note(self, job: str | None, detail: str = "") -> None:
        """Write a change into the audit log, before it is made: none is made that is not there.

        Raises:
            StoreError: the store cannot be written.
        """
        audit = Audit(
            at=self.site.clock(), who=self.caller.name, origin=self.origin, action=self.operation.value,
            job=job, namespace=self.namespace, detail=detail,
        )  # fmt: skip
        self.site.store.append_audit(audit)


def cookie(request: Request) -> str:
    """Return the name of the cookie with the token; browsers send those of one port to all others."""
    return f"paceline-{request.url.port or request.url.scheme}"


def caller(
    request: Request, _described: Annotated[object, Depends(HTTPBearer(auto_error=False))] = None
) -> Caller:
    """Return who makes a request.

    Raises:
        Refused: nobody who is known, or a page of another site lets them make it.
    """
    check_guesses(request)
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    token = bearer.strip() if scheme.lower() == "bearer" else None
    site: Site = request.app.state.site
    if token is None and "authorization" not in request.headers:
        token = request.cookies.get(cookie(request))
        if token is not None and request.method not in _SAFE:
            _check_origin(request)
    if site.gate.believes_headers and request.method not in _SAFE and _is_of_browser(request):
        _check_origin(request)
    found = site.gate.caller(credentials(request, token))
    if found is None:
        if token is not None:
            count_guess(request)
        raise Refused(
            HTTPStatus.UNAUTHORIZED,
            "who asks is not known: the token is wrong" if token else "who asks is not known: no token",
            hint="send 'Authorization: Bearer TOKEN'",
            headers={"WWW-Authenticate": 'Bearer realm="paceline"'},
        )
    return found


def credentials(request: Request, token: str | None) -> Credentials:
    """Return what a request says of who makes it."""
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return Credentials(token, headers, request.client.host if request.client else "")


def address(request: Request) -> str:
    """Return where a request comes from, as far as that can be believed (`guards.Guard`)."""
    return str(request.state.origin)


def check_guesses(request: Request) -> None:
    """Let whoever has not brought too many wrong tokens go on.

    Raises:
        Refused: they have.
    """
    wrong: Rates = request.app.state.wrong
    wait = wrong.wait_seconds(address(request), cost=0.0)
    if wait:
        after = {"Retry-After": str(int(wait) + 1)}
        raise Refused(HTTPStatus.TOO_MANY_REQUESTS, "too many wrong tokens", headers=after)


def count_guess(request: Request) -> None:
    """Count a wrong token."""
    wrong: Rates = request.app.state.wrong
    wrong.wait_seconds(address(request))


def _is_of_browser(request: Request) -> bool:
    """Whether a browser makes a request that may change something: it says from which page."""
    return any(name in request.headers for name in ("sec-fetch-site", "origin", "cookie"))


def _check_origin(request: Request) -> None:
    """Let a change pass that a page of this server asks for: browsers say where a request comes from.

    Source: OWASP, "Cross-Site Request Forgery Prevention", on Fetch Metadata and the Origin header.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        allowed = site == "same-origin"
    else:
        allowed = origin is not None and urlsplit(origin).netloc == request.headers.get("host")
    if not allowed:
        raise Refused(HTTPStatus.FORBIDDEN, "a page of another site asked for this")


Known = Annotated[Caller, Depends(caller)]


def may(operation: Operation) -> Callable[..., Asked]:
    """Return what makes sure that whoever makes a request may, for ``Depends``.

    Raises:
        Refused: they may not.
    """

    def asked(request: Request, known: Known, namespace: Namespace = None) -> Asked:
        descriptions.check_query(request)
        site: Site = request.app.state.site
        namespace = namespace or getattr(request.state, "namespace", None) or site.namespace
        if not site.gate.allows(known, operation, namespace):
            where = f" in {namespace}" if namespace else ""
            raise Refused(HTTPStatus.FORBIDDEN, f"{known.name} may not do this{where}: {operation.value}")
        jobs, lookout = site.jobs(namespace), site.lookout(namespace)
        return Asked(site, known, operation, jobs, lookout, namespace, address(request))

    asked.operation = operation  # type: ignore[attr-defined]
    return asked
