"""``paceline resize``: gives replicas of a running job other cores or memory, without a restart."""

from __future__ import annotations

import click

from paceline.surfaces.cli import options, sessions


@options.verb("resize")
@options.engine_options
@options.name_argument
@click.argument("target")
@click.option(
    "--cpu", type=options.CORES, metavar="CORES", help="How many cores each is to have, such as 1.5 or 500m."
)
@click.option(
    "--memory", type=options.SIZE, metavar="SIZE", help="How much memory each is to have, such as 4Gi."
)
@click.option(
    "--until", "seconds", type=options.DURATION, metavar="DURATION",
    help="Put it back after so long, such as 10m; else it is for good, and the job file says so.",
)  # fmt: skip
@options.dry_run_option
def command(
    session: sessions.CliSession,
    name: str,
    target: str,
    cpu: float | None,
    memory: int | None,
    seconds: float | None,
    dry_run: bool,
) -> None:
    """Give TARGET of the running job NAME other cores or memory; no replica restarts.

    TARGET is a replica, such as ps-0, or a role, such as ps: all of its replicas. Threads stay as many as
    they were when the replica began: more cores than threads are of no use before it restarts.
    """
    from paceline.control import resizings
    from paceline.model import quantities

    wanted = resizings.asked(target, cpu_cores=cpu, memory_bytes=memory)
    span = "" if seconds is None else f" for {quantities.format_seconds(seconds)}"
    with session.jobs() as jobs:
        if dry_run:
            jobs.check_resizable(jobs.get(name), wanted)
            click.echo(f"{name} would be resized: {resizings.sentence(wanted)}{span}")
            return
        jobs.resize(name, wanted, seconds=seconds)
        click.echo(f"{name} is resized: {resizings.sentence(wanted)}{span}")
    session.suggest(f"paceline top {name}", f"paceline why {name}")
