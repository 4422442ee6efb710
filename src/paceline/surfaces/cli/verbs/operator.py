"""``paceline operator``: runs the operator, which supervises the jobs of a Kubernetes cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from paceline.surfaces.cli import options, sessions

if TYPE_CHECKING:
    from paceline.surfaces.operator import Keeping


@options.verb("operator")
@options.cluster_options
@click.option(
    "--agent-image",
    metavar="IMAGE",
    help="The image out of which agents are brought; none: the images of jobs have it in /paceline.",
)
@click.option(
    "--agent-files",
    metavar="IMAGE",
    help="An image of the agent's files alone. Pods mount it where the cluster has image volumes and the"
    " command starts Python; without it, or with none, an init container copies the agent.",
)
@options.agent_clients_option
@click.option(
    "--keep",
    type=options.DURATION,
    default="30d",
    show_default=True,
    metavar="DURATION",
    help="How long samples and output are kept after the end of a job that was deleted.",
)
@click.option(
    "--listen",
    type=options.ADDRESS,
    metavar="[HOST]:PORT",
    help="Where it answers /healthz and /metrics; without a host on all addresses.",
)
@click.option(
    "--namespaces",
    metavar="NAMESPACE,...",
    help="The only ones that it looks after, with rights in these and no others.",
)
@click.option(
    "--exporters",
    metavar="NAMESPACE",
    help="Where DCGM's exporters are, which are believed nowhere else; none: they are not asked. By default"
    " gpu-operator, and none where it looks after some namespaces.",
)
def command(
    session: sessions.CliSession,
    agent_image: str | None,
    agent_files: str | None,
    agent_clients: tuple[str, ...],
    keep: float,
    listen: tuple[str | None, int] | None,
    namespaces: str | None,
    exporters: str | None,
) -> None:
    """Look after the TrainingJobs of a Kubernetes cluster until it is ended.

    Of several operators only one acts at a time; when it ends another goes on, and nothing is lost or done
    twice. With --namespace or --namespaces it looks after those alone, and no job waits for room: that needs
    a look at all nodes and pods.
    Samples, steps and output of replicas are kept when a place for them is named: --home or $PACELINE_HOME,
    and --store or $PACELINE_STORE; `--store none` keeps nothing.
    The cluster has to know what a TrainingJob is: `paceline schema --crd | kubectl apply -f -`.
    """
    import asyncio
    import logging

    from paceline.rendering import surroundings
    from paceline.surfaces import operator

    level = logging.WARNING if session.quiet else logging.INFO
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    # httpx2 logs every request of the client; alembic, which creates the store's tables, logs its plugins.
    for name in ("httpx2", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    only = _namespaces(session.namespace_option, namespaces)
    asyncio.run(
        operator.run(
            context=session.context_option,
            namespaces=only,
            exporters=_exporters(exporters, is_all=only is None),
            agent=surroundings.AgentSetup(
                image=surroundings.agent_image(agent_image),
                files=None if agent_files == "none" else agent_files,
                clients=agent_clients,
            ),
            keeping=_keeping(session, keep),
            listen=listen,
        )
    )


def _namespaces(one: str | None, several: str | None) -> list[str] | None:
    """Return the namespaces that the operator is restricted to; None: all namespaces."""
    if several is None:
        return None if one is None else [one]
    if one is not None:
        raise click.UsageError("--namespace names one, --namespaces several: give one of the two")
    names = list(dict.fromkeys(name.strip() for name in several.split(",") if name.strip()))
    if not names:
        raise click.UsageError("--namespaces names none")
    return names


def _exporters(named: str | None, *, is_all: bool) -> str | None:
    from paceline.sources import gpus

    if named == "none":
        return None
    return named or (gpus.NAMESPACE if is_all else None)


def _keeping(session: sessions.CliSession, seconds: float) -> Keeping | None:
    """Return where to store samples and output of replicas; None: no place is named."""
    from paceline.surfaces.operator import Keeping

    store = session.store_option or os.environ.get("PACELINE_STORE")
    if store == "none" or not (store or session.home_option or os.environ.get("PACELINE_HOME")):
        return None
    return Keeping(store_url=session.home.store_url, home=session.home.path, seconds=seconds)
