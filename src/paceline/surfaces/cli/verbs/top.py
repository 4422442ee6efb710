"""``paceline top``: shows the load of each replica, and the progress of the job."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import click

from paceline.errors import InvalidInput, NotFound, PacelineError
from paceline.surfaces.cli import options, printing, sessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from paceline.model.measures.snapshots import Snapshot
    from paceline.services.life_cycles import JobReader
    from paceline.services.observing.diagnosis_runs import DiagnosisRun


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
def command(session: sessions.CliSession, name: str | None, once: bool, interval: float, output: str) -> None:
    """Watch the load, the imbalance and the progress of a job.

    First its main finding in a line, and where the time of a step goes (of the newest trace). Without NAME:
    the latest job that has not ended, or the only one. Of a job that has ended it shows means over the whole
    run. Ctrl-C ends the watching, not the job. On a cluster figures are those that the operator has kept,
    when its --store is named; else the agents of the job's pods are asked. NAME may be the file of a
    recording (`paceline record`).
    """  # fmt: skip
    from paceline.model.measures import snapshots
    from paceline.services.observing import diagnosis_runs
    from paceline.surfaces.cli.verbs import get
    from paceline.surfaces.views import tops

    recording = None if name is None else sessions.recording(name)
    if recording is not None:
        _show(snapshots.of(recording), diagnosis_runs.of(recording), output)
        if output not in ("json", "yaml"):
            session.suggest(f"paceline why {name}", f"paceline report {name}")
        return
    with session.jobs() as jobs:
        name = name or latest(jobs)
        look = diagnosis_runs.now_and_then(_looker(jobs, name), time.monotonic)
        diagnosis_run = look()
        if diagnosis_run is not None and diagnosis_run.recording.run.phase.is_final:
            snapshot = snapshots.of(diagnosis_run.recording)  # The whole recording was read already.
        else:
            snapshot = jobs.snapshot(name)
        whole = output in ("json", "yaml") or once or not printing.is_terminal()
        if not whole and not snapshot.run.phase.is_final:
            terminal = printing.console()
            with contextlib.suppress(KeyboardInterrupt), printing.screen(whole=True) as screen:
                while not snapshot.run.phase.is_final:
                    width, height = terminal.width, terminal.height
                    screen.show(tops.frame(snapshot, width=width, height=height, look=diagnosis_run))
                    time.sleep(max(0.2, interval))
                    snapshot, diagnosis_run = jobs.snapshot(name), look()
        _show(snapshot, diagnosis_run, output)
        if output in ("json", "yaml"):
            return
        if session.on_cluster and all(replica.measured_at is None for replica in snapshot.replicas):
            session.say(
                "nothing was measured: agents answer while their pods run, operators keep it (--store)"
            )
        get.suggest(session, snapshot.run, lost=snapshot.lost)


def _looker(jobs: JobReader, name: str) -> Callable[[], DiagnosisRun | None]:
    """Return a function that looks at a job, or returns None if the look fails."""
    from paceline.services.observing import diagnosis_runs

    looker = diagnosis_runs.Looker(jobs, name)

    def look() -> DiagnosisRun | None:
        try:
            return looker.look()
        except PacelineError:  # Load and progress can still be shown.
            return None

    return look


def _show(snapshot: Snapshot, look: DiagnosisRun | None, output: str) -> None:
    from paceline.surfaces import documents
    from paceline.surfaces.views import tops

    if output in ("json", "yaml"):
        printing.emit(documents.snapshot(snapshot, look), output)
    else:
        printing.show(tops.frame(snapshot, width=printing.width(wide=output == "wide"), look=look))


def latest(jobs: JobReader) -> str:
    """Return the name of the latest job that has not ended, or of the only job.

    Raises:
        NotFound: there is no job.
        InvalidInput: all jobs have ended, and there are several.
    """
    from paceline.model.jobs.statuses import ACTIVE_PHASES

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
