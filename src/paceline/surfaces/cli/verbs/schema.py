"""``paceline schema``: prints the schema with which editors check job files."""

from __future__ import annotations

import json

import click

from paceline.surfaces.cli import options, printing, sessions


@options.verb("schema")
@click.option("--crd", is_flag=True, help="As the CustomResourceDefinition that Kubernetes takes.")
def command(session: sessions.CliSession, crd: bool) -> None:
    """Print the JSON Schema of job files, for editors that check and complete YAML, or for Kubernetes."""
    from paceline import specs

    if crd:
        from paceline.specs.job_file import custom_resources

        printing.emit(custom_resources.definition(), "yaml")
        session.say("paceline schema --crd | kubectl apply -f -")
        return
    click.echo(json.dumps(specs.json_schema(), indent=2, ensure_ascii=False))
    session.say("editors: put '# yaml-language-server: $schema=schema.json' at the top of a job file")
