"""``paceline predict``: predicts the effect of a change to the job file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from paceline.errors import InvalidInput
from paceline.surfaces.cli import options, printing, sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paceline.model.explanations.causes import FieldChange
    from paceline.modelling.elasticities import Compared
    from paceline.modelling.forecasts import Forecast
    from paceline.services.studying.predictions import SpeedModel


@options.verb("predict")
@options.engine_options
@options.name_argument
@click.option(
    "--set",
    "assignments",
    metavar="FIELD=VALUE",
    multiple=True,
    help="A change of the job file, such as ps.replicas=4 or worker.cpu=2; several make one change.",
)
@click.option(
    "--sweep",
    metavar="FIELD=VALUES",
    help="Several values of a field, one after the other: worker.replicas=1..16, or ps.cpu=500m,1,2.",
)
@click.option(
    "--autoscale",
    is_flag=True,
    help="What autoscaling would do, round by round, as the job file or --set autoscale... asks for it.",
)
@options.output_option("table", "html", "json", "yaml")
def command(
    session: sessions.CliSession,
    name: str,
    assignments: tuple[str, ...],
    sweep: str | None,
    autoscale: bool,
    output: str,
) -> None:
    """Say how fast the job NAME would train with another layout, from what was measured of it.

    The number and the cpu of replicas, hosts, placement, partitioning and steps in flight, with an interval:
    of ten such changes the speed of nine should lie in it. What binds now and then, and what a million
    examples take of the cores that are asked for; of several values, from which on more bring little. Of
    these `-o html` is a page with plots (`> sweep.html`), which needs the extra `report`. Of a script without
    the training library also unique_ids and lazy-adam, and where cures would have its variables. NAME
    may be the file of a recording (`paceline record`).
    """
    from paceline.specs.edits import assignments as changes

    asked = [changes.change(assignment) for assignment in assignments]
    swept = changes.several(sweep) if sweep else ()
    if not asked and not swept and not autoscale:
        raise InvalidInput(
            "no change is named whose effect to predict",
            "add one: --set ps.replicas=4, or --sweep worker.replicas=1..8",
        )
    recording = session.measured(name)
    from paceline.services.studying import predictions

    model = predictions.model(recording)
    if autoscale and (swept or output == "html"):
        raise InvalidInput(
            "--autoscale cannot be combined with --sweep or -o html", "leave those out, or use -o json"
        )
    if autoscale:
        _show_rounds(model, asked, output)
    elif swept:
        forecasts = [predictions.forecast(model, [*asked, change]) for change in swept]
        values = [str(change.value) for change in swept]
        if output == "html":
            _show_page(session, recording.run.name, str(sweep).partition("=")[0], values, forecasts)
        else:
            _show_all(values, forecasts, output)
    elif output == "html":
        raise InvalidInput(
            "-o html shows only a sweep, and no --sweep is given", "add --sweep worker.replicas=1..8"
        )
    else:
        _show(predictions.forecast(model, asked), model.probed, output)
    session.suggest(f"paceline why {name}")


def _show(found: Forecast, probed: Sequence[Compared], output: str) -> None:
    if output == "table":
        from paceline.surfaces.views import forecasts

        printing.show(forecasts.page(found, width=printing.width()))
        if probed:
            printing.show(forecasts.probed(probed, width=printing.width()))
    else:
        from paceline.surfaces import documents

        printing.emit(documents.forecast(found, probed), output)


def _show_rounds(model: SpeedModel, asked: Sequence[FieldChange], output: str) -> None:
    from paceline import specs
    from paceline.services.studying import autoscale_forecasts
    from paceline.specs.edits import edits

    spec = specs.parse_job(edits.edited(model.job.text, asked)).spec
    found = autoscale_forecasts.rounds(model, spec)
    if output == "table":
        from paceline.surfaces.views import forecasts

        printing.show(forecasts.rounds(model.measured.examples_per_second, found, width=printing.width()))
    else:
        from paceline.surfaces import documents

        items = [documents.autoscale_round(each) for each in found]
        printing.emit(documents.document("AutoscaleForecast", {"rounds": items}), output)


def _show_page(
    session: sessions.CliSession, job: str, field: str, values: Sequence[str], found: Sequence[Forecast]
) -> None:
    with sessions.needing("a page", "report", "jinja2"):
        from paceline.surfaces.reports import sweeps
    click.echo(sweeps.page(job, field, values, found, say=session.addressed))


def _show_all(values: Sequence[str], found: Sequence[Forecast], output: str) -> None:
    if output == "table":
        from paceline.surfaces.views import forecasts

        printing.show(forecasts.sweep(values, found, width=printing.width()))
    else:
        from paceline.surfaces import documents

        items = [{"value": value, **documents.plain(each)} for value, each in zip(values, found, strict=True)]
        printing.emit(documents.document("ForecastList", {"items": items}), output)
