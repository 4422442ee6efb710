"""``paceline explain``: explains the code of a finding or cause."""

from __future__ import annotations

import click

from paceline.surfaces.cli import options, printing, sessions


@options.verb("explain")
@click.argument("code", metavar="[CODE]", required=False)
@options.output_option("table", "json", "yaml")
def command(session: sessions.CliSession, code: str | None, output: str) -> None:
    """Say what the CODE of a finding or cause is about, such as JOB101 or LIFE202; without one, list all.

    Why it is a problem, what to do, and what that may cost. The name of a cause will do, too.
    """
    from paceline.surfaces import documents, explanations
    from paceline.surfaces.views import explanations as views

    entries = explanations.entries() if code is None else (explanations.find(code),)
    if output != "table":
        items = [documents.plain(entry) for entry in entries]
        printing.emit(documents.document("CodeList", {"items": items}), output)
    elif code is None:
        printing.show(views.table(entries, width=printing.width()))
    else:
        printing.show(views.page(entries[0], width=printing.width()))
