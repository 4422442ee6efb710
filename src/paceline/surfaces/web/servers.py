"""The server as a process: its socket, its token, its shutdown."""

from __future__ import annotations

import contextlib
import html
import ipaddress
import os
import socket
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from urllib.parse import quote

import uvicorn

from paceline.errors import EngineError, InvalidInput
from paceline.services.observing.diagnosis_summaries import SummaryRefresher
from paceline.surfaces.web.applications import application
from paceline.surfaces.web.connections import TimedConnection
from paceline.surfaces.web.origins import Proxies
from paceline.surfaces.web.sites import Site

#: A look at a large job keeps the interpreter busy for a second; meanwhile another answer waits for it about
#: a dozen times, for 5 ms each by default.
SWITCH_SECONDS = 0.0005
#: How long a shutdown waits for connections: streams of events do not end by themselves.
GRACE_SECONDS = 3
#: The limit of connections, idle ones included; further ones are asked to retry later.
MOST_CONNECTIONS = 800
#: A page in a file that redirects the browser to the link.
_OPENING = """<!DOCTYPE html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}">
<title>Paceline</title>
<a href="{link}">Paceline</a>
"""


@contextlib.contextmanager
def listening(address: str, port: int, *, beyond: bool = False) -> Iterator[socket.socket]:
    """Give a listening socket, reachable from this machine alone unless ``beyond`` is set.

    Args:
        address: the address of an interface.
        port: 0 takes a free port.
        beyond: whether other machines may reach it: each caller is then a user with their own rights.

    Raises:
        InvalidInput: the address is malformed, or other machines could reach it.
        EngineError: the server cannot listen on the address and port.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError as error:
        raise InvalidInput(f"{address!r} is no address", "127.0.0.1 or ::1") from error
    if not parsed.is_loopback and not beyond:
        raise InvalidInput(
            f"others could reach {address}, and the token goes over the network as it is",
            f"listen on 127.0.0.1, and let them come by ssh: ssh -L {port}:127.0.0.1:{port} HOST; "
            "on a cluster take --gate kubernetes",
        )
    family = socket.AF_INET6 if parsed.version == 6 else socket.AF_INET
    with socket.socket(family) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((address, port))
        except OSError as error:
            raise EngineError(
                f"{address} port {port} cannot be listened on: {error.strerror}",
                "a server may run already; else take another port: paceline serve --port 0",
            ) from error
        yield made


def url(listener: socket.socket) -> str:
    """Return the address of a server's page."""
    address, port = listener.getsockname()[:2]
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def entrance(listener: socket.socket, token: str) -> str:
    """Return the link that logs a browser in; its holder may do what the token's user may."""
    return f"{url(listener)}/enter?token={quote(token)}"


@contextlib.contextmanager
def opening(folder: Path, link: str) -> Iterator[Path]:
    """Give a file that redirects a browser to a link, for the duration of the context.

    All users of a machine see the command lines of its programs, and a link on a browser's command line would
    show the token. So the browser gets the file, which its user alone may read.

    Raises:
        OSError: the file cannot be written.
    """
    path = folder / f"open-{os.getpid()}.html"
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(_OPENING.format(link=html.escape(link)))
        yield path
    finally:
        path.unlink(missing_ok=True)


def hosts(listener: socket.socket, named: Collection[str] = ()) -> frozenset[str]:
    """Return the host names of a server: those of this machine, and the named ones."""
    port = listener.getsockname()[1]
    here = (f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
    lower = [name.lower() for name in named]
    return frozenset((*here, *lower, *(f"{name}:{port}" for name in lower if ":" not in name)))


def run(
    site: Site,
    listener: socket.socket,
    *,
    ready: Callable[[], None],
    named: Collection[str] = (),
    proxies: Proxies | None = None,
) -> None:
    """Answer requests until SIGTERM or SIGINT, and refresh the diagnosis summaries meanwhile.

    Args:
        site: the jobs, the store and the gate to serve.
        listener: the socket to listen on.
        ready: called as soon as the server answers.
        named: further host names of the server, besides those of this machine.
        proxies: proxies whose headers on a request's origin are believed; None: no proxy is believed.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    refresher = SummaryRefresher(
        site.store, site.engine, site.watched, site.clock, every_seconds=site.DIAGNOSIS_SECONDS
    )
    server = _Server(
        uvicorn.Config(
            application(site, hosts=hosts(listener, named), proxies=proxies),
            http=TimedConnection,
            ws="none",  # The server has no WebSockets.
            limit_concurrency=MOST_CONNECTIONS,
            proxy_headers=False,  # `guards` reads these headers, because it knows the trusted proxies.
            log_config=None,
            access_log=False,  # A link may contain the token.
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )
    server.ready = ready
    looking = threading.Thread(target=refresher.run, name="diagnosis-summaries")
    looking.start()
    try:
        server.run(sockets=[listener])
    finally:
        refresher.end()
        looking.join()


class _Server(uvicorn.Server):
    """A server that reports when it begins to answer."""

    ready: Callable[[], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and report it."""
        await super().startup(sockets)
        if self.started:
            self.ready()
