"""``paceline convert``: converts a job of another system to a job file."""

from __future__ import annotations

import sys

import click

from paceline.surfaces.cli import options, sessions


@options.verb("convert")
@options.file_argument
def command(session: sessions.CliSession, file: str) -> None:
    """Print the Kubeflow TFJob in FILE as a job file; '-' is stdin.

    What a job file has no words for is listed on stderr.
    """
    from paceline.specs.tfjob import tfjob_files
    from paceline.specs.yaml_text import problems

    if file == "-":
        found = tfjob_files.convert_text(sys.stdin.buffer.read(), "stdin")
    else:
        found = tfjob_files.convert(file)
    click.echo(found.text, nl=False)
    for each in found.lost:
        session.say(problems.visible(f"not carried over: {each}"))
    session.suggest(f"paceline convert {file} > job.yaml", "paceline lint job.yaml")
