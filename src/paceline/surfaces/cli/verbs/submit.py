"""``paceline submit``: starts a job and returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from paceline.errors import EngineError
from paceline.surfaces import composition
from paceline.surfaces.cli import job_files, options, printing, sessions

if TYPE_CHECKING:
    from pathlib import Path

    from paceline.model.jobs.job_specs import JobSpec
    from paceline.model.jobs.runs import Run
    from paceline.specs import JobFile

name_option = click.option(
    "--name", help="Instead of the name in the file; a number is added when it is taken."
)


@options.verb("submit")
@options.engine_options
@options.file_argument
@name_option
@options.dry_run_option
@options.output_option("table", "name", "json", "yaml")
def command(session: sessions.CliSession, file: str, name: str | None, dry_run: bool, output: str) -> None:
    """Submit the job in FILE and return at once; '-' reads it from stdin.

    The job is looked after by a process of its own and goes on when this terminal closes.
    """
    if dry_run:
        show_plan(session, file, name, output)
        return
    from paceline.surfaces import documents

    with sessions.late_interrupts():
        run = submit(session, file, name)
    if output == "name":
        click.echo(run.name)
    elif output == "table":
        click.echo(f"{run.name} submitted")
    else:
        with session.jobs() as jobs:
            printing.emit(
                documents.run_document(
                    run,
                    jobs.replicas(run.name),
                    lost=jobs.is_lost(run),
                    supervisor_pids=jobs.supervisor_pids(run),
                ),
                output,
            )
    session.suggest(f"paceline top {run.name}", f"paceline logs -f {run.name}", f"paceline wait {run.name}")


def submit(session: sessions.CliSession, file: str, name: str | None) -> Run:
    """Submit a job file; print a message if the job did not get the requested name."""
    from paceline.surfaces import job_names

    job_file, base = job_files.read(file)
    if name is not None:
        job_names.check(name)
    _say_missing(session, job_file, base)
    with session.jobs() as jobs:
        run = jobs.submit(job_file.spec, source=job_file.text, base=base, name=name)
    wanted = name or job_file.spec.name
    if run.name != wanted:
        session.say(f"there is a job {wanted} already; this one is {run.name}")
    return run


def _say_missing(session: sessions.CliSession, job_file: JobFile, base: Path) -> None:
    """Print which files of the commands are missing; the job is submitted all the same."""
    for each in job_files.missing_files(job_file, base) if session.is_here else ():
        where = f"{each.position}: " if each.position else ""
        session.say(f"{where}{each.code} {each.severity}: {each.message}")


def show_plan(session: sessions.CliSession, file: str, name: str | None, output: str) -> None:
    """Print what a submit would do."""
    from paceline.services.local import dry_runs
    from paceline.surfaces import documents, job_names
    from paceline.surfaces.views import plans as plan_views

    job_file, base = job_files.read(file)
    if name is not None:
        job_names.check(name)
    _say_missing(session, job_file, base)
    session.without_server("--dry-run of a submit", f"paceline lint {file} checks it here")
    if session.on_cluster:
        _show_rehearsal(session, job_file.spec, base, name, output)
        return
    with composition.opened(session.home) as jobs:
        plan = dry_runs.plan(jobs, job_file.spec, base=base, name=name)
    if output == "table":
        printing.show(plan_views.plan(plan))
    elif output == "name":
        click.echo(plan.name)
    else:
        printing.emit(documents.document("JobPlan", documents.plain(plan)), output)


def _show_rehearsal(
    session: sessions.CliSession, spec: JobSpec, base: Path, name: str | None, output: str
) -> None:
    """Print what a submit to a cluster would do, and whether all of the job would fit now."""
    from paceline.surfaces import documents
    from paceline.surfaces.views import fits as fit_views

    fit, unknown = None, ""
    with session.cluster() as jobs:
        run = jobs.rehearse(spec, base=base, name=name)
        try:
            fit = jobs.fit(spec)
        except EngineError as error:  # A user who may submit jobs may lack the right to list nodes.
            unknown = error.message
    if output == "name":
        click.echo(run.name)
    elif output == "table":
        click.echo(f"{run.name} would be submitted to the namespace {jobs.namespace}")
        if fit is None:
            click.echo(f"whether it fits is not known: {unknown}")
        else:
            printing.show(fit_views.fit(spec, fit, width=printing.width()))
    else:
        fit_document = None if fit is None else documents.fit(spec, fit)
        body = {"name": run.name, "namespace": jobs.namespace, "fit": fit_document}
        printing.emit(documents.document("JobPlan", body), output)
