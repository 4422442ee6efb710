"""``paceline render``: prints a job as Kubernetes objects."""

from __future__ import annotations

import click

from paceline.surfaces.cli import job_files, options, printing, sessions

#: As in `rendering.manifests`; written out, so that the help need not load it.
TARGETS = ("pods", "tfjob", "vcjob", "kueue")


@options.verb("render")
@options.file_argument
@click.option(
    "--to",
    "target",
    type=click.Choice(TARGETS),
    default="pods",
    show_default=True,
    help="Pods as they are, a TFJob, a Volcano job, or pods for Kueue.",
)
@click.option("--queue", metavar="NAME", help="The queue of Volcano or Kueue, in place of that of the job.")
@click.option(
    "--agent-image",
    metavar="IMAGE",
    help="The image out of which the agent is brought; none: that of the job has it in /paceline.",
)
@click.option(
    "--agent-files",
    metavar="IMAGE",
    help="An image of the agent's files alone, which pods mount if the command starts Python.",
)
@options.agent_clients_option
@click.option("-n", "--namespace", default="default", show_default=True, help="Where they are to live.")
@options.output_option("yaml", "json")
def command(
    session: sessions.CliSession,
    file: str,
    target: str,
    queue: str | None,
    agent_image: str | None,
    agent_files: str | None,
    agent_clients: tuple[str, ...],
    namespace: str,
    output: str,
) -> None:
    """Print the job in FILE as objects of Kubernetes; nothing is sent anywhere.

    Pods are those of the first attempt of each replica, with a headless service that gives them names. The
    config map is for their agents, which an init container brings into any image, or a volume into one with
    Python.
    """
    from paceline.rendering import manifests, surroundings
    from paceline.services import packed_folders

    job, base = job_files.read(file)
    agent = surroundings.AgentSetup(
        image=surroundings.agent_image(agent_image), files=agent_files, clients=agent_clients
    )
    where = surroundings.Surroundings(namespace=namespace, agent=agent)
    packed = packed_folders.of_job(job.spec, base)
    spec = job.spec if queue is None else job.spec.with_queue(queue)
    objects = manifests.rendered(spec, manifests.Target(target), where, packed=packed)
    printing.emit_all(objects, output)
    if packed is not None:
        # Plain `apply` copies an object into an annotation, which has no room for a folder.
        session.say("the folder of code is in a config map: kubectl apply --server-side -f -")
    session.suggest(f"paceline render {file} | kubectl apply -f -", f"paceline lint {file}")
