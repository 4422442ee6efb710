"""``paceline tune``: proposes changes to a job, and runs trials that show their effect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.errors import InvalidInput, PacelineError
from paceline.surfaces.cli import efforts, job_files, objectives, options, printing, searching, sessions

if TYPE_CHECKING:
    from paceline.model.studies.tunings import Objective, Tuning
    from paceline.services.studying.trials import TrialTimes
    from paceline.services.studying.tunings import Effort
    from paceline.surfaces.cli.efforts import TuneEffort

_JOB_FILES = (".yaml", ".yml", ".json")


@options.verb("tune")
@options.engine_options
@click.argument("target", metavar="TARGET")
@efforts.options
@objectives.options
@click.option(
    "--apply", "apply", flag_value="file",
    help="With --trials: change the job file itself; else FILE-tuned.yaml is written.",
)  # fmt: skip
@click.option(
    "--live", "apply", flag_value="live",
    help="Make the likeliest change to a job that runs: it goes on from its checkpoint, is measured, "
    "and goes back if it is no better.",
)  # fmt: skip
@options.output_option("table", "json", "yaml")
def command(
    session: sessions.CliSession,
    target: str,
    asked: TuneEffort,
    objective: Objective,
    apply: str | None,
    output: str,
) -> None:
    """Say what to change in a job, and with --trials try it out and keep what helps.

    TARGET is a job, or the file of a recording: then proposals are computed from what was measured, each with
    its gain, its risk and its diff. With --trials it is a job file: it is run as it is, diagnosed, changed as
    that proposes, run again, and so on; a change stays if it is better beyond the noise of a run, and the
    model learns no worse. Trials that are done are kept: the same command goes on where it was stopped.
    """
    _check(target, asked.trials, apply)
    if asked.trials is not None:
        session.without_server(
            "a trial", "run it on the server's machine; paceline tune NAME says here what to change"
        )
        how = asked.effort(asked.trials)
        try_out(session, target, objective, how, apply=apply is not None, output=output)
    elif apply == "live":
        _change(session, target, objective, asked.times, output)
    else:
        _advise(session, target, objective, output)


def _check(target: str, trials: int | None, apply: str | None) -> None:
    """Check that the options go together.

    Raises:
        InvalidInput: they do not.
    """
    is_file = target == "-" or target.endswith(_JOB_FILES)
    if trials is None and is_file:
        raise InvalidInput(
            f"nothing was measured of {target}",
            f"paceline tune {target} --trials 6, or name a job that runs or ran",
        )
    if trials is None and apply == "file":
        raise InvalidInput("--apply needs --trials", f"paceline tune {target} --live changes a job that runs")
    if trials is not None and not is_file:
        raise InvalidInput(
            f"trials need a job file, and {target} is none",
            f"paceline tune {target}, or FILE.yaml --trials 6",
        )
    if trials is not None and apply == "live":
        raise InvalidInput(
            f"--live changes a job that runs, but {target} is a job file", "paceline tune NAME --live"
        )
    if apply and target == "-":
        raise InvalidInput(
            "--apply cannot write the best job file back to stdin", "leave --apply out, or name a file"
        )


def try_out(
    session: sessions.CliSession,
    target: str,
    objective: Objective,
    how: Effort,
    *,
    apply: bool = False,
    output: str = "table",
    noticed: Callable[[], None] = lambda: None,
    measured: Callable[[], None] = lambda: None,
) -> Tuning:
    """Run trials, show them, and write the best job file; return the search.

    Args:
        session: says where the trials run.
        target: the job file, or ``-``.
        objective: the objective of the search.
        how: how much may be run.
        apply: whether to change the job file itself.
        output: how to print the result.
        noticed: see `searching.Display`.
        measured: see `searching.Display`.
    """
    from paceline.services.observing import recordings
    from paceline.services.studying import studies, tunings

    job, base = job_files.read(target)
    objective = tunings.limited(objective, job.spec, on_cluster=session.on_cluster)
    with session.jobs() as jobs, session.studies() as store:
        name = tunings.name_of(job.spec)
        display = searching.Display(
            session,
            lambda run: recordings.explain(jobs, run)[1],
            pairs=how.pairs,
            noticed=noticed,
            measured=measured,
        )
        with studies.alone(session.home.path, name), display.shown():
            tuning = tunings.begun(
                store, job.text, base=base, objective=objective, most_trials=how.trials, anew=how.anew
            )
            tuner = tunings.Tuner(jobs=jobs, store=store, times=how.times, tell=display.tell)
            tuning = tuner.prove(tuner.run(tuning), pairs=how.pairs, examples=how.examples)
    _show(tuning, output)
    best = tuning.best
    if best is None or not best.number:
        session.suggest(f"paceline why {tuning.finished[0].run}")
        return tuning
    file = Path(f"{job.spec.name}-tuned.yaml") if target == "-" else tuned_beside(Path(target))
    if apply and _is_as_read(target, job.text):
        file = Path(target)
    elif apply:
        session.say(f"{target} was changed meanwhile, so it stays as it is")
    _write(file, best.source)
    session.say(f"{file} written")
    session.suggest(f"paceline run {file}", f"paceline report {tuning.name}")
    return tuning


def _is_as_read(target: str, text: str) -> bool:
    """Return whether a job file is what it was when the trials began; it may be wrong or gone by now."""
    try:
        return job_files.read(target)[0].text == text
    except PacelineError:
        return False


def _advise(session: sessions.CliSession, name: str, objective: Objective, output: str) -> None:
    from paceline.model.jobs.runs import KUBERNETES
    from paceline.services.studying import proposals, tunings
    from paceline.surfaces.diffs import Diffs

    recording = session.measured(name)
    on_cluster = recording.run.engine == KUBERNETES
    objective = tunings.limited(objective, recording.run.spec, on_cluster=on_cluster)
    job_proposals = proposals.proposals(recording, objective)
    diffs = Diffs.of(recording.run)
    if output == "table":
        from paceline.surfaces.views import proposals as views

        printing.show(
            views.page(
                recording.run.name,
                job_proposals,
                objective,
                none="" if job_proposals else proposals.none_known(recording),
                diffs=diffs,
                width=printing.width(),
            )
        )
    else:
        from paceline.surfaces import documents

        items = [
            {**documents.plain(proposal), "diff": diffs.diff(proposal.changes)} for proposal in job_proposals
        ]
        printing.emit(documents.document("ProposalList", {"items": items}), output)
    session.suggest(f"paceline why {name}", "paceline tune job.yaml --trials 6")


def _change(
    session: sessions.CliSession, name: str, objective: Objective, times: TrialTimes, output: str
) -> None:
    """Make the most promising change to a running job."""
    from paceline.model.jobs.runs import KUBERNETES
    from paceline.services.studying import live_changes, proposals, tunings
    from paceline.surfaces import documents

    recording = session.measured(name)
    on_cluster = recording.run.engine == KUBERNETES
    objective = tunings.limited(objective, recording.run.spec, on_cluster=on_cluster)
    job_proposals = proposals.proposals(recording, objective)
    if not job_proposals:
        why_none = proposals.none_known(recording)
        session.say(f"{name} stays as it is: {why_none}")
        if output != "table":
            body = {"job": name, "proposal": None, "before": None, "after": None, "judgement": None}
            printing.emit(documents.document("LiveChange", {**body, "why_none": why_none}), output)
        return
    with session.jobs() as jobs:
        changer = live_changes.Changer(jobs=jobs, objective=objective, times=times, tell=session.say)
        done = changer.change(name, job_proposals[0])
    if output == "table":
        from paceline.surfaces.views import tunings as views

        printing.show(views.live(done))
    else:
        printing.emit(documents.document("LiveChange", {**documents.plain(done), "why_none": None}), output)
    session.suggest(f"paceline why {name}", f"paceline top {name}")


def _show(tuning: Tuning, output: str) -> None:
    if output == "table":
        from paceline.surfaces.views import tunings as views

        printing.show(views.page(tuning, width=printing.width()))
    else:
        from paceline.surfaces import documents

        printing.emit(documents.document("Tuning", documents.plain(tuning)), output)


def tuned_beside(file: Path) -> Path:
    """Return the path at which the best version of a job file is written."""
    return file.with_name(f"{file.stem}-tuned{file.suffix}")


def _write(file: Path, source: str) -> None:
    """Write a file atomically: it has the old or the new content, whatever happens."""
    from paceline.errors import StoreError

    scratch = file.with_name(f".{file.name}.new")
    try:
        scratch.write_text(source, encoding="utf-8")
        scratch.replace(file)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise StoreError(
            f"{file} cannot be written: {error.strerror or error}",
            "free some room, or go to a folder that can be written",
        ) from error
