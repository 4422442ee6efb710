"""Recordings of jobs: put together from a store, and looked at like the jobs themselves."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from paceline import specs
from paceline.diagnosing import diagnoses
from paceline.diagnosing.situations import Situation
from paceline.errors import InvalidInput, NotFound, PacelineError
from paceline.model.explanations.causes import Evidence, Explanation
from paceline.model.jobs.runs import Run
from paceline.model.measures.recordings import OutputTail, Recording
from paceline.model.measures.samples import StepReport
from paceline.model.roles import ReplicaId
from paceline.model.traces import traced_steps as models
from paceline.model.traces.traced_steps import Trace
from paceline.model.variables.variable_plans import Plan
from paceline.services import variable_plans
from paceline.services.life_cycles import LifeCycle
from paceline.services.logs import LogSelection
from paceline.stores import Store

#: A thinned recording has about so many samples: 220 replicas for an hour have one in 40 seconds.
MOST_SAMPLES = 20_000
#: What is measured anew of a job that runs is never thinned: rules judge its last half minute.
RECENT_SECONDS = 120.0
#: Measurements of a job that runs are at most so far ahead of who reads them: clocks of machines differ.
AHEAD_SECONDS = 5.0
#: So much of the output of each attempt goes into a file, and so much of each line.
OUTPUT_LINES, OUTPUT_CHARACTERS = 500, 2000
#: So many of the newest traces are looked at for one that has steps.
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
) -> Recording:
    """Return what a store knows of a run; traces and variables it has none.

    Args:
        store: where it is kept.
        run: the run.
        at: now (Unix seconds).
        lost: whether it should run, but no supervisor watches it.
        facts: of the machine or the image.
        since: only what was measured from this moment on (Unix seconds), and the latest step report of each
            replica if that is older; None: all.
        thinned: what a large job measured over a long time comes in longer intervals, so that a look at it
            stays cheap; not the last minutes of a job that runs.

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
        # A clock that was set back: what was measured before is not of now, whatever its time says.
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
        changes=store.relays(run.name),
        probes=store.probes(run.name),
    )


def _interval_seconds(run: Run, replicas: int, at: float) -> float | None:
    """Return how long intervals have to be for as many samples as may be; None: as they were measured."""
    until = run.finished_at if run.finished_at is not None else at
    seconds = max(0.0, until - (run.started_at if run.started_at is not None else until))
    every = math.ceil(replicas * seconds / MOST_SAMPLES)
    return float(every) if every > 1 else None


def _reports_before(store: Store, run: Run, since: float) -> list[StepReport]:
    latest = store.latest_step_reports(run.name).values()
    return sorted((report for report in latest if report.at < since), key=lambda report: report.at)


def whole(
    jobs: LifeCycle,
    name: str,
    *,
    since: float | None = None,
    thinned: bool = False,
    kept: RunFilesCache | None = None,
) -> Recording:
    """Return what is known of a job: what was measured, its newest traces, the plan of its variables.

    Of traces the events are left out, which are most of them and which no rule looks at.

    Args:
        jobs: where it is.
        name: its name.
        since: only what was measured from this moment on (see `LifeCycle.recording`); None: all.
        thinned: in longer intervals if it is much (see `read`).
        kept: files that were read before and need not be read again while they are the same.

    Raises:
        NotFound: there is no such job.
        StoreError: the store or the run's folder cannot be read or written.
    """
    recording = jobs.recording(name, since=since, thinned=thinned)
    if recording.traces or recording.plan is not None:
        return recording  # A server has looked for both already.
    kept = kept or RunFilesCache()
    site = jobs.trace_site(recording.run)
    if kept.are_old(recording.at):
        site.fetch()
    return dataclasses.replace(
        recording, traces=kept.traces(site.run), plan=kept.plan(recording.run, site.run)
    )


def exported(jobs: LifeCycle, name: str) -> Recording:
    """Return all that is known of a job, the end of its output, too: what a file of it has.

    Raises:
        NotFound: there is no such job.
        StoreError: the store or the run's folder cannot be read.
    """
    recording = whole(jobs, name)
    return dataclasses.replace(
        recording, output=_output(jobs, jobs.get(name), LogSelection(tail=OUTPUT_LINES))
    )


class RunFilesCache:
    """The newest traces and the plan of a job's variables, read anew only when their files have changed."""

    #: How often a place that is far is asked for newer files.
    FETCH_SECONDS = 30.0

    def __init__(self) -> None:
        self._fetched_at = -math.inf
        self._traces: tuple[Sequence[Path], tuple[Trace, ...]] = ((), ())
        self._plan: tuple[float, Plan | None] = (-math.inf, None)

    def are_old(self, now: float) -> bool:
        """Whether files are to be fetched; it is taken as done then.

        Args:
            now: Unix seconds.
        """
        if now - self._fetched_at < self.FETCH_SECONDS:
            return False
        self._fetched_at = now
        return True

    def traces(self, folder: Path) -> tuple[Trace, ...]:
        """Return the newest traces in the folder of a run, without their events."""
        if not (folder / models.FOLDER).is_dir():  # Then pyarrow need not be loaded.
            return ()
        from paceline.sources import traces

        names = traces.names(folder)[-_NEWEST_TRACES:]
        files = traces.files(folder, names[-1]) if names else []
        if files != self._traces[0]:
            try:
                # A profile in which no step fell is no reason to forget the trace before it.
                every = (traces.read(folder, name).traces for name in reversed(names))
                found: tuple[Trace, ...] = next(filter(None, every), ())
            except ModuleNotFoundError:  # pyarrow comes with the extra `training`
                return ()
            self._traces = files, tuple(dataclasses.replace(each, events=()) for each in found)
        return self._traces[1]

    def plan(self, run: Run, folder: Path) -> Plan | None:
        """Return the plan of the variables that were counted; None: none were."""
        try:
            written_at = (folder / models.VARIABLES).stat().st_mtime
        except OSError:
            return None
        if written_at != self._plan[0]:
            self._plan = written_at, _plan(run, folder)
        return self._plan[1]


def _plan(run: Run, folder: Path) -> Plan | None:
    """Return the plan that the job file makes of the variables that a trainer has counted."""
    try:
        variables = specs.load_variables(folder / models.VARIABLES)
        return variable_plans.asked_for(run.spec, variables).plan
    except (NotFound, InvalidInput):
        return None


def situation(recording: Recording) -> Situation:
    """Return what a recording says of where its job stood."""
    return Situation.of(
        recording.run,
        recording.replicas,
        recording.events,
        now=recording.at,
        unattended=(Evidence(text="so it was when it was recorded"),) if recording.lost else (),
        output=recording.output,
        unknown=() if recording.run.phase.is_final else (_UNKNOWN,),
    )


def situation_of(jobs: LifeCycle, recording: Recording) -> Situation:
    """Return where a job stands; of one that only a store knows any more, what its recording says.

    Raises:
        StoreError: the store cannot be read.
    """
    try:
        found = jobs.situation(recording.run.name)
    except NotFound:
        return situation(recording)
    return dataclasses.replace(found, output=_of_failed(jobs, recording.run, found))


def _of_failed(jobs: LifeCycle, run: Run, situation: Situation) -> tuple[OutputTail, ...]:
    """Return the end of what replicas have printed whose last end was a failure."""
    failed = {row.replica for row in situation.replicas if row.has_failed}
    if not failed:
        return ()
    with contextlib.suppress(PacelineError):  # Its pod or its folder is gone.
        return _output(jobs, run, LogSelection(replica=lambda replica: replica in failed, tail=OUTPUT_LINES))
    return ()


def _output(jobs: LifeCycle, run: Run, wanted: LogSelection) -> tuple[OutputTail, ...]:
    lines: dict[tuple[ReplicaId, int], list[str]] = {}
    for line in jobs.logs(run, wanted):
        lines.setdefault((line.replica, line.attempt), []).append(line.text[:OUTPUT_CHARACTERS])
    return tuple(
        OutputTail(replica=replica, attempt=attempt, lines=tuple(each))
        for (replica, attempt), each in lines.items()
    )


def judged(recording: Recording, situation: Situation) -> Explanation:
    """Return why a job is where it is: of one that has ended as that was found then, if it was kept."""
    kept = recording.conclusion
    if kept is None:
        return diagnoses.diagnose(recording, situation)
    found = diagnoses.recalled(kept.explanation, situation)
    if kept.version == metadata.version("paceline"):
        return found
    by = f"what this version would find: Paceline {kept.version} judged it when it had ended"
    return dataclasses.replace(found, unknown=(*found.unknown, by))


def explain(
    jobs: LifeCycle, name: str, *, thinned: bool = False, anew: bool = False
) -> tuple[Recording | None, Explanation]:
    """Return why a job is where it is, and why it is no faster, with what that was told from.

    Where nothing measured can be read, the answer is from what else is known, and says what is missing.

    Args:
        jobs: where it is.
        name: its name.
        thinned: measured in longer intervals if it is much (see `read`).
        anew: by the rules of today, whatever was found when it had ended.

    Returns:
        The recording, None of a job of a cluster whose spec is wrong; and the answer.

    Raises:
        NotFound: there is no such job.
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


def _known(jobs: LifeCycle, name: str, *, thinned: bool) -> tuple[Recording | None, tuple[str, ...]]:
    """Return what is known of a job, and what could not be read of it."""
    try:
        return whole(jobs, name, thinned=thinned), ()
    except PacelineError as error:
        unread = (f"what was measured: {error.message}",)
    try:
        return Recording(run=jobs.get(name), at=jobs.clock(), replicas=jobs.replicas(name)), unread
    except InvalidInput:
        return None, unread
