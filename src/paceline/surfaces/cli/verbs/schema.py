"""``paceline schema``: what editors check job files with."""

from __future__ import annotations

import json

import click

from paceline.surfaces.cli import options, sessions


@options.verb("schema")
def command(session: sessions.Session) -> None:
    """Print the JSON Schema of job files, for editors that check and complete YAML."""
    from paceline import specs

    click.echo(json.dumps(specs.json_schema(), indent=2, ensure_ascii=False))
    session.say("editors: put '# yaml-language-server: $schema=schema.json' at the top of a job file")
