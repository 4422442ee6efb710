"""``paceline operator``: look after the jobs of a Kubernetes cluster."""

from __future__ import annotations

import click

from paceline.surfaces.cli import options, sessions


@options.verb("operator")
@options.cluster_options
@click.option(
    "--agent-image",
    metavar="IMAGE",
    help="The image out of which agents are brought; none: the images of jobs have it in /paceline.",
)
def command(session: sessions.Session, agent_image: str | None) -> None:
    """Look after the TrainingJobs of a Kubernetes cluster until it is ended.

    Of several operators only one acts at a time; when it ends another goes on, and nothing is lost or done
    twice. With --namespace it looks after that one alone, and no job waits for room: that needs a look at
    all nodes and pods.
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
    asyncio.run(
        operator.run(
            context=session.context_option,
            namespace=session.namespace_option,
            agent_image=None if agent_image == "none" else agent_image or AGENT_IMAGE,
        )
    )
