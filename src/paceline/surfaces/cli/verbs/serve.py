"""``paceline serve``: serves the web pages and the API."""

from __future__ import annotations

import contextlib
import enum
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from paceline.errors import InvalidInput
from paceline.surfaces import composition
from paceline.surfaces.cli import options, sessions

if TYPE_CHECKING:
    from socket import socket

    from paceline.engines.kubernetes.clusters import Cluster
    from paceline.engines.kubernetes.loops import Loop
    from paceline.surfaces.web.gates import Gate
    from paceline.surfaces.web.origins import Proxies
    from paceline.surfaces.web.sites import Site


#: The environment variable with the proxy's secret: the proxy's address alone is not believed.
PROXY_SECRET = "PACELINE_PROXY_SECRET"


class GateKind(enum.StrEnum):
    """What decides who may use the server."""

    TOKEN = "token"
    KUBERNETES = "kubernetes"
    PROXY = "proxy"


@options.verb("serve")
@options.engine_options
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8470, show_default=True, help="0 takes a free one."
)
@click.option(
    "--address",
    default="127.0.0.1",
    show_default=True,
    help="Of an interface; with --gate token of the loopback one.",
)
@click.option(
    "--gate",
    "kind",
    type=click.Choice([each.value for each in GateKind]),
    default=GateKind.TOKEN.value,
    show_default=True,
    help="Who may: the holder of the server's token; or users by their rights on the cluster, known by "
    "their own token or named by a proxy.",
)
@click.option(
    "--host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="A name by which it may be called from beyond this machine.",
)
@click.option(
    "--proxy",
    "proxies",
    metavar="NETWORK",
    multiple=True,
    help="Proxies that are believed: X-Forwarded-For and -Proto, and with --gate proxy who asks.",
)
@click.option(
    "--user-header", metavar="NAME", default="X-Forwarded-User", show_default=True, help="With --gate proxy."
)
@click.option(
    "--groups-header",
    metavar="NAME",
    default="X-Forwarded-Groups",
    show_default=True,
    help="With --gate proxy.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
def command(
    session: sessions.CliSession,
    port: int,
    address: str,
    kind: str,
    hosts: tuple[str, ...],
    proxies: tuple[str, ...],
    user_header: str,
    groups_header: str,
    opens: bool,
) -> None:
    """Serve a page about all jobs, and an API, until Ctrl-C.

    Only this machine can reach it, and only who knows the token, which is in server.token in the home and
    in the link that is printed. With --engine kubernetes it is about the jobs of a cluster; with --gate
    kubernetes or proxy it serves a team there, each with their own rights; a proxy has to send what is in
    PACELINE_PROXY_SECRET as X-Paceline-Proxy-Secret. The API is described at /api/v1/openapi.json. Needs the
    extra `web`.
    """
    import logging

    if session.server_option:
        session.without_server("serving", "leave out --server")
    with sessions.needing("a server", "web", "fastapi", "uvicorn", "jinja2"):
        from paceline.surfaces.web import servers
        from paceline.surfaces.web.origins import Proxies

    level = logging.ERROR if session.quiet else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    gate = GateKind(kind)
    _check(session, gate, hosts, proxies)
    trusted_proxies = Proxies.parse(proxies)
    headers = user_header, groups_header
    with (
        servers.listening(address, port, beyond=gate is not GateKind.TOKEN) as listener,
        _site(session, gate, trusted_proxies, headers) as site,
        contextlib.ExitStack() as stack,
    ):
        link = _entrance(session, gate, listener)
        opened = stack.enter_context(servers.opening(session.home.path, link)) if opens else None

        def ready() -> None:
            click.echo(link)
            session.say("Ctrl-C ends the server; jobs go on")
            if opened is not None:
                click.launch(opened.as_uri())

        servers.run(site, listener, ready=ready, named=hosts, proxies=trusted_proxies)


def _check(
    session: sessions.CliSession, gate: GateKind, hosts: tuple[str, ...], proxies: tuple[str, ...]
) -> None:
    """Check that the options go together.

    Raises:
        InvalidInput: they do not.
    """
    if gate is GateKind.TOKEN:
        return
    if not session.on_cluster:
        raise InvalidInput(
            f"--gate {gate} needs a cluster, which decides who may do what", "add --engine kubernetes"
        )
    if not hosts:
        raise InvalidInput(
            f"--gate {gate} needs the host name under which clients reach the server",
            "add it, such as --host paceline.example.com",
        )
    if gate is GateKind.PROXY and not proxies:
        raise InvalidInput(
            "--gate proxy needs the network of the proxy: the server trusts its headers only from there",
            "add it, such as --proxy 10.0.0.0/8",
        )
    if gate is GateKind.PROXY:
        _proxy_secret()


def _proxy_secret() -> str:
    """Return the secret that proves the proxy's identity.

    It comes from the environment, because all users of a machine see command lines.

    Raises:
        InvalidInput: there is no secret, or it is too short or has invalid characters.
    """
    from paceline.surfaces.web import cluster_gates

    secret = os.environ.get(PROXY_SECRET, "").strip()
    least = cluster_gates.LEAST_SECRET_CHARACTERS
    if len(secret) < least or not secret.isascii() or not secret.isprintable():
        raise InvalidInput(
            "--gate proxy needs a secret by which the server recognizes the proxy: "
            f"{PROXY_SECRET} must hold at least {least} printable ASCII characters",
            "set it to what `openssl rand -hex 24` prints, and have the proxy send the same in the header "
            f"{cluster_gates.SECRET_HEADER}",
        )
    return secret


@contextlib.contextmanager
def _site(
    session: sessions.CliSession, gate: GateKind, proxies: Proxies, headers: tuple[str, str]
) -> Iterator[Site]:
    """Give the jobs, the store and the gate that the server works with."""
    if not session.on_cluster:
        from paceline.surfaces.web.sites import LocalSite

        with composition.opened(session.home) as jobs:
            yield LocalSite(jobs, _token_gate(session))
        return

    def made(cluster: Cluster, loop: Loop) -> Gate:
        from paceline.surfaces.web import cluster_gates

        if gate is GateKind.KUBERNETES:
            return cluster_gates.KubernetesGate(cluster, loop, time.monotonic)
        if gate is GateKind.PROXY:
            user, groups = headers
            return cluster_gates.ProxyGate(
                cluster,
                loop,
                time.monotonic,
                proxies=proxies,
                user=user,
                groups=groups,
                secret=_proxy_secret(),
            )
        return _token_gate(session)

    with composition.opened_site(
        session.home,
        made,
        context=session.context_option,
        namespace=session.namespace_option,
        user=session.as_option,
        groups=session.as_group_option,
    ) as site:
        yield site


def _token_gate(session: sessions.CliSession) -> Gate:
    import getpass

    from paceline.surfaces.web import gates

    return gates.TokenGate(gates.token(gates.token_file(session.home.path)), getpass.getuser())


def _entrance(session: sessions.CliSession, gate: GateKind, listener: socket) -> str:
    """Return the address at which a browser logs in."""
    from paceline.surfaces.web import gates, servers

    if gate is not GateKind.TOKEN:
        return servers.url(listener)
    return servers.entrance(listener, gates.token(gates.token_file(session.home.path)))
