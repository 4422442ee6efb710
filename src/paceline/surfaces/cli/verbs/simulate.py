"""``paceline simulate``: a job that does not run, measured all the same."""

from __future__ import annotations

import time
from pathlib import Path

import click

from paceline.surfaces.cli import job_files, options, sessions


@options.verb("simulate")
@options.engine_options
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@click.option(
    "--like",
    metavar="NAME",
    required=True,
    help="A job of the same model that was measured, or the file of its recording.",
)
@click.option(
    "--seconds", type=click.IntRange(1, 86_400), default=120, show_default=True, help="How long it runs."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is left to chance.")
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False),
    help="The recording; default: NAME-simulated.parquet.",
)  # fmt: skip
def command(
    session: sessions.Session, file: str, like: str, seconds: int, seed: int, output: str | None
) -> None:
    """Simulate the job in FILE, step by step, and write what would be measured of it.

    What a step costs is taken from a job of the same model that was measured; how many replicas, with which
    cores, on which hosts and links, and how variables are cut, from FILE. `paceline why`, `top` and `report`
    take the recording like that of a real job. Needs the extras `tuning` and `training`.
    """
    job, _ = job_files.read(file)
    known = session.measured(like)
    with sessions.needing("a simulation", "tuning", "scipy"):
        from paceline.services import predictions, simulations
    with sessions.needing("a recording", "training", "pyarrow"):
        from paceline.stores import recordings as files
    model = predictions.model(known)
    made = simulations.recording(model, job, seconds=float(seconds), seed=seed, at=time.time())
    target = Path(output or f"{job.spec.name}-simulated.parquet")
    files.write(target, made)
    session.say(f"{target} written: {len(made.samples)} samples, {len(made.steps)} step reports")
    session.suggest(f"paceline why {target}", f"paceline top {target}")
