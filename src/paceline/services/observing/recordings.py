"""Recordings of jobs: put together from a store, and examined like the jobs themselves."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from paceline import specs
from paceline.diagnosing import diagnoses
from paceline.diagnosing.situations import Situation
from paceline.errors import InvalidInput, NotFound, PacelineError
from paceline.model.explanations.causes import Evidence, Explanation
from paceline.model.jobs.runs import Run
from paceline.model.measures.recordings import OutputTail, Recording
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.roles import ReplicaId
from paceline.model.traces import traced_steps as models
from paceline.model.traces.traced_steps import Trace
from paceline.model.variables.variable_plans import Plan
from paceline.services import variable_plans
from paceline.services.life_cycles import JobReader
from paceline.services.logs import LogSelection
from paceline.stores import Store, measurements

#: The approximate size of a thinned recording in samples: 220 replicas for an hour have one every 40 s.
MOST_SAMPLES = 20_000
#: Recent measurements of a running job are never thinned: rules judge its last half minute.
RECENT_SECONDS = 120.0
#: Measurements of a running job may be this far ahead of the reader: clocks of machines differ.
AHEAD_SECONDS = 5.0
#: How many lines of each attempt's output go into a file, and how many characters of each line.
OUTPUT_LINES, OUTPUT_CHARACTERS = 500, 2000
#: How the note of a recording begins whose measurements were combined.
COMBINED = "measurements are combined into intervals"
#: Measurements are not combined into longer intervals.
_LONGEST_SECONDS = 1e6
#: How many of the newest traces are searched for one that has steps.
_NEWEST_TRACES = 3
_UNKNOWN = "what its place says of its replicas, and whether it fits: a recording does not have it"


def read(
    store: Store,
    run: Run,
    *,
    at: float,
    lost: bool = False,
    facts: Sequence[tuple[str, str]] = (),
    since: float | None = None,
    thinned: bool = False,
    thresholds: Mapping[str, float] | None = None,
) -> Recording:
    """Return what a store knows of a run, which does not include traces and variables.

    Args:
        store: where the run is stored.
        run: the run.
        at: now (Unix seconds).
        lost: whether it should run, but no supervisor watches it.
        facts: facts of the machine or the image.
        since: only measurements from this moment on (Unix seconds), and the latest step report of each
            replica even if it is older; None: all.
        thinned: whether to combine the measurements of a large, long job into longer intervals, so that a
            look at it stays cheap. The last minutes of a running job are not thinned.
        thresholds: the numbers of rules that the site has set (`site_thresholds`); None: none.

    Raises:
        NotFound: the run was deleted meanwhile.
        StoreError: the store cannot be read.
    """
    before = [] if since is None else _reports_before(store, run, since)
    rows = store.replicas(run.name)
    every = _interval_seconds(run, len(rows), at) if thinned else None
    recent = None if every is None or run.phase.is_final else max(at - RECENT_SECONDS, since or 0.0)
    samples = store.samples(run.name, since=since, until=recent, every_seconds=every)
    steps = store.step_reports(run.name, since=since, until=recent, every_seconds=every)
    if recent is not None:
        samples += store.samples(run.name, since=recent)
        steps += store.step_reports(run.name, since=recent)
    if not run.phase.is_final:
        # If the clock was set back, measurements from before are left out: their times lie in the future.
        samples = [each for each in samples if each.at <= at + AHEAD_SECONDS]
        steps = [each for each in steps if each.at <= at + AHEAD_SECONDS]
    return Recording(
        run=run,
        at=at,
        lost=lost,
        facts=facts,
        replicas=rows,
        samples=samples,
        steps=[*before, *steps],
        evaluations=store.evaluations(run.name),
        events=[event for _, event in store.events(run.name)],
        conclusion=store.conclusion(run.name) if run.phase.is_final else None,
        changes=store.spec_changes(run.name),
        probes=store.probes(run.name),
        thresholds=thresholds or {},
    )


def _interval_seconds(run: Run, replicas: int, at: float) -> float | None:
    """Return the interval that limits the samples to ``MOST_SAMPLES``; None: the measured intervals do."""
    until = run.finished_at if run.finished_at is not None else at
    seconds = max(0.0, until - (run.started_at if run.started_at is not None else until))
    every = math.ceil(replicas * seconds / MOST_SAMPLES)
    return float(every) if every > 1 else None


def _reports_before(store: Store, run: Run, since: float) -> list[StepReport]:
    latest = store.latest_step_reports(run.name).values()
    return sorted((report for report in latest if report.at < since), key=lambda report: report.at)


def whole(
    jobs: JobReader,
    name: str,
    *,
    since: float | None = None,
    thinned: bool = False,
    kept: RunFilesCache | None = None,
) -> Recording:
    """Return everything known of a job: measurements, the newest traces, and the plan of its variables.

    The events of traces are left out: they are most of a trace, and no rule uses them.

    Args:
        jobs: where the job is.
        name: its name.
        since: only measurements from this moment on (see `LifeCycle.recording`); None: all.
        thinned: whether to combine many measurements into longer intervals (see `read`).
        kept: caches files that were read before and have not changed.

    Raises:
        NotFound: the job does not exist.
        StoreError: the store or the run's folder cannot be read or written.
    """
    recording = jobs.recording(name, since=since, thinned=thinned)
    if recording.traces or recording.plan is not None:
        return recording  # A server has looked for both.
    kept = kept or RunFilesCache()
    site = jobs.trace_site(recording.run)
    if kept.are_old(recording.at):
        site.fetch()
    return dataclasses.replace(
        recording, traces=kept.traces(site.run), plan=kept.plan(recording.run, site.run)
    )


def exported(jobs: JobReader, name: str, *, most_rows: int) -> Recording:
    """Return everything known of a job for a recording file, including the end of its output.

    Args:
        jobs: where the job is.
        name: its name.
        most_rows: how many measurements the file may have (see `shortened`).

    Raises:
        NotFound: the job does not exist.
        StoreError: the store or the run's folder cannot be read.
    """
    recording = shortened(whole(jobs, name), most_rows)
    return dataclasses.replace(
        recording, output=_output(jobs, jobs.get(name), LogSelection(tail=OUTPUT_LINES))
    )


def shortened(recording: Recording, most_rows: int) -> Recording:
    """Return a recording with at most so many measurements, and a note if it has fewer than before.

    Samples and step reports are combined into intervals that are as long as that takes. Evaluations stay.
    """
    room = most_rows - len(recording.evaluations)
    samples, steps = recording.samples, recording.steps
    rows, every = len(samples) + len(steps), 1.0
    if rows <= room:
        return recording
    while len(samples) + len(steps) > room and every < _LONGEST_SECONDS:
        every *= 2
        samples = measurements.combined(Sample, samples, every)
        steps = measurements.combined(StepReport, steps, every)
    note = f"{COMBINED} of {every:g} s: there are {rows:,}, and a file has at most {most_rows:,}"
    run = dataclasses.replace(recording.run, notes=(*recording.run.notes, note))
    return dataclasses.replace(recording, run=run, samples=samples, steps=steps)


class RunFilesCache:
    """The newest traces and the plan of a job's variables, read again only when their files have changed."""

    #: How often newer files are fetched from a remote site.
    FETCH_SECONDS = 30.0

    def __init__(self) -> None:
        self._fetched_at = -math.inf
        self._traces: tuple[Sequence[Path], tuple[Trace, ...]] = ((), ())
        self._plan: tuple[float, Plan | None] = (-math.inf, None)

    def are_old(self, now: float) -> bool:
        """Return whether files are to be fetched now; if so, this counts as done.

        Args:
            now: Unix seconds.
        """
        if now - self._fetched_at < self.FETCH_SECONDS:
            return False
        self._fetched_at = now
        return True

    def traces(self, folder: Path) -> tuple[Trace, ...]:
        """Return the newest traces in a run's folder, without their events."""
        if not (folder / models.FOLDER).is_dir():  # pyarrow need not be loaded.
            return ()
        from paceline.sources import traces

        names = traces.names(folder)[-_NEWEST_TRACES:]
        files = traces.files(folder, names[-1]) if names else []
        if files != self._traces[0]:
            try:
                # A newer profile without a step must not hide the trace before it.
                every = (traces.read(folder, name).traces for name in reversed(names))
                found: tuple[Trace, ...] = next(filter(None, every), ())
            except ModuleNotFoundError:  # pyarrow comes with the extra `training`
                return ()
            self._traces = files, tuple(dataclasses.replace(each, events=()) for each in found)
        return self._traces[1]

    def plan(self, run: Run, folder: Path) -> Plan | None:
        """Return the plan of the recorded variables; None if none were recorded."""
        try:
            written_at = (folder / models.VARIABLES).stat().st_mtime
        except OSError:
            return None
        if written_at != self._plan[0]:
            self._plan = written_at, _plan(run, folder)
        return self._plan[1]


def _plan(run: Run, folder: Path) -> Plan | None:
    """Return the plan that the job file makes of the variables that a trainer has recorded."""
    try:
        variables = specs.load_variables(folder / models.VARIABLES)
        return variable_plans.asked_for(run.spec, variables).plan
    except (NotFound, InvalidInput):
        return None


def situation(recording: Recording) -> Situation:
    """Return the situation of a job as far as its recording describes it."""
    return Situation.of(
        recording.run,
        recording.replicas,
        recording.events,
        now=recording.at,
        unattended=(Evidence(text="so it was when it was recorded"),) if recording.lost else (),
        output=recording.output,
        unknown=() if recording.run.phase.is_final else (_UNKNOWN,),
    )


def situation_of(jobs: JobReader, recording: Recording) -> Situation:
    """Return the situation of a job; if only a store still knows the job, as its recording describes it.

    Raises:
        StoreError: the store cannot be read.
    """
    try:
        found = jobs.situation(recording.run.name)
    except NotFound:
        return situation(recording)
    return dataclasses.replace(found, output=_of_failed(jobs, recording.run, found))


def _of_failed(jobs: JobReader, run: Run, situation: Situation) -> tuple[OutputTail, ...]:
    """Return the end of the output of the replicas that failed last."""
    failed = {row.replica for row in situation.replicas if row.has_failed}
    if not failed:
        return ()
    with contextlib.suppress(PacelineError):  # Its pod or its folder is gone.
        return _output(jobs, run, LogSelection(replica=lambda replica: replica in failed, tail=OUTPUT_LINES))
    return ()


def _output(jobs: JobReader, run: Run, wanted: LogSelection) -> tuple[OutputTail, ...]:
    lines: dict[tuple[ReplicaId, int], list[str]] = {}
    for line in jobs.logs(run, wanted):
        lines.setdefault((line.replica, line.attempt), []).append(line.text[:OUTPUT_CHARACTERS])
    return tuple(
        OutputTail(replica=replica, attempt=attempt, lines=tuple(each))
        for (replica, attempt), each in lines.items()
    )


def judged(recording: Recording, situation: Situation) -> Explanation:
    """Return the explanation of a job's state; for an ended job, the stored conclusion if there is one."""
    kept = recording.conclusion
    if kept is None:
        return diagnoses.diagnose(recording, situation)
    found = diagnoses.recalled(kept.explanation, situation)
    if kept.version == metadata.version("paceline"):
        return found
    by = f"what this version would find: Paceline {kept.version} judged it when it had ended"
    return dataclasses.replace(found, unknown=(*found.unknown, by))


def explain(
    jobs: JobReader, name: str, *, thinned: bool = False, anew: bool = False
) -> tuple[Recording | None, Explanation]:
    """Return the explanation of a job's state and speed, and the recording that it is based on.

    If no measurements can be read, the explanation is based on what else is known, and says what is missing.

    Args:
        jobs: where the job is.
        name: its name.
        thinned: whether to combine many measurements into longer intervals (see `read`).
        anew: whether to apply the present rules instead of the conclusion stored at the job's end.

    Returns:
        The recording, None for a job of a cluster whose spec is invalid; and the explanation.

    Raises:
        NotFound: the job does not exist.
        StoreError: the store cannot be read.
    """
    recording, unread = _known(jobs, name, thinned=thinned)
    if recording is None:
        found = diagnoses.unmeasured(jobs.situation(name))
        return None, dataclasses.replace(found, unknown=(*unread, *found.unknown))
    if anew:
        recording = dataclasses.replace(recording, conclusion=None)
    found = judged(recording, situation_of(jobs, recording))
    return recording, dataclasses.replace(found, unknown=(*unread, *found.unknown))


def _known(jobs: JobReader, name: str, *, thinned: bool) -> tuple[Recording | None, tuple[str, ...]]:
    """Return what is known of a job, and what of it could not be read."""
    try:
        return whole(jobs, name, thinned=thinned), ()
    except PacelineError as error:
        unread = (f"what was measured: {error.message}",)
    try:
        return Recording(run=jobs.get(name), at=jobs.clock(), replicas=jobs.replicas(name)), unread
    except InvalidInput:
        return None, unread
