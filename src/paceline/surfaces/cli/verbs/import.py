"""``paceline import``: makes a job from the file of a recording."""

from __future__ import annotations

from pathlib import Path

import click

from paceline.surfaces.cli import options, sessions


@options.verb("import")
@options.engine_options
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--name", metavar="NAME", help="Name the job so; else as in the file, with a number if taken.")
def command(session: sessions.CliSession, file: str, name: str | None) -> None:
    """Keep the recording in FILE (`paceline record`) as a job that has ended.

    `list`, `why`, `top`, `report`, `logs` and `suggest` know it then as they know others. It cannot be
    resumed: checkpoints are not in a recording. Needs pyarrow, as the extra `training` has it.
    """
    from paceline.surfaces import job_names

    if name is not None:
        job_names.check(name)
    with session.jobs() as jobs:
        run = jobs.import_file(Path(file), name=name)
    click.echo(f"{run.name} imported")
    session.suggest(
        f"paceline why {run.name}", f"paceline describe {run.name}", f"paceline report {run.name}"
    )
