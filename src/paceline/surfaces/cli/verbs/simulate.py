"""``paceline simulate``: simulates a job, and records what would be measured."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.surfaces.cli import job_files, options, sessions

if TYPE_CHECKING:
    from paceline.services.studying.simulations import SimulatedScene


def _scene(function: Callable[..., None]) -> Callable[..., None]:
    """Give the verb the options that describe where the simulated job runs, as its argument ``scene``."""

    @click.option("--apart", is_flag=True, help="Each host is a machine, not a part of the measured machine.")
    @click.option(
        "--at", "incidents", metavar="'SECONDS NAME TIMES'", multiple=True,
        help="From a second on something is so many times as fast: '30 cores of ps-0 0.2', '0 worker-3 0.5', "
        "'60 link from host-0 0', '30 input of trainers 0.1'.",
    )  # fmt: skip
    @click.option(
        "--input", "brings", metavar="EXAMPLES", type=click.FloatRange(min=0, min_open=True),
        help="A second, that each trainer can read at most; default: as it was measured.",
    )  # fmt: skip
    @functools.wraps(function)
    def wrapped(
        *arguments: object, apart: bool, incidents: tuple[str, ...], brings: float | None, **others: object
    ) -> None:
        def scene() -> SimulatedScene:
            from paceline.services.studying import simulations

            found = tuple(simulations.incident(each) for each in incidents)
            return simulations.SimulatedScene(apart=apart, incidents=found, input_examples_per_second=brings)

        function(*arguments, scene=scene, **others)

    return wrapped


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
@click.option(
    "--hosts", metavar="FILE", type=click.Path(),
    help="A list of emulated hosts, in place of those of the job: - {name: host-0, cpu: 8, bandwidth: 10G}.",
)  # fmt: skip
@_scene
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is left to chance.")
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False),
    help="The recording; default: NAME-simulated.parquet.",
)  # fmt: skip
def command(
    session: sessions.CliSession,
    file: str,
    like: str,
    seconds: int,
    hosts: str | None,
    scene: Callable[[], SimulatedScene],
    seed: int,
    output: str | None,
) -> None:
    """Simulate the job in FILE, step by step, and write what would be measured of it.

    What a step costs is taken from a job of the same model that was measured; how many replicas, with which
    cores, on which hosts and links, and how variables are cut, from FILE. `paceline why`, `top` and `report`
    take the recording like that of a real job. With --at a straggler, a narrow link, slow storage or
    a server that stands still is put into it. Needs the extra `training`.
    """
    job, _ = job_files.read(file)
    known = session.measured(like)
    from paceline.services.studying import predictions, simulations

    with sessions.needing("a recording", "training", "pyarrow"):
        from paceline.stores import recordings as files
    model = predictions.model(known)
    if hosts is not None:
        job = simulations.on_hosts(job, hosts)
    made = simulations.recording(model, job, seconds=float(seconds), seed=seed, at=time.time(), scene=scene())
    target = Path(output or f"{job.spec.name}-simulated.parquet")
    files.write(target, made)
    session.say(f"{target} written: {len(made.samples)} samples, {len(made.steps)} step reports")
    session.suggest(f"paceline why {target}", f"paceline top {target}")
