"""Runs a job for a short time as a trial, and measures its speed and what it learns."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline import specs
from paceline.diagnosing.cases import Case
from paceline.errors import EngineError, InvalidInput, NotFound
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import Run
from paceline.model.measures import rates
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.model.studies.studies import Loss, TrialOutcome
from paceline.model.variables.consistencies import Consistency
from paceline.services.life_cycles import JobControl
from paceline.services.observing import recordings
from paceline.specs import JobFile

#: The label by which all runs of a study are found.
LABEL = "paceline.dev/study"
#: The number of stretches into which a measurement is divided, to see how steady the speed was.
_STRETCHES = 5
#: A slow job is measured until it has made this many steps, but at most for this multiple of the window.
_LEAST_STEPS, _MOST_TIMES = 50, 4.0
_POLL_SECONDS = 0.5
#: Within this time, step reports are stored.
_STORED_SECONDS = 5.0
#: A script that trains on more than this multiple of the wanted examples does not end by itself.
_MOST_EXAMPLES = 1.5
#: More passes over the examples than any trial makes.
_EPOCHS = 100_000.0
#: How long after `TrialTimes.most_seconds` the job of a trial ends by itself; a trial that learns gets more.
_SPARE_SECONDS, _LEARNING_SECONDS = 60.0, 1800.0
#: The speed of a run varies: to be measured while it learns, it must take this multiple of the measured time.
_SPARE = 1.5


#: The activity of a trial whose trainers all make steps.
MEASURED = "is measured"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrialActivity:
    """What a trial does now.

    Attributes:
        what: a few words that form a sentence after the name of the trial.
        detail: the progress; empty: there is nothing to count.
        seconds_left: how long until this activity is done; None: not known.
        is_warning: whether users should still see it when the activity is over.
    """

    what: str
    detail: str = ""
    seconds_left: float | None = None
    is_warning: bool = False


#: Called with the activity of a trial each time it is read.
Tell = Callable[[TrialActivity], None]


def _silent(doing: TrialActivity) -> None:
    """Report nothing."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrialTimes:
    """How long a trial takes.

    Attributes:
        start_seconds: the longest time until all trainers make steps.
        settle_seconds: the time before the measurement, since the first steps are slower.
        window_seconds: the shortest time of a measurement.
    """

    start_seconds: float = 300.0
    settle_seconds: float = 5.0
    window_seconds: float = 20.0

    @property
    def most_seconds(self) -> float:
        """The longest time that a trial takes."""
        return self.start_seconds + self.settle_seconds + _MOST_TIMES * self.window_seconds


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrainedTrial:
    """A trial that was measured and still runs.

    Attributes:
        outcome: what was measured.
        run: the run; None: it does not train.
        span: the beginning and the end of the measurement (Unix seconds); None: it does not train.
        recording: the recording at the end of the measurement, if no store keeps it; None: a store keeps it.
    """

    outcome: TrialOutcome
    run: Run | None = None
    span: tuple[float, float] | None = None
    recording: Recording | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrialRunner:
    """Runs the trials of a study.

    Attributes:
        jobs: the jobs of the home or of the cluster.
        base: the folder to which paths in job files are relative.
        study: the study that the trials belong to.
        times: how long they take.
    """

    jobs: JobControl
    base: Path
    study: str
    times: TrialTimes

    def measure(self, source: str, name: str, tell: Tell = _silent) -> TrialOutcome:
        """Run a job file for a limited time; return what was measured (see `record`)."""
        return self.record(source, name, tell)[0]

    def record(self, source: str, name: str, tell: Tell = _silent) -> tuple[TrialOutcome, Recording | None]:
        """Run a job file for a limited time, then stop the run, which stays in the store.

        Args:
            source: the job file.
            name: the name of the run; an existing run of this name is removed.
            tell: see `Tell`.

        Returns:
            What was measured, and the recording of the run; None if the run did not train.

        Raises:
            InvalidInput: the job file is wrong.
            StoreError: the store cannot be read or written.
        """
        with self.measuring(source, name, tell) as measured:
            pass
        if measured.span is None:
            return measured.outcome, None
        found = measured.recording or recordings.whole(self.jobs, name)
        return outcome(found, since=measured.span[0], until=measured.span[1]), found

    @contextlib.contextmanager
    def measuring(self, source: str, name: str, tell: Tell = _silent) -> Iterator[TrainedTrial]:
        """Run a job file while the context is open, and at least until it was measured; then stop it.

        Raises:
            InvalidInput: the job file is wrong.
            StoreError: the store cannot be read or written.
        """
        job = specs.parse_job(source)
        asked = job.spec.asked_cores
        # The run must not end by itself while it is measured.
        with self._run(job, name, {"epochs": _EPOCHS, "max_steps": None}, tell) as run:
            if isinstance(run, str):
                yield TrainedTrial(outcome=TrialOutcome(asked_cores=asked, failure=run))
                return
            span = self._measured(run, tell)
            if span is None:
                failure = _reason(self.jobs.get(name))
                yield TrainedTrial(outcome=TrialOutcome(asked_cores=run.spec.asked_cores, failure=failure))
                return
            try:
                kept = None if self.jobs.keeps else recordings.whole(self.jobs, name)
            except EngineError as error:
                yield TrainedTrial(
                    outcome=TrialOutcome(asked_cores=run.spec.asked_cores, failure=error.message)
                )
                return
            found = outcome(kept or self.jobs.recording(name), since=span[0], until=span[1])
            yield TrainedTrial(outcome=found, run=run, span=span, recording=kept)

    def _measured(self, run: Run, tell: Tell) -> tuple[float, float] | None:
        """Wait until a run was measured; return the beginning and the end; None: it does not train."""
        started = trained(self.jobs, run, self.times, tell=tell)
        if started is None:
            return None
        since = started + self.times.settle_seconds
        return since, measured(self.jobs, run, since, self.times, tell=tell)

    def learn(self, source: str, name: str, examples: int, tell: Tell = _silent) -> float | None:
        """Train on a number of examples, evaluate and return the AUC; None: it was not evaluated.

        A script that ignores ``training.max_steps`` is stopped somewhat later.

        Raises:
            InvalidInput: the job file is wrong.
            StoreError: the store cannot be read or written.
        """
        return self._learn(source, name, examples, tell, is_measured=False)[1]

    def measure_and_learn(
        self, source: str, name: str, examples: int, tell: Tell = _silent
    ) -> tuple[TrialOutcome, float | None]:
        """Measure a run while it trains on a number of examples; return what was measured, and the final AUC.

        The run has to take long enough: see `outlasts`.

        Raises:
            InvalidInput: the job file is wrong.
            StoreError: the store cannot be read or written.
        """
        return self._learn(source, name, examples, tell, is_measured=True)

    def outlasts(self, examples: int, speed: float, batch_size: int | None) -> bool:
        """Return whether training on a number of examples takes long enough to measure the run in full.

        Args:
            examples: the number of examples.
            speed: the speed of an earlier run, in examples a second.
            batch_size: the examples of a step; None: not known.
        """
        if batch_size is None or not speed:
            return False
        least = max(self.times.window_seconds, _LEAST_STEPS * batch_size / speed)
        return examples / speed >= _SPARE * (self.times.settle_seconds + least)

    def _learn(
        self, source: str, name: str, examples: int, tell: Tell, *, is_measured: bool
    ) -> tuple[TrialOutcome, float | None]:
        job = specs.parse_job(source)
        nothing = TrialOutcome(asked_cores=job.spec.asked_cores, failure="it did not train")
        size = batch_size(job.spec)
        if size is None:
            return nothing, None
        steps = max(1, round(examples / (size * _batches(job.spec)[0])))
        span = None
        with self._run(job, name, {"epochs": _EPOCHS, "max_steps": steps}, tell) as run:
            if isinstance(run, str):
                return nothing, None
            span = self._measured(run, tell) if is_measured else None
            _learnt(self.jobs, run, examples, tell)
        found = self.jobs.recording(name)
        auc = [each.auc for each in found.evaluations if each.auc is not None]
        speed = nothing if span is None else outcome(found, since=span[0], until=span[1])
        return speed, auc[-1] if auc else None

    @contextlib.contextmanager
    def _run(self, job: JobFile, name: str, training: Mapping[str, Any], tell: Tell) -> Iterator[Run | str]:
        """Run a job file with other values in its training section while the context is open; then stop it.

        The context yields the run, or a message that says why it could not be submitted.
        """
        spec = self._trial(job.spec, name, training)
        tell(TrialActivity(what="starts"))
        with contextlib.suppress(NotFound):
            self.jobs.delete(name, force=True)
        with contextlib.ExitStack() as stack:
            try:
                housed = stack.enter_context(self.jobs.housed(spec, self.study))
                run = self.jobs.submit(housed, source=job.text, base=self.base, name=name)
            except (InvalidInput, EngineError, NotFound) as error:  # The trial has failed, the study goes on.
                yield error.message
                return
            stack.callback(_end, self.jobs, name, tell)
            yield run

    def _trial(self, spec: JobSpec, name: str, training: Mapping[str, Any]) -> JobSpec:
        learns = training["max_steps"] is not None
        if spec.training is not None:
            # A trial must not overwrite the export of the job itself.
            values = {**spec.training, **training, "export_dir": None}
            # Nor may it write among the copies of the job's own checkpoints, nor begin at the end of a run.
            own = spec.training.get("checkpoint") or {}
            checkpoint = {**own, "mirror": None, "restore_from": None}
            if spec.role(Role.EVALUATOR) is None:
                # No run continues from a trial, and saving large tables takes longer than measuring them.
                checkpoint["keep"] = 0
            values["checkpoint"] = {key: value for key, value in checkpoint.items() if value is not None}
            training = {key: value for key, value in values.items() if value is not None}
        return dataclasses.replace(
            spec,
            name=name,
            labels={**spec.labels, LABEL: self.study},
            training=None if spec.training is None else training,
            autoscale=None,  # A trial measures the cores that its job file names.
            # The job also ends if the process that waits for it is killed.
            active_deadline_seconds=self.times.most_seconds
            + (_LEARNING_SECONDS if learns else _SPARE_SECONDS),
        )


def batch_size(spec: JobSpec) -> int | None:
    """Return the number of examples in a step of a trainer; None: the job file does not say it."""
    size = (spec.training or {}).get("batch_size")
    return size if isinstance(size, int) else None


def _batches(spec: JobSpec) -> tuple[int, int]:
    """Return how many batches a global step uses, and how many trainers make for it."""
    trainers = spec.trainers()
    consistency = Consistency.of(spec.training)
    return consistency.gradients(trainers), trainers if consistency.mode == "synchronous" else 1


def trained(
    jobs: JobControl, run: Run, times: TrialTimes, *, after: float = 0.0, tell: Tell = _silent
) -> float | None:
    """Wait until all trainers make steps; return when that was (Unix seconds); None: not within the time.

    Args:
        jobs: where the run is.
        run: the run.
        times: how long to wait.
        after: steps before this moment do not count (Unix seconds).
        tell: see `Tell`.
    """
    trainers = {replica for replica in run.spec.replicas() if replica.role.trains}
    deadline = time.monotonic() + times.start_seconds
    while time.monotonic() < deadline:
        if jobs.get(run.name).phase.is_final:
            return None
        steps = _steps(jobs, run, after or None)
        stepping_trainers = {report.replica for report in steps if report.steps and report.at > after}
        if trainers <= stepping_trainers:
            return jobs.clock()
        tell(
            TrialActivity(
                what="starts",
                detail=f"{len(trainers & stepping_trainers)} of {len(trainers)} trainers make steps",
            )
        )
        time.sleep(_POLL_SECONDS)
    return None


def measured(jobs: JobControl, run: Run, since: float, times: TrialTimes, *, tell: Tell = _silent) -> float:
    """Wait until enough was measured since a moment; return the moment until which all of it is known."""
    while True:
        now = jobs.clock() - jobs.DELAY_SECONDS
        passed = now - since
        if jobs.get(run.name).phase.is_final:
            return now
        steps = [each for each in _steps(jobs, run, since) if each.at > since]
        is_long = passed >= times.window_seconds
        is_enough = is_long and sum(each.steps or 0 for each in steps) >= _LEAST_STEPS
        if is_enough or passed >= _MOST_TIMES * times.window_seconds:
            _stored(jobs, run, since, now)
            return now
        tell(_measuring(steps, passed, times))
        time.sleep(_POLL_SECONDS)


def _measuring(steps: Sequence[StepReport], passed: float, times: TrialTimes) -> TrialActivity:
    """Return the progress of a measurement, with the speed of the job so far."""
    done = sum(each.steps or 0 for each in steps)
    if passed <= 0 or not done:
        return TrialActivity(what=MEASURED)
    left = max(times.window_seconds - passed, (_LEAST_STEPS - done) * passed / done)
    return TrialActivity(
        what=MEASURED,
        detail=f"{sum(each.examples or 0 for each in steps) / passed:,.0f} examples/s",
        seconds_left=max(0.0, min(left, _MOST_TIMES * times.window_seconds - passed)),
    )


def _stored(jobs: JobControl, run: Run, since: float, until: float) -> None:
    """Wait until all step reports from before ``until`` are stored, but not longer than `_STORED_SECONDS`.

    They are stored when each replica that has reported after ``since`` has also reported after ``until``.
    Without this wait the last stretch would look too slow.
    """
    deadline = time.monotonic() + _STORED_SECONDS
    while time.monotonic() < deadline and not jobs.get(run.name).phase.is_final:
        latest: dict[ReplicaId, float] = {}
        for each in _steps(jobs, run, since):
            latest[each.replica] = max(each.at, latest.get(each.replica, each.at))
        if all(at >= until for at in latest.values()):
            return
        time.sleep(_POLL_SECONDS)


def _steps(jobs: JobControl, run: Run, since: float | None) -> Sequence[StepReport]:
    """Return the step reports of a run that are known now; none while its agents start or end."""
    with contextlib.suppress(EngineError):
        return jobs.recording(run.name, since=since).steps
    return ()


def _learnt(jobs: JobControl, run: Run, examples: int, tell: Tell) -> None:
    """Wait until a run has ended, or has trained far beyond the examples where it should have ended.

    Trainers also report the examples of gradients that a synchronous step has dropped.
    """
    used, made = _batches(run.spec)
    most = _MOST_EXAMPLES * examples * made / used
    while not jobs.get(run.name).phase.is_final:
        steps = _steps(jobs, run, None)
        done = sum(each.examples or 0 for each in steps)
        if done > most:
            return
        if done < examples:
            tell(TrialActivity(what="learns", detail=f"{done:,} of {examples:,} examples"))
        else:
            tell(TrialActivity(what="is evaluated", detail=f"after {examples:,} examples"))
        time.sleep(_POLL_SECONDS)


def _reason(run: Run) -> str:
    """Return why a run does not train."""
    return run.message or ("it ended" if run.phase.is_final else "not all trainers made steps in time")


def _end(jobs: JobControl, name: str, tell: Tell) -> None:
    run = jobs.get(name)
    tell(TrialActivity(what="ends"))
    if not run.phase.is_final:
        jobs.stop(name)
    jobs.wait(name)


def outcome(recording: Recording, *, since: float, until: float) -> TrialOutcome:
    """Return what was measured of a run between two moments (Unix seconds)."""
    spec = recording.run.spec
    case = Case.of(recording)
    made = speeds(recording.steps, since, until)
    return TrialOutcome(
        examples_per_second=made if any(made) else (),
        asked_cores=spec.asked_cores,
        used_cores=rates.total(each.cpu_cores for each in case.snapshot.replicas),
        losses=tuple(_losses(recording.steps)),
        failure="" if any(made) else "it made no steps while it was measured",
    )


def speeds(reports: Sequence[StepReport], since: float, until: float) -> tuple[float, ...]:
    """Return the examples a second in each stretch of a time; empty if the time is empty."""
    if until <= since:
        return ()
    seconds = (until - since) / _STRETCHES
    ends = [since + seconds * number for number in range(_STRETCHES + 1)]
    return tuple(
        sum(each.examples or 0 for each in reports if first < each.at <= last) / seconds
        for first, last in itertools.pairwise(ends)
    )


def _losses(reports: Sequence[StepReport]) -> Iterator[Loss]:
    examples = 0
    for each in sorted(reports, key=lambda report: report.at):
        examples += each.examples or 0
        if each.loss is not None:
            yield Loss(examples=examples, value=each.loss)
