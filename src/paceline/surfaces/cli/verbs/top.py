"""``paceline top``: who carries the load, and how far the job is."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import click

from paceline.errors import InvalidInput, NotFound
from paceline.surfaces.cli import options, printing, sessions

if TYPE_CHECKING:
    from paceline.services.life_cycles import LifeCycle


@options.verb("top")
@options.engine_options
@click.argument("name", metavar="[NAME]", required=False, shell_complete=options.complete_job_names)
@click.option("--once", is_flag=True, help="Print it once; so it is without a terminal, too.")
@click.option(
    "--interval",
    type=options.DURATION,
    default="2s",
    show_default=True,
    metavar="DURATION",
    help="How often to look.",
)
@options.output_option("table", "wide", "json", "yaml")
def command(session: sessions.Session, name: str | None, once: bool, interval: float, output: str) -> None:
    """Watch the load, the imbalance and the progress of a job.

    Without NAME: the latest job that has not ended, or the only one. Of a job that has ended it shows means
    over the whole run. Ctrl-C ends the watching, not the job. On a cluster figures are those that the
    operator has kept, when its --store is named; else the agents of the job's pods are asked. NAME may be
    the file of a recording (`paceline record`).
    """  # fmt: skip
    from paceline.surfaces import documents
    from paceline.surfaces.cli.verbs import get
    from paceline.surfaces.views import tops

    recording = None if name is None else sessions.recording(name)
    if recording is not None:
        from paceline.services import snapshots

        snapshot = snapshots.of(recording)
        if output in ("json", "yaml"):
            printing.emit(documents.snapshot(snapshot), output)
        else:
            printing.show(tops.frame(snapshot, width=printing.width(wide=output == "wide")))
            session.suggest(f"paceline why {name}", f"paceline report {name}")
        return
    with session.jobs() as jobs:
        name = name or latest(jobs)
        snapshot = jobs.snapshot(name)
        if output in ("json", "yaml"):
            printing.emit(documents.snapshot(snapshot), output)
            return
        if not once and printing.is_terminal() and not snapshot.run.phase.is_final:
            terminal = printing.console()
            with contextlib.suppress(KeyboardInterrupt), printing.screen(whole=True) as screen:
                while not snapshot.run.phase.is_final:
                    screen.show(tops.frame(snapshot, width=terminal.width, height=terminal.height))
                    time.sleep(max(0.2, interval))
                    snapshot = jobs.snapshot(name)
        printing.show(tops.frame(snapshot, width=printing.width(wide=output == "wide")))
        if session.on_cluster and all(replica.measured_at is None for replica in snapshot.replicas):
            session.say(
                "nothing was measured: agents answer while their pods run, operators keep it (--store)"
            )
        get.suggest(session, snapshot.run, lost=snapshot.lost)


def latest(jobs: LifeCycle) -> str:
    """Return the latest job that has not ended, or the only one.

    Raises:
        NotFound: there is no job.
        InvalidInput: all have ended and there are several.
    """
    from paceline.services.jobs import ACTIVE_PHASES

    active = jobs.runs(phases=ACTIVE_PHASES)
    if active:
        return active[0].name
    runs = jobs.runs()
    if not runs:
        raise NotFound("there is no job yet", "paceline run job.yaml")
    if len(runs) > 1:
        raise InvalidInput(
            f"no job is running, and {len(runs)} have ended: name one",
            f"the latest: paceline top {runs[0].name}; all: paceline list",
        )
    return runs[0].name
