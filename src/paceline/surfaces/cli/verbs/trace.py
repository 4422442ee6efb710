"""``paceline trace``: shows what a step transfers and computes, variable by variable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.errors import PacelineError
from paceline.model import words
from paceline.surfaces.cli import options, printing, sessions

if TYPE_CHECKING:
    from paceline.services.observing.traces import Reading


@options.verb("trace")
@options.engine_options
@options.name_argument
@click.option(
    "--last", is_flag=True, help="Show the newest trace that is there; so it is of a job that ended."
)
@click.option(
    "--timeout",
    type=options.DURATION,
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="How long to wait for the trainers.",
)
@options.output_option("table", "wide", "json", "yaml")
def command(session: sessions.CliSession, name: str, last: bool, timeout: float, output: str) -> None:
    """Trace a few steps of the job NAME: bytes and time by variable and PS, and where a step's time goes.

    Bytes and microseconds are those of a step of every trainer together. All events of all trainers and PS
    are written for Perfetto, too. Needs pyarrow, as the extra `training` has it.
    """  # fmt: skip
    with sessions.needing("a trace", "training", "pyarrow"):
        from paceline.services.observing import traces
    from paceline.surfaces import documents
    from paceline.surfaces.views import traces as views

    with session.jobs() as jobs:
        run = jobs.get(name)
        if last or run.phase.is_final:
            reading = traces.newest(jobs, run)
        else:
            session.say(f"waiting for the trainers of {name}")
            reading = traces.take(jobs, name, timeout_seconds=timeout)
    for message in reading.broken:
        session.say(f"left out: {message}")
    if reading.missing:
        session.say(f"not in it: {words.listed(reading.missing)} made no whole step meanwhile")
    if reading.silent:
        session.say(
            f"not in it: what {words.listed(reading.silent)} did; the profiler there has not answered"
        )
    if not reading.traces:
        raise PacelineError(
            f"no trace of {name} at {reading.name} can be read{reading.why_none()}", f"paceline trace {name}"
        )
    path = _write_events(
        reading, Path(f"{name}-trace.json") if session.server else reading.folder / "perfetto.json"
    )
    if output in ("json", "yaml"):
        document = documents.trace(
            name, reading.name, reading.traces, broken=reading.broken, refused=reading.refused
        )
        printing.emit({**document, "perfetto_file": str(path)}, output)
        return
    printing.show(views.page(reading.traces, width=printing.width(wide=output == "wide")))
    session.say(f"next: open {path} in https://ui.perfetto.dev")


def _write_events(found: Reading, path: Path) -> Path:
    from paceline.surfaces import perfetto

    try:
        path.write_text(json.dumps(perfetto.document(found.traces)))
    except OSError as error:
        raise PacelineError(f"{path} cannot be written: {error.strerror or error}") from error
    return path
