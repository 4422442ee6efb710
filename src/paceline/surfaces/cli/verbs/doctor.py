"""``paceline doctor``: what this machine, or a cluster, lets Paceline do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from paceline.errors import InvalidInput, PacelineError
from paceline.surfaces.cli import job_files, options, printing, sessions

if TYPE_CHECKING:
    from paceline.services.checkups import Check


@options.verb("doctor")
@options.engine_options
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(dir_okay=True, allow_dash=True))
@options.output_option("table", "json", "yaml")
def command(session: sessions.Session, file: str | None, output: str) -> None:
    """Check Python, limits, emulated hosts, TensorFlow, room, the store and GPUs.

    With --engine kubernetes: the API server, what it knows of TrainingJobs, the operator, your rights, the
    nodes, and whether their kubelets give exclusive cores; with FILE, to the job in it.

    A thing that is missing costs what the line says; only one that failed keeps Paceline from working.
    """
    from paceline.services import checkups
    from paceline.surfaces import documents
    from paceline.surfaces.views import checkups as views

    session.without_server("a check of a machine", "run it there")
    done = []
    with _checks(session, file) as checks:
        for check in checks:
            done.append(check)
            if output == "table":
                printing.show(views.line(check, width=printing.width()))
    if output != "table":
        items = [documents.plain(check) for check in done]
        printing.emit(documents.document("CheckList", {"items": items}), output)
    failed = [check.name for check in done if check.state is checkups.State.FAILED]
    if failed:
        raise PacelineError(f"Paceline cannot work here: {', '.join(failed)}")
    session.suggest("paceline init job.yaml", "paceline run job.yaml")


@contextlib.contextmanager
def _checks(session: sessions.Session, file: str | None) -> Iterator[Iterator[Check]]:
    if not session.on_cluster:
        if file is not None:
            raise InvalidInput(
                "a job is checked against a cluster", "add --engine kubernetes, or: paceline lint"
            )
        from paceline.services import checkups

        yield checkups.checks(session.home)
        return
    from paceline.services import cluster_checkups

    spec = None if file is None else job_files.read(file)[0].spec
    with session.cluster() as jobs:
        yield cluster_checkups.checks(
            jobs.cluster, jobs.namespace, spec, now=jobs.clock(), run=jobs.runner.run
        )
