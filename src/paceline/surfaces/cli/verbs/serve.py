"""``paceline serve``: the page and the API."""

from __future__ import annotations

import click

from paceline.surfaces import composition
from paceline.surfaces.cli import options, sessions


@options.verb("serve")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8470, show_default=True, help="0 takes a free one."
)
@click.option(
    "--address", default="127.0.0.1", show_default=True, help="Of this machine's loopback interface."
)
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
def command(session: sessions.Session, port: int, address: str, opens: bool) -> None:
    """Serve a page about all jobs, and an API, until Ctrl-C.

    Only this machine can reach it, and only who knows the token, which is in server.token in the home and
    in the link that is printed. The API is described at /api/v1/openapi.json. Needs the extra `web`.
    """
    import getpass
    import logging

    with sessions.needing("a server", "web", "fastapi", "uvicorn", "jinja2"):
        from paceline.services.digests import Keeper
        from paceline.surfaces.web import gates, servers
        from paceline.surfaces.web.sites import LocalSite

    level = logging.ERROR if session.quiet else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    token = gates.token(gates.token_file(session.home.path))
    with composition.opened(session.home) as jobs, servers.listening(address, port) as listener:
        link = servers.entrance(listener, token)

        def ready() -> None:
            click.echo(link)
            session.say("Ctrl-C ends the server; jobs go on")
            if opens:
                click.launch(link)

        site = LocalSite(jobs, gates.TokenGate(token, getpass.getuser()))
        servers.run(site, listener, keeper=Keeper(jobs, site.lookout(None)), ready=ready)
