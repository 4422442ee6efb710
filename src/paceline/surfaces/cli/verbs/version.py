"""``paceline version``."""

from __future__ import annotations

import click

from paceline.surfaces.cli import options, printing, sessions


@options.verb("version")
@options.output_option("table", "json", "yaml")
def command(session: sessions.CliSession, output: str) -> None:
    """Print the version of Paceline, of Python and of the job files that it reads."""
    if output == "table":
        click.echo(text())
        return
    from paceline.surfaces import documents

    printing.emit(documents.document("Version", _facts()), output)


def text() -> str:
    """Return the version for people."""
    facts = _facts()
    return f"paceline {facts['version']} (Python {facts['python']})"


def _facts() -> dict[str, str]:
    import platform
    from importlib import metadata

    return {"version": metadata.version("paceline"), "python": platform.python_version()}
