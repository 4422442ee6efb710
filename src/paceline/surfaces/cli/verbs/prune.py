"""``paceline prune``: keeps jobs that ended some time ago in less detail, or deletes them."""

from __future__ import annotations

import click

from paceline.surfaces.cli import options, sessions


@options.verb("prune")
@options.engine_options
@click.option(
    "--older-than",
    type=options.DURATION,
    metavar="DURATION",
    help="Delete all jobs that ended longer ago, with logs, samples and checkpoints.",
)
@options.dry_run_option
def command(session: sessions.CliSession, older_than: float | None, dry_run: bool) -> None:
    """Keep less of jobs that ended some time ago, or delete them.

    Without --older-than it does what servers do by themselves: samples and steps are kept as they were
    measured for PACELINE_KEEP_FULL (14d) after a job's end, in intervals of a minute until
    PACELINE_KEEP_MINUTES (180d), then not at all; the jobs, and what was found in them, until
    PACELINE_KEEP_RUNS (forever).
    """
    if older_than is None:
        _age(session, dry_run=dry_run)
        return
    with session.jobs() as jobs:
        names = jobs.prune(older_than_seconds=older_than, dry_run=dry_run)
    for name in names:
        click.echo(f"{name} would be deleted" if dry_run else f"{name} deleted")
    if not names:
        session.say("nothing to delete")
    elif dry_run:
        session.suggest(f"paceline prune --older-than {older_than:g}s")
    else:
        session.suggest("paceline list")


def _age(session: sessions.CliSession, *, dry_run: bool) -> None:
    from paceline.model.jobs.runs import Detail
    from paceline.surfaces.views import cells

    would = "would be " if dry_run else ""
    done = {
        None: "deleted",
        Detail.MINUTES: "kept in intervals of a minute",
        Detail.SUMMARY: "kept without samples, steps and traces",
    }
    with session.jobs() as jobs:
        found = jobs.age(dry_run=dry_run)
    for each in found:
        click.echo(f"{each.run.name} {would}{done[each.detail]}")
    with session.studies() as store:
        size = cells.compact_bytes(store.size_bytes())
    session.say(f"{'' if found else 'every job is kept as it is; '}the store has {size}")
    session.suggest("paceline prune" if dry_run and found else "paceline list")
