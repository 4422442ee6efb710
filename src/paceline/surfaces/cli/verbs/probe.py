"""``paceline probe``: determines by experiment which part of a running job limits its speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from paceline.surfaces.cli import options, printing, sessions

if TYPE_CHECKING:
    from paceline.model.measures.probes import Probe


@options.verb("probe")
@options.engine_options
@options.name_argument
@click.option(
    "--seconds", type=click.FloatRange(min=30, max=3600), default=120.0, show_default=True, metavar="N",
    help="How long it may take; it ends earlier when all that matters is known.",
)  # fmt: skip
@click.option(
    "--cost", type=click.FloatRange(min=0.1, max=50), default=5.0, show_default=True, metavar="PERCENT",
    help="What it may cost of what the job does in that time.",
)  # fmt: skip
@click.option("--last", is_flag=True, help="Show what the last probe has found, and cut nothing.")
@options.dry_run_option
@options.output_option("table", "json", "yaml")
def command(
    session: sessions.CliSession,
    name: str,
    seconds: float,
    cost: float,
    last: bool,
    dry_run: bool,
    output: str,
) -> None:
    """Ask the running job NAME what makes it as slow as it is: cores or links, and whose.

    One part after the other has less for some seconds, and what that costs is measured: nothing, where the
    part does not bind. All comes back by itself, however the probe ends. No replica restarts.
    """
    from paceline.services.studying import probes
    from paceline.surfaces import documents
    from paceline.surfaces.views import probes as views

    with session.jobs() as jobs:
        if last:
            probe = probes.newest(jobs, name)
        else:
            if dry_run:
                lines = probes.Prober.of(jobs, seconds=seconds, most_share=cost / 100).plan(name)
                _show_plan(name, seconds, cost / 100, lines, output)
                return
            session.say(
                f"{name} is probed for at most {seconds:g} s, at the cost of at most {cost:g} % of that time"
            )
            probe = jobs.probe(
                name,
                seconds=seconds,
                most_share=cost / 100,
                tell=lambda running, doing: _tell(session, running, doing),
            )
    if output in ("json", "yaml"):
        printing.emit(documents.probe(probe), output)
        return
    printing.show(views.page(probe, printing.width()))
    session.suggest(f"paceline why {name}", f"paceline trace {name}")


def _show_plan(name: str, most_seconds: float, most_share: float, lines: Sequence[str], output: str) -> None:
    from paceline.surfaces import documents

    if output == "table":
        click.echo("\n".join(lines))
    else:
        body = {"name": name, "most_seconds": most_seconds, "most_share": most_share, "lines": list(lines)}
        printing.emit(documents.document("ProbePlan", body), output)


def _tell(session: sessions.CliSession, probe: Probe, doing: str) -> None:
    if doing:
        session.say(f"{len(probe.cuts)} cuts made; {doing}")
