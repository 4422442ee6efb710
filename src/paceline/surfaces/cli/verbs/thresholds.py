"""``paceline thresholds``: lists the numbers that rules compare with."""

from __future__ import annotations

import click

from paceline.surfaces.cli import options, printing, sessions


@options.verb("thresholds")
@click.argument("name", required=False)
@options.output_option("table", "json", "yaml")
def command(session: sessions.CliSession, name: str | None, output: str) -> None:
    """Say what the number NAME of a rule means, such as links.full; without one, list all.

    A site sets numbers in the file thresholds.yaml of its state folder (docs/causes/thresholds.md). All that
    reads this state folder judges by them: the verbs, the server and its pages, autoscaling.
    """
    from paceline.services.observing import site_thresholds
    from paceline.surfaces import documents, site_numbers
    from paceline.surfaces.views import site_numbers as views

    numbers = site_numbers.numbers(site_thresholds.load_thresholds(session.home.path))
    shown = numbers if name is None else (site_numbers.find(numbers, name),)
    if output != "table":
        items = [documents.plain(number) for number in shown]
        printing.emit(documents.document("ThresholdList", {"items": items}), output)
    elif name is None:
        printing.show(views.table(shown, width=printing.width()))
    else:
        printing.show(views.page(shown[0], width=printing.width()))
