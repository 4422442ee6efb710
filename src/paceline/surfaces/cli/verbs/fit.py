"""``paceline fit``: whether all of a job fits at once, on this machine, a cluster, or through a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from paceline.errors import EngineError
from paceline.surfaces.cli import job_files, options, printing, sessions

if TYPE_CHECKING:
    from paceline.model.jobs.job_specs import JobSpec
    from paceline.scheduling.fits import Fit


@options.verb("fit")
@options.file_argument
@click.option(
    "--cluster",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="What `kubectl get nodes,pods,resourcequotas --all-namespaces -o json` printed: a cluster then.",
)
@options.engine_options
@options.output_option("table", "json", "yaml")
def command(session: sessions.CliSession, file: str, cluster: str | None, output: str) -> None:
    """Say whether all replicas of the job in FILE fit at once where jobs run, as it is now.

    On a cluster by node: cores, memory, GPUs and pods that are free, taints, labels, and the placement of
    the job; and the quotas of the namespace. Exits with 1 when they do not fit, and says how many workers
    would, and what blocks the others on which nodes.
    """
    spec = job_files.read(file)[0].spec
    found = _found(session, spec, cluster)
    _show(spec, found, output)
    if not found.fits:
        raise EngineError(f"{spec.name} does not fit", _way_out(spec, found))
    session.suggest(f"paceline lint {file}", f"paceline submit {file}")


def _found(session: sessions.CliSession, spec: JobSpec, file: str | None) -> Fit:
    if file is None:
        with session.jobs() as jobs:
            return jobs.fit(spec)
    from paceline.engines.kubernetes import cluster_states
    from paceline.scheduling import fits
    from paceline.scheduling.node_groups import NodeGroups

    state = cluster_states.load(file, session.namespace_option or "default")
    return fits.fit(spec, NodeGroups(state.nodes), state.quotas)


def _show(spec: JobSpec, found: Fit, output: str) -> None:
    from paceline.surfaces import documents
    from paceline.surfaces.views import fits as views

    if output == "table":
        printing.show(views.fit(spec, found, width=printing.width()))
    else:
        printing.emit(documents.document("Fit", documents.fit(spec, found)), output)


def _way_out(spec: JobSpec, found: Fit) -> str:
    if found.most_workers:
        return f"{found.most_workers} workers would: spec.roles.worker.replicas: {found.most_workers}"
    return "make replicas smaller or fewer, or wait until others have ended"
