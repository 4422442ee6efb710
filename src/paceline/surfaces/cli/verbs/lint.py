"""``paceline lint``: finds errors before anything runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.errors import FindingsFound, InvalidInput, NotFound
from paceline.surfaces.cli import job_files, options, printing, sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paceline.model.explanations.findings import Finding


@options.verb("lint")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(allow_dash=True))
@click.option(
    "--manifest",
    "manifests",
    metavar="FILE",
    multiple=True,
    type=click.Path(allow_dash=True),
    help="Check Kubernetes manifests, also templates of them.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["info", "warning", "error"]),
    default="error",
    show_default=True,
    help="From which severity on to exit with 4.",
)
@options.output_option("table", "json", "yaml")
def command(
    session: sessions.CliSession,
    files: tuple[str, ...],
    manifests: tuple[str, ...],
    fail_on: str,
    output: str,
) -> None:
    """Check job files, and Kubernetes manifests with --manifest; '-' is stdin.

    Of jobs that run on this machine it also says which files of their commands are not there.
    Exits with 4 when something at or above --fail-on is found.
    """  # fmt: skip
    if not files and not manifests:
        raise click.UsageError("name a job file, or a manifest with --manifest")
    from paceline.model.explanations.findings import Severity
    from paceline.surfaces import documents
    from paceline.surfaces.views import findings as views

    findings = _findings(session, files, manifests)
    if output == "table":
        if findings:
            printing.show(views.findings(findings, width=printing.width()))
        session.say(views.counted(findings))
    else:
        printing.emit(
            documents.document("FindingList", {"items": [documents.plain(finding) for finding in findings]}),
            output,
        )
    limit = Severity(fail_on)
    bad = [finding for finding in findings if finding.severity.rank >= limit.rank]
    if bad:
        raise FindingsFound(
            f"{len(bad)} of {len(findings)} findings are {limit} or worse",
            f"what a code means: paceline explain {bad[0].code}",
        )
    if files and files[0] != "-":
        session.suggest(f"paceline run {files[0]}", f"paceline submit --dry-run {files[0]}")


def _findings(session: sessions.CliSession, files: Sequence[str], manifests: Sequence[str]) -> list[Finding]:
    from paceline import linting

    found: list[Finding] = []
    for file in files:
        job_file, base = job_files.read(file)
        found += linting.lint_job(job_file)
        if session.is_here:
            found += job_files.missing_files(job_file, base)
    for file in manifests:
        found += linting.lint_manifests(_bytes(file), "stdin" if file == "-" else file)
    return found


def _bytes(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    from paceline.specs.yaml_text import problems

    shown = problems.visible(file)
    try:
        return Path(file).read_bytes()
    except FileNotFoundError as error:
        raise NotFound(f"{shown}: there is no such file") from error
    except OSError as error:
        raise InvalidInput(f"{shown}: the file cannot be read: {error.strerror}") from error
