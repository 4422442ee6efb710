"""``paceline doctor``: checks what this machine, or a cluster, lets Paceline do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.errors import InvalidInput, PacelineError
from paceline.surfaces.cli import job_files, options, printing, sessions

if TYPE_CHECKING:
    from paceline.model.explanations.checkups import Check


@options.verb("doctor")
@options.engine_options
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(dir_okay=True, allow_dash=True))
@click.option(
    "--script",
    type=click.Path(path_type=Path),
    help="Say what would be seen of a training script, by its text.",
)
@click.option(
    "--python",
    default="python",
    show_default=True,
    metavar="PROGRAM",
    help="The Python that runs the script.",
)
@options.output_option("table", "json", "yaml")
def command(
    session: sessions.CliSession, file: str | None, script: Path | None, python: str, output: str
) -> None:
    """Check Python, limits, emulated hosts, TensorFlow, room, the store and GPUs.

    With --engine kubernetes: the API server, what it knows of TrainingJobs, the operator, your rights, the
    nodes, and whether their kubelets give exclusive cores; with FILE, to the job in it. With --script: what
    would be seen of a script that nothing of Paceline is in, without running it.

    A thing that is missing costs what the line says; only one that failed keeps Paceline from working.
    """
    from paceline.model.explanations.checkups import CheckState
    from paceline.surfaces import documents
    from paceline.surfaces.views import checkups as views

    session.without_server("a check of a machine", "run it there")
    done = []
    with _checks(session, file, script, python) as checks:
        for check in checks:
            done.append(check)
            if output == "table":
                printing.show(views.line(check, width=printing.width()))
    if output != "table":
        items = [documents.plain(check) for check in done]
        printing.emit(documents.document("CheckList", {"items": items}), output)
    failed = [check.name for check in done if check.state is CheckState.FAILED]
    if failed:
        raise PacelineError(f"Paceline cannot work here: {', '.join(failed)}")
    session.suggest("paceline init job.yaml", "paceline run job.yaml")


@contextlib.contextmanager
def _checks(
    session: sessions.CliSession, file: str | None, script: Path | None, python: str
) -> Iterator[Iterator[Check]]:
    if script is not None:
        if session.on_cluster or file is not None:
            raise InvalidInput(
                "--script looks at a file of this machine", f"paceline doctor --script {script}"
            )
        from paceline.services.local import checkups, script_checkups

        yield script_checkups.checks(script, python, checkups.output_of)
        return
    if not session.on_cluster:
        if file is not None:
            raise InvalidInput(
                "a job is checked against a cluster", "add --engine kubernetes, or: paceline lint"
            )
        from paceline.services.local import checkups

        yield checkups.checks(session.home)
        return
    from paceline.services.cluster import checkups as cluster_checkups

    spec = None if file is None else job_files.read(file)[0].spec
    with session.cluster() as jobs:
        yield cluster_checkups.checks(
            jobs.cluster, jobs.namespace, spec, now=jobs.clock(), run=jobs.runner.run
        )
