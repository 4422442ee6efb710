"""``paceline record``: writes all that is known of a job into one file."""

from __future__ import annotations

from pathlib import Path

import click

from paceline.surfaces.cli import options, sessions


@options.verb("record")
@options.engine_options
@options.name_argument
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False),
    help="The file; default: NAME.parquet.",
)  # fmt: skip
def command(session: sessions.CliSession, name: str, output: str | None) -> None:
    """Write all that is known of the job NAME into one file.

    That is its job file, with the values of its environment, and its changes; events, samples, steps, the
    newest traces, what was found when it had ended, the last lines of output. `paceline why`, `top` and
    `report` take the file instead of a NAME, on any machine, and `paceline import` makes a job of it again.
    A job that runs may be recorded too. Of more measurements than a file may have, several become one. Needs
    pyarrow, as the extra `training` has it.
    """
    from paceline.services.observing import recordings

    with sessions.needing("a recording", "training", "pyarrow"):
        from paceline.stores import recordings as files

    target = Path(output or f"{name}.parquet")
    with session.jobs() as jobs:
        recording = recordings.exported(jobs, name, most_rows=files.MOST_ROWS)
    files.write(target, recording)
    counts = (
        f"{len(recording.samples)} samples, {len(recording.steps)} step reports, "
        f"{len(recording.traces)} traces"
    )
    session.say(f"{target} written: {counts}")
    for note in recording.run.notes:
        if note.startswith(recordings.COMBINED):
            session.say(note)
    session.suggest(f"paceline why {target}", f"paceline report {target}", f"paceline import {target}")
