"""``paceline report``: writes a page about one job, and its numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from paceline.errors import InvalidInput, NotFound, PacelineError
from paceline.surfaces.cli import options, sessions


@options.verb("report")
@options.engine_options
@options.name_argument
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="The page; default: NAME-report.html.",
)
@click.option(
    "--json",
    "json_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Write the numbers as JSON, too; '-' is stdout.",
)
@click.option(
    "--best-auc",
    metavar="AUC",
    type=click.FloatRange(0.0, 1.0),
    help="The best AUC that any model can reach on these data, to compare with.",
)
@click.option(
    "--truth", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
    help="A JSON file that says so as best_auc.",
)  # fmt: skip
def command(
    session: sessions.CliSession,
    name: str,
    output: str | None,
    json_file: str | None,
    best_auc: float | None,
    truth: str | None,
) -> None:
    """Write a page about the job NAME: one HTML file that needs nothing else and can be sent around.

    It may be asked for while the job runs. On a cluster it needs the --store that the operator fills; without
    it only what the job's running pods still have is in it. NAME may be the file of a recording (`paceline
    record`), or the name of a search for a better job file (`paceline tune`). Needs the extra `report`.
    """
    with sessions.needing("a report", "report", "jinja2"):
        from paceline.surfaces.reports import evidence, numbers, pages
    best = best_auc if best_auc is not None or truth is None else _read_truth(Path(truth))
    recording = sessions.recording(name)
    search = None if recording is not None or session.server else _search(session, name)
    if search is not None:
        page, document = search
    else:
        if recording is not None:
            found = evidence.of(recording, best_auc=best)
        else:
            with session.jobs() as jobs:
                found = evidence.gather(jobs, name, best_auc=best)
        page, document, name = pages.page(found), numbers.document(found), found.recording.run.name
    # The name in a recording may be anything; the page is written here, wherever that would lead.
    target = Path(output or f"{Path(name).name}-report.html")
    _write(target, page)
    session.say(f"{target} written")
    if json_file is not None:
        text = json.dumps(document, indent=2, ensure_ascii=False)
        if json_file == "-":
            click.echo(text)
        else:
            _write(Path(json_file), text + "\n")
            session.say(f"{json_file} written")


def _search(session: sessions.CliSession, name: str) -> tuple[str, dict[str, Any]] | None:
    """Return the page and the numbers of a search for a better job file; None: there is no such search."""
    from paceline.services.observing import recordings
    from paceline.surfaces.reports import tunings

    with session.studies() as store:
        try:
            tuning = store.tuning(name)
        except NotFound:
            return None
    if not tuning.finished:
        raise NotFound(f"{name} has no trial that is finished", "paceline list")
    with session.jobs() as jobs:
        first, why = recordings.explain(jobs, tuning.finished[0].run, thinned=True)
    if first is None:
        raise NotFound(f"nothing is known of {tuning.finished[0].run}", "paceline list")
    return tunings.page(tuning, first, why, say=session.addressed), tunings.document(tuning, why)


def _read_truth(path: Path) -> float:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))["best_auc"]
        return float(value)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path} does not say a best_auc: {error!r}") from error


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise PacelineError(f"{path} cannot be written: {error.strerror or error}") from error
