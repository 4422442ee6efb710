"""``paceline suggest``: suggests a layout for the next run from past runs of the same model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from paceline.surfaces.cli import job_files, objectives, options, printing, sessions

if TYPE_CHECKING:
    from paceline.model.studies.tunings import Objective


@options.verb("suggest")
@options.engine_options
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@objectives.options
@options.output_option("table", "json", "yaml")
def command(session: sessions.CliSession, file: str, objective: Objective, output: str) -> None:
    """Say how the job in FILE should be laid out, from past runs of the same model.

    Of the newest runs with the same command and shape of the model the best one for what is asked, and its
    settings as a diff of FILE: replicas, cores, placement, training. And which run does less with its cores
    than those before it with the same settings.
    """
    from paceline.services.studying import past_runs
    from paceline.surfaces.diffs import Diffs

    job, _ = job_files.read(file)
    with session.jobs() as jobs:
        found = past_runs.suggestion(jobs, job, objective)
    diffs = Diffs(source=job.text, spec=job.spec)
    if output == "table":
        from paceline.surfaces.views import memories as views

        printing.show(views.page(job.spec.name, found, diffs=diffs, width=printing.width()))
    else:
        from paceline.surfaces import documents

        body = {**documents.plain(found), "diff": diffs.diff(found.changes)}
        printing.emit(documents.document("Suggestion", body), output)
    session.suggest(f"paceline tune {file} --trials 6", f"paceline run {file}")
