"""``paceline predict``: what a change of the job file would bring."""

from __future__ import annotations

import click

from paceline.surfaces.cli import options, printing, sessions


@options.verb("predict")
@options.engine_options
@options.name_argument
@click.option(
    "--set",
    "assignments",
    metavar="FIELD=VALUE",
    multiple=True,
    required=True,
    help="A change of the job file, such as ps.replicas=4 or worker.cpu=2; several make one change.",
)
@options.output_option("table", "json", "yaml")
def command(session: sessions.Session, name: str, assignments: tuple[str, ...], output: str) -> None:
    """Say how fast the job NAME would train with another layout, from what was measured of it.

    The number and the cpu of replicas, hosts, placement, partitioning and steps in flight, with an interval:
    of nine in ten such changes the speed should lie in it. What binds now and then, and what a million
    examples take of the cores that are asked for. Needs the extra `tuning`. NAME may be the file of a
    recording (`paceline record`).
    """
    from paceline.services import recordings
    from paceline.specs import assignments as changes

    asked = [changes.change(each) for each in assignments]
    recording = sessions.recording(name)
    if recording is None:
        with session.jobs() as jobs:
            recording = recordings.whole(jobs, name, thinned=True)
    with sessions.needing("a prediction", "tuning", "scipy"):
        from paceline.services import predictions
    found = predictions.forecast(recording, asked)
    if output == "table":
        from paceline.surfaces.views import forecasts

        printing.show(forecasts.page(found, width=printing.width()))
    else:
        from paceline.surfaces import documents

        printing.emit(documents.document("Forecast", documents.plain(found)), output)
    session.suggest(f"paceline why {name}")
