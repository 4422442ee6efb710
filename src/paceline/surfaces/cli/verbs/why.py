"""``paceline why``: explains why a job is in its state, and what limits its speed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from paceline.errors import FindingsFound, PacelineError
from paceline.surfaces.cli import options, printing, sessions

if TYPE_CHECKING:
    from paceline.model.explanations.causes import Cause, Explanation
    from paceline.model.measures.recordings import Recording
    from paceline.surfaces.diffs import Diffs


@options.verb("why")
@options.engine_options
@options.name_argument
@click.option(
    "--fail-on",
    type=click.Choice(["info", "warning", "error"]),
    help="From which severity on of a cause that is not over to exit with 4; default: never.",
)
@click.option(
    "--anew", is_flag=True, help="Judge a job that has ended by the rules of today, whatever was found then."
)
@options.output_option("table", "diff", "markdown", "html", "json", "yaml")
def command(session: sessions.CliSession, name: str, fail_on: str | None, anew: bool, output: str) -> None:
    """Say why the job NAME is pending, failed, restarting or slow, or that nothing is wrong.

    From what happened to it, why its replicas ended, what its pods wait for, whether it fits, and what was
    measured of it. Each cause with what was seen of it, what follows from it, and what to do: a change of the
    job file as a diff, what that should bring, computed, and what it may cost. `paceline explain CODE` says
    more. Below stands how the job scales: what binds now, and what other sizes would bring.
    `-o diff` is the first such change alone (`| patch job.yaml`). `-o markdown` is for pull requests and
    chats; `-o html` is a page with plots that needs nothing else (`> why.html`) and needs the extra `report`.
    NAME may be the file of a recording (`paceline record`).
    """
    from paceline.diagnosing import catalogues, diagnoses
    from paceline.services.observing import diagnosis_summaries, recordings
    from paceline.services.observing.diagnosis_runs import DiagnosisRun

    recording = sessions.recording(name)
    is_file = recording is not None
    if recording is not None:
        situation = recordings.situation(recording)
        judge = diagnoses.diagnose if anew else recordings.judged
        found = judge(recording, situation)
    else:
        with session.jobs() as jobs:
            recording, found = recordings.explain(jobs, name, thinned=True, anew=anew)
            if recording is not None and not anew:
                diagnosis_summaries.remember(jobs, DiagnosisRun(recording=recording, explanation=found))
    _show(session, recording, found, output)
    _fail(found, fail_on)
    codes = [f"paceline explain {catalogues.topic(cause.name).code}" for cause in found.causes[:1]]
    others = ("top", "report") if is_file else ("describe", "logs")
    session.suggest(*codes, *(f"paceline {verb} {name}" for verb in others))


def _show(
    session: sessions.CliSession, recording: Recording | None, explanation: Explanation, output: str
) -> None:
    from paceline.surfaces import answers, documents
    from paceline.surfaces.diffs import Diffs

    diffs = Diffs.of(None if recording is None else recording.run)
    if output == "table":
        from paceline.surfaces.views import causes as views

        page = views.explanation(explanation, diffs=diffs, say=session.addressed, width=printing.width())
        printing.show(page)
    elif output == "diff":
        _show_diff(session, explanation, diffs)
    elif output == "markdown":
        from paceline.surfaces.views import markdowns

        click.echo(markdowns.text(answers.answer(explanation, diffs=diffs, say=session.addressed)))
    elif output == "html":
        if recording is None:
            raise PacelineError(
                f"there is no page of {explanation.job}: {explanation.summary}",
                f"paceline why {explanation.job}",
            )
        with sessions.needing("a page", "report", "jinja2"):
            from paceline.surfaces.reports import whys
        click.echo(whys.page(recording, explanation, say=session.addressed))
    else:
        printing.emit(documents.explanation(explanation, diffs), output)


def _show_diff(session: sessions.CliSession, found: Explanation, diffs: Diffs) -> None:
    diff = next(filter(None, (diffs.diff(cause.changes) for cause in found.causes)), None)
    if diff is None:
        session.say("no cause is cured by a change of the job file")
    else:
        click.echo(diff, nl=False)


def _fail(found: Explanation, fail_on: str | None) -> None:
    """Raise an error if a present cause, or an effect of one, is at or above a severity."""
    from paceline.diagnosing import catalogues
    from paceline.model.explanations.findings import Severity

    if fail_on is None:
        return
    limit = Severity(fail_on)
    present = [cause for cause in _all(found.causes) if not cause.is_past]
    bad = [cause for cause in present if cause.severity.rank >= limit.rank]
    if bad:
        raise FindingsFound(
            f"{len(bad)} of {len(present)} causes are {limit} or worse",
            f"what a code means: paceline explain {catalogues.topic(bad[0].name).code}",
        )


def _all(causes: Iterable[Cause]) -> Iterator[Cause]:
    for cause in causes:
        yield cause
        yield from _all(cause.effects)
