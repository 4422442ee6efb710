"""``paceline init``: writes a job file to start from, or a whole example."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.errors import Conflict, InvalidInput, PacelineError
from paceline.surfaces.cli import job_files, options, sessions

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The keys of ``specs.TEMPLATES``, written out so that help and completion need not load it.
TEMPLATES = ("script", "training", "kubernetes")
#: The packages below ``paceline.examples``.
EXAMPLES = ("clicks",)
#: The files of an example that are written.
_FILES = ("job.yaml", "train.py")


@options.verb("init")
@click.argument("path", metavar="[PATH]", required=False, type=click.Path(allow_dash=True))
@click.option(
    "--template",
    type=click.Choice(TEMPLATES),
    help="For your own script (the default), for a model of the training library, or for a cluster.",
)
@click.option(
    "--example",
    type=click.Choice(EXAMPLES),
    help="Write a whole example, a job file and its script, into the folder PATH; it runs as it is.",
)
@click.option("--name", help="The job's name; default: clicks.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
@options.dry_run_option
def command(
    session: sessions.CliSession,
    path: str | None,
    template: str | None,
    example: str | None,
    name: str | None,
    force: bool,
    dry_run: bool,
) -> None:
    """Write a job file with every field explained to PATH (job.yaml); '-' prints it.

    With --example, write a folder with a job that runs as it is.
    """  # fmt: skip
    if example is None:
        _write_template(session, path or "job.yaml", template or TEMPLATES[0], name, force, dry_run)
    elif template is not None or name is not None:
        raise InvalidInput(
            "an example has its own job file", "leave --template and --name out; edit the file afterwards"
        )
    else:
        _write_example(session, Path(path or example), example, force, dry_run)


def _write_template(
    session: sessions.CliSession, path: str, template: str, name: str | None, force: bool, dry_run: bool
) -> None:
    from paceline import specs

    text = specs.template(template, name or "clicks")
    if path == "-":
        click.echo(text, nl=False)
        return
    target = Path(path) / "job.yaml" if Path(path).is_dir() else Path(path)
    if not _write({target: text}, template, force, dry_run):
        return
    job_file, base = job_files.read(str(target))
    missing = job_files.missing_files(job_file, base)
    for each in missing:
        session.say(f"to fill in: {each.position}: {each.message}; write it, or name your own script there")
    if missing:
        session.say("a job that runs as it is: paceline init --example clicks")
        session.suggest(f"paceline lint {target}")
    else:
        session.suggest(
            f"paceline lint {target}", f"paceline run --dry-run {target}", f"paceline run {target}"
        )


def _write_example(
    session: sessions.CliSession, folder: Path, example: str, force: bool, dry_run: bool
) -> None:
    import importlib.resources

    package = importlib.resources.files("paceline").joinpath("examples", example)
    texts = {folder / name: package.joinpath(name).read_text(encoding="utf-8") for name in _FILES}
    if _write(texts, f"example {example}", force, dry_run):
        session.say(f"next: cd {folder} && paceline run job.yaml")


def _write(texts: Mapping[Path, str], kind: str, force: bool, dry_run: bool) -> bool:
    """Write files; return whether they were written.

    Raises:
        Conflict: a file exists, and ``force`` is not set.
        PacelineError: a file cannot be written.
    """
    there = [target for target in texts if target.exists()]
    if there and not force:
        raise Conflict(
            f"there is a file {there[0]} already", "name another one, or write over it with --force"
        )
    for target, text in texts.items():
        if dry_run:
            click.echo(f"{target} would be written ({kind})")
            continue
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("w" if force else "x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise PacelineError(f"{target} cannot be written: {error.strerror}") from error
        click.echo(f"{target} written")
    return not dry_run
