"""``paceline convert``: a job of another system as a job file."""

from __future__ import annotations

import click

from paceline.surfaces.cli import options, sessions


@options.verb("convert")
@options.file_argument
def command(session: sessions.Session, file: str) -> None:
    """Print the Kubeflow TFJob in FILE as a job file.

    What a job file has no words for is listed on stderr.
    """
    from paceline.specs import tfjob_files

    found = tfjob_files.convert(file)
    click.echo(found.text, nl=False)
    for each in found.lost:
        session.say(f"not carried over: {each}")
    session.suggest(f"paceline convert {file} > job.yaml", "paceline lint job.yaml")
