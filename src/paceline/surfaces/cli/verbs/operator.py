"""``paceline operator``: look after the jobs of a Kubernetes cluster."""

from __future__ import annotations

import click

from paceline.surfaces.cli import options, sessions


@options.verb("operator")
@click.option("--context", help="The context of the kubeconfig; else the current one, or the cluster around.")
@click.option("-n", "--namespace", help="Look after this namespace alone; no job waits for room then.")
@click.option("--agent-image", metavar="IMAGE", help="The image out of which agents are brought.")
def command(
    session: sessions.Session, context: str | None, namespace: str | None, agent_image: str | None
) -> None:
    """Look after the TrainingJobs of a Kubernetes cluster until it is ended.

    Of several only one acts at a time; when it ends another goes on, and nothing is lost or done twice.
    The cluster has to know what a TrainingJob is: `paceline schema --crd | kubectl apply -f -`.
    """
    import asyncio
    import logging

    from paceline.rendering.surroundings import AGENT_IMAGE
    from paceline.surfaces import operator

    level = logging.WARNING if session.quiet else logging.INFO
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    # The client logs every request.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    asyncio.run(operator.run(context=context, namespace=namespace, agent_image=agent_image or AGENT_IMAGE))
