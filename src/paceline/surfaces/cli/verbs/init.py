"""``paceline init``: a job file to start from."""

from __future__ import annotations

from pathlib import Path

import click

from paceline.errors import Conflict, PacelineError
from paceline.surfaces.cli import options, sessions

#: The keys of ``specs.TEMPLATES``, written out so that help and completion need not load it.
TEMPLATES = ("script", "training", "kubernetes")


@options.verb("init")
@click.argument("path", metavar="[PATH]", default="job.yaml", type=click.Path(allow_dash=True))
@click.option(
    "--template",
    type=click.Choice(TEMPLATES),
    default=TEMPLATES[0],
    show_default=True,
    help="For your own script, for a model of the training library, or for a cluster.",
)
@click.option("--name", default="clicks", show_default=True, help="The job's name.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@options.dry_run_option
def command(
    session: sessions.Session, path: str, template: str, name: str, force: bool, dry_run: bool
) -> None:
    """Write a job file with every field explained to PATH (job.yaml); '-' prints it."""  # fmt: skip
    from paceline import specs

    text = specs.template(template, name)
    if path == "-":
        click.echo(text, nl=False)
        return
    target = Path(path) / "job.yaml" if Path(path).is_dir() else Path(path)
    if target.exists() and not force:
        raise Conflict(f"there is a file {target} already", "name another one, or write over it with --force")
    if dry_run:
        click.echo(f"{target} would be written ({template})")
        return
    try:
        with target.open("w" if force else "x") as file:
            file.write(text)
    except OSError as error:
        raise PacelineError(f"{target} cannot be written: {error.strerror}") from error
    click.echo(f"{target} written")
    session.suggest(f"paceline lint {target}", f"paceline run --dry-run {target}", f"paceline run {target}")
