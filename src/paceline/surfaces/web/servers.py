"""The server as a process: its socket, its token, its end."""

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
from paceline.services.observing.job_summaries import Keeper
from paceline.surfaces.web.applications import application
from paceline.surfaces.web.connections import TimedConnection
from paceline.surfaces.web.origins import Proxies
from paceline.surfaces.web.sites import Site

#: A look at a large job keeps the interpreter busy for a second; an answer that has to wait for it does so
#: a dozen times, by default for 5 ms each.
SWITCH_SECONDS = 0.0005
#: Streams of events never end by themselves.
GRACE_SECONDS = 3
#: More connections than this, those that wait for their next request included, are told to come again later.
MOST_CONNECTIONS = 800
#: A page that is left as a file for the browser, which then goes on by itself.
_OPENING = """<!DOCTYPE html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}">
<title>Paceline</title>
<a href="{link}">Paceline</a>
"""


@contextlib.contextmanager
def listening(address: str, port: int, *, beyond: bool = False) -> Iterator[socket.socket]:
    """Give a socket that listens, on this machine alone unless it may be reached from beyond.

    Args:
        address: of an interface.
        port: 0 takes one that is free.
        beyond: whether others may reach it: each caller is a user then, with rights of their own.

    Raises:
        InvalidInput: others could reach the address.
        EngineError: it cannot be listened on.
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
    """Return where the page of a server is."""
    address, port = listener.getsockname()[:2]
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def entrance(listener: socket.socket, token: str) -> str:
    """Return the link that lets a browser in; its holder may do what the token's user may."""
    return f"{url(listener)}/enter?token={quote(token)}"


@contextlib.contextmanager
def opening(folder: Path, link: str) -> Iterator[Path]:
    """Give a file that leads a browser to a link, for as long as this lasts.

    All users of a machine see the command lines of its programs, and with one of a browser the token in the
    link. So the browser is given the file, which its user alone may read.

    Raises:
        OSError: it cannot be written.
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
    """Return the names by which a server is called: those of this machine, and others."""
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
    """Answer requests until SIGTERM or SIGINT, and look at the jobs meanwhile.

    Args:
        site: what the server stands on.
        listener: where it listens.
        ready: called as soon as it answers.
        named: names by which it may be called, beside those of this machine.
        proxies: those that are believed when they say where requests come from; None: none is.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    keeper = Keeper(site.store, site.engine, site.watched, site.clock, every_seconds=site.DIGEST_SECONDS)
    server = _Server(
        uvicorn.Config(
            application(site, hosts=hosts(listener, named), proxies=proxies),
            http=TimedConnection,
            ws="none",  # There are none here.
            limit_concurrency=MOST_CONNECTIONS,
            proxy_headers=False,  # What they say is read where it is known who may say it (`guards`).
            log_config=None,
            access_log=False,  # A link may have the token in it.
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )
    server.ready = ready
    looking = threading.Thread(target=keeper.run, name="digests")
    looking.start()
    try:
        server.run(sockets=[listener])
    finally:
        keeper.end()
        looking.join()


class _Server(uvicorn.Server):
    """A server that says when it answers."""

    ready: Callable[[], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self.started:
            self.ready()
